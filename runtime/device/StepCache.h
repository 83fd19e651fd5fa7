// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs that were captured as graphs, by everything that their code was given.
#ifndef SHARDC_RUNTIME_DEVICE_STEPCACHE_H
#define SHARDC_RUNTIME_DEVICE_STEPCACHE_H

#include "runtime/comm/Call.h"
#include "runtime/device/Device.h"

namespace shardc::rt {

/// A kernel that was put on the stream: what a failure of it is told by.
struct DeviceLaunch {
  const char *location = nullptr;
  uint32_t kernel = 0;
  const shardrt_op *op = nullptr;
};

/// The collectives of a graph, in order, and two bytes of pinned memory for each of them, which the
/// graph makes 1 when the operands are computed and when the results are there.
struct CapturedCollectives {
  std::vector<CollectiveCall> calls;
  DeviceObject marks; ///< null: no collectives
};

/// A run with the same key puts the same work on the device.
struct DeviceStep {
  std::vector<uint64_t> key;
  /// Of the buffers that kernels have for temporaries: the graph is of no use with others.
  uint64_t scratchVersion = 0;
  bool mayCapture = true;
  DeviceObject graph; ///< null: it was not captured
  std::vector<DeviceLaunch> launches;
  CapturedCollectives collectives;
  bool commits = false; ///< it changes parameters
  uint64_t lastUse = 0;
};

/// Keeps the steps that were used last.
class StepCache {
public:
  /// The step with this key; made if it is new, and then `isNew`.
  DeviceStep &find(const std::vector<uint64_t> &key, bool &isNew);
  void clear() { steps.clear(); }

private:
  static constexpr size_t most = 64;
  std::vector<std::unique_ptr<DeviceStep>> steps;
  uint64_t uses = 0;
};

} // namespace shardc::rt

#endif // SHARDC_RUNTIME_DEVICE_STEPCACHE_H
