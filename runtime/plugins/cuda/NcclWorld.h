// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One rank's end of a world of devices: NCCL's communicators of all groups, and waiting for NCCL
// without being caught in it.
#ifndef SHARDC_RUNTIME_PLUGINS_CUDA_NCCLWORLD_H
#define SHARDC_RUNTIME_PLUGINS_CUDA_NCCLWORLD_H

#include "runtime/include/shardrt_device_comm.h"
#include "runtime/plugins/cuda/NcclLibrary.h"
#include "runtime/plugins/cuda/OrderedReduction.h"
#include "runtime/plugins/cuda/Scratch.h"

#include <functional>
#include <map>
#include <span>

namespace shardc::plugin::cuda {

/// Which reductions NCCL does (SHARDRT_NCCL_REDUCE): those with the meaning of shardrt.h ("auto"),
/// all that it has a function for ("nccl"), or none ("runtime"). The others are done in order.
enum class NcclReduces : uint8_t { SameMeaning, Everything, Nothing };

class NcclWorld {
public:
  NcclWorld(Device &device, const shardrt_device_comm_world &world);
  ~NcclWorld();
  NcclWorld(const NcclWorld &) = delete;
  static NcclWorld &of(void *handle) { return *static_cast<NcclWorld *>(handle); }

  void connect(std::span<const shardrt_device_comm_group> groups);
  void enqueue(const shardrt_device_collective &call, StreamHandle stream);
  void poll();
  void abort() noexcept;
  /// Ends it in good order, if all ranks do; otherwise as `abort`.
  void close() noexcept;
  void remember(void *memory, uint64_t bytes);
  void forget(void *memory);

  Device &device;

private:
  bool mustStop() const { return runtime.must_stop(runtime.host) != 0; }
  /// Waits until what was begun on a communicator is done. Throws Failure.
  void settle(NcclHandle handle, const char *function);
  /// One of NCCL's for each colour; NCCL's order is that of the keys.
  NcclHandle split(int color, int key);
  NcclHandle of(std::span<const uint32_t> members) const;

  std::shared_ptr<const NcclLibrary> nccl;
  shardrt_device_comm_world runtime;
  std::mutex mutex; ///< one thread at a time calls NCCL
  NcclHandle everybody = nullptr;
  NcclHandle unfinished = nullptr; ///< what a split that has not ended makes
  std::map<std::vector<uint32_t>, NcclHandle> groups;
  std::map<StreamHandle, StreamScratch> scratch;
  struct Registered {
    NcclHandle handle;
    void *registration;
  };
  std::map<void *, std::vector<Registered>> registrations;
  NcclReduces reduces = NcclReduces::SameMeaning;
  OrderedReduction reduction;
};

/// How NCCL reduces a type; nothing where it does not, or not with the meaning of shardrt.h.
struct NcclOperation {
  int type = -1, reduction = -1;
  bool offered() const { return type >= 0; }
};
NcclOperation ncclOperation(shardrt_type type, uint32_t reduction, uint32_t members,
                            bool alsoOtherwise);

/// What a call of a collective needs of its world.
struct NcclContext {
  const NcclLibrary &nccl;
  Device &device;
  const NcclHandle handle;
  StreamScratch &scratch;
  OrderedReduction &reduction;
  const NcclReduces reduces;
  std::function<void()> settle; ///< waits until NCCL has taken a group
};

/// Puts one call of a collective on a stream.
class NcclCall : private NcclContext {
public:
  NcclCall(NcclContext context, const shardrt_device_collective &call, StreamHandle stream)
      : NcclContext(std::move(context)), call(call), c(*call.collective), n(call.n_members),
        p(call.position), stream(stream) {}
  void enqueue();

private:
  struct Operand;
  struct Block;
  class Plan;

  void copy(void *to, const void *from, size_t bytes);
  void copyRows(char *to, size_t toPitch, const char *from, size_t fromPitch, size_t bytes,
                size_t rows);

  const shardrt_device_collective &call;
  const shardrt_collective &c;
  const uint32_t n, p;
  const StreamHandle stream;
};

} // namespace shardc::plugin::cuda

#endif // SHARDC_RUNTIME_PLUGINS_CUDA_NCCLWORLD_H
