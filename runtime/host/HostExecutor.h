// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Programs for the processor: compute threads, BLAS, and a communication thread.
#ifndef SHARDC_RUNTIME_HOST_HOSTEXECUTOR_H
#define SHARDC_RUNTIME_HOST_HOSTEXECUTOR_H

#include "runtime/comm/Stream.h"
#include "runtime/executor/Executor.h"
#include "runtime/executor/FailureRecord.h"
#include "runtime/gemm/Blas.h"
#include "runtime/threads/ThreadPool.h"

namespace shardc::rt {

extern const ExecutorKind hostExecutorKind;

/// Adds what this machine's processor lacks for the code of a program.
void checkProcessor(const Manifest &manifest, Problems &problems);

class HostMemory : public ProgramMemory {
public:
  /// `shared`: where other ranks reach what collectives work on; null: nowhere in particular.
  explicit HostMemory(const Allocator &host, const Allocator *shared = nullptr)
      : ProgramMemory(host), shared(shared) {}
  const Allocator &allocator() const override { return host; }
  const Allocator &exchanged() const override { return shared ? *shared : allocator(); }
  bool reaches(const void *) const override { return true; }
  void take(void *to, const Slice &part, const void *from, const int64_t *strides,
            int64_t elementBytes) override;
  void give(void *to, const int64_t *strides, const Slice &part, const void *from,
            int64_t elementBytes) override;
  bool holds(const void *data, const void *bytes, size_t count) const override;

private:
  const Allocator *const shared;
};

class HostExecutor : public Executor {
public:
  /// `memory`: that of the host, or another that generated code and communicators can reach.
  HostExecutor(const ExecutorContext &context, std::unique_ptr<ProgramMemory> memory);

  void countMemory(shardrt_memory &used) const override;
  std::string description() const override;
  void plan(const shardrt_variant &variant, shardrt_frame &frame) override;
  void prepare(const shardrt_entry &entry, const shardrt_variant &variant,
               shardrt_frame &frame) override;
  void run(const shardrt_entry &entry, const shardrt_variant &variant, shardrt_frame &frame,
           uint64_t number) override;
  void collective(const shardrt_collective &collective, Group &group, uint64_t number,
                  const shardrt_collective_tensor &tensor) override;
  bool observe(WriteCheck *newObserver) override;
  std::string giveUp() override;
  void recordFlight(FlightRecord &record) const override;

private:
  friend struct HostServices;

  /// Calls generated code; throws what it recorded, or that it returned something else than 0.
  void call(int32_t (*code)(shardrt_frame *), shardrt_frame &frame, const shardrt_entry *entry,
            const std::string &what);
  Group *groupOf(const shardrt_collective &collective) const { return groups[collective.group]; }
  const Blas &blasLibrary();
  void closeOp(Clock::time_point now);

  Communicator &communicator;
  const std::vector<Group *> &groups;
  EventLog &events;
  const Log &log;
  const int32_t self;
  WriteCheck *observer = nullptr;
  ThreadPool pool;
  CommStream stream;
  std::once_flag blasOnce;
  std::shared_ptr<const Blas> blas;
  std::vector<std::vector<Buffer>> scratch; ///< by compute thread, then slot
  std::mutex scratchMutex;                  ///< the caller's allocator need not be thread-safe

  // The call in progress.
  FailureRecord failures;
  const shardrt_entry *running = nullptr;
  uint64_t runNumber = 0;
  const shardrt_op *currentOp = nullptr;
  const shardrt_op *lastOp = nullptr; ///< of the run in progress, or of one that failed
  Clock::time_point opBegin;
};

/// The table that generated code gets; its `runtime` is a HostExecutor.
extern const shardrt_services hostServices;

} // namespace shardc::rt

#endif // SHARDC_RUNTIME_HOST_HOSTEXECUTOR_H
