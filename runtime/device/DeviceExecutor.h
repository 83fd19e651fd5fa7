// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Programs for a device behind a plugin. Their host code runs on one thread and puts kernels,
// products and collectives on streams; the host waits at the end of a run.
#ifndef SHARDC_RUNTIME_DEVICE_DEVICEEXECUTOR_H
#define SHARDC_RUNTIME_DEVICE_DEVICEEXECUTOR_H

#include "runtime/device/DeviceCollectives.h"
#include "runtime/device/DeviceMemory.h"
#include "runtime/device/DeviceTransport.h"
#include "runtime/device/StepCache.h"
#include "runtime/executor/Executor.h"
#include "runtime/executor/FailureRecord.h"

namespace shardc::rt {

class DeviceExecutor final : public Executor {
public:
  /// Opens the device that the configuration asks for. Throws Failure.
  DeviceExecutor(const ExecutorContext &context, DevicePlugin plugin);
  ~DeviceExecutor() override;

  void countMemory(shardrt_memory &used) const override;
  std::string description() const override;
  void connect(std::span<const shardrt_group> groups, Clock::time_point deadline) override;
  void plan(const shardrt_variant &variant, shardrt_frame &frame) override;
  void prepare(const shardrt_entry &entry, const shardrt_variant &variant,
               shardrt_frame &frame) override;
  void run(const shardrt_entry &entry, const shardrt_variant &variant, shardrt_frame &frame,
           uint64_t number) override;
  void collective(const shardrt_collective &collective, Group &group, uint64_t number,
                  const shardrt_collective_tensor &tensor) override;
  std::string giveUp() override;
  void recordFlight(FlightRecord &record) const override;

private:
  friend struct DeviceServices;
  void arenaMoves() override;
  using Code = int32_t (*)(shardrt_frame *);

  DeviceMemory &deviceMemory() { return static_cast<DeviceMemory &>(memory()); }
  void setUp(shardrt_frame &frame);
  /// Puts what the code does on the stream, between the clearing of the error word and its way to
  /// the host. Returns what the code returned.
  int32_t enqueue(Code code, shardrt_frame &frame, const shardrt_entry *entry);
  /// Waits for it, and throws what failed.
  void complete(const std::vector<DeviceLaunch> &launched, int32_t result, const std::string &what);
  void runNow(Code code, shardrt_frame &frame, const shardrt_entry *entry, const std::string &what);
  void logLaunch(const shardrt_entry &entry, Clock::time_point when) const;
  bool capture(DeviceStep &step, const shardrt_entry &entry, const shardrt_variant &variant,
               shardrt_frame &frame);
  void keyOf(const shardrt_entry &entry, const shardrt_variant &variant,
             const shardrt_frame &frame);
  /// `withThread`: with a thread of its own that makes collectives progress, if the run is to have
  /// one.
  std::unique_ptr<StagedCollectives> staged(bool withThread);
  DeviceCollectives &collectives();
  /// Records what kernels have written into the error word.
  void recordWord(uint64_t word, const std::vector<DeviceLaunch> &launched);
  /// See `read_sizes` of shardrt_services.
  void readSizes(std::span<int64_t> sizes, const void *from, int64_t atMost);
  void closeOp();
  void noteWork(size_t pieces) {
    if (exchanged)
      exchanged->noteWork(pieces);
  }

  const Manifest &manifest;
  const shardrt_program &program;
  Communicator &communicator;
  const std::vector<Group *> &groups;
  EventLog &events;
  const Log &log;
  const CommStream::Options options;
  const std::shared_ptr<const Device> device;
  void *const compute;

  void *module = nullptr;
  std::vector<void *> kernels;
  Buffer errorWord;
  DeviceObject errorCopy;      ///< pinned
  DeviceObject finished;       ///< the event behind a run
  DeviceObject sizesCopy;      ///< pinned
  size_t sizesRoom = 0;        ///< numbers that it has room for
  std::vector<Buffer> scratch; ///< by slot
  std::vector<Buffer> retired; ///< may be in use until the run is complete
  uint64_t scratchVersion = 0;
  DeviceTimeline timeline;
  StepCache steps;
  std::vector<uint64_t> key;
  std::unique_ptr<StreamTransport> ownTransport; ///< null: the communicator's, or none
  StreamTransport *transport = nullptr;          ///< null: collectives go through the host
  void *rememberedArena = nullptr;               ///< by the transport
  std::unique_ptr<DeviceCollectives> exchanged;  ///< made when first needed, or by connect
  std::vector<const void *> params;

  // The call in progress.
  FailureRecord failures;
  const shardrt_entry *running = nullptr;
  uint64_t runNumber = 0;
  bool capturing = false;
  bool captureFailed = false; ///< something was asked for that a graph cannot have
  std::vector<DeviceLaunch> launches;
  const shardrt_op *currentOp = nullptr;
  const shardrt_op *lastOp = nullptr; ///< of the run in progress, or of one that failed
  size_t opMark = 0;
};

/// The table that generated code gets; its `runtime` is a DeviceExecutor.
extern const shardrt_services deviceServices;

} // namespace shardc::rt

#endif // SHARDC_RUNTIME_DEVICE_DEVICEEXECUTOR_H
