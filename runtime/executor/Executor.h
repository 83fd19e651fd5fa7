// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What runs the programs of one target. A model knows names, shapes and the caller's tensors; an
// executor knows where the program's data is, what generated code may call, and when it has ended.
#ifndef SHARDC_RUNTIME_EXECUTOR_EXECUTOR_H
#define SHARDC_RUNTIME_EXECUTOR_EXECUTOR_H

#include "runtime/comm/Communicator.h"
#include "runtime/executor/ProgramMemory.h"
#include "runtime/flight/FlightRecord.h"
#include "runtime/manifest/Manifest.h"
#include "runtime/support/Events.h"
#include "runtime/support/Log.h"

namespace shardc::rt {

class WriteCheck;

/// What an executor gets from the model that owns it. Everything but `config` outlives it.
struct ExecutorContext {
  const Manifest &manifest;
  const shardrt_program &program;
  const shardrt_config &config; ///< valid during the constructor only
  Communicator &communicator;
  /// This rank's set of each group of the program; null: it is in none.
  const std::vector<Group *> &groups;
  EventLog &events;
  const Log &log;
};

/// Throws Failure where one of the sizes that a program computed is below 0 or above `atMost`.
void checkSizes(std::span<const int64_t> sizes, int64_t atMost);

/// Used by one thread at a time. Functions that run code throw the first Failure that the program
/// recorded or met.
class Executor {
public:
  virtual ~Executor() = default;

  ProgramMemory &memory() { return *programMemory; }
  /// Memory of a run, kept for the next one; what was there before may be lost.
  uint8_t *arena(size_t bytes);
  /// The same for a tensor that cannot be passed where the caller has it.
  void *staging(size_t slot, size_t bytes);
  /// Adds what it holds: arena and temporaries.
  virtual void countMemory(shardrt_memory &used) const { used.arena_bytes += arenaMemory.size(); }
  /// What it computes with, for the log: "2 threads".
  virtual std::string description() const = 0;

  /// Called once by every rank, behind Communicator::connect and with the same groups: for what
  /// moves data between devices and only all ranks together can make.
  virtual void connect(std::span<const shardrt_group>, Clock::time_point) {}

  /// These fill in what a frame says about the executor (services, runtime, threads), call that
  /// function of the variant, and return when all its effects can be seen.
  virtual void plan(const shardrt_variant &variant, shardrt_frame &frame) = 0;
  virtual void prepare(const shardrt_entry &entry, const shardrt_variant &variant,
                       shardrt_frame &frame) = 0;
  /// No collective is in flight any more when it returns. `number` is that of the model's run.
  virtual void run(const shardrt_entry &entry, const shardrt_variant &variant, shardrt_frame &frame,
                   uint64_t number) = 0;
  /// Before everything that belongs to a run.
  void beginRun() { committed = false; }
  /// Whether the run has begun to change parameters (`commit` of the services).
  bool hasCommitted() const { return committed; }
  /// A collective of the model's own, behind the code that has run; operands are in memory of the
  /// program.
  virtual void collective(const shardrt_collective &collective, Group &group, uint64_t number,
                          const shardrt_collective_tensor &tensor) = 0;

  /// Lets `check` attach itself to the frame of every run from now on; null: no longer. False if
  /// the program's memory cannot be looked at between ops.
  virtual bool observe(WriteCheck *) { return false; }

  /// After a failure, when the world was told: ends what is in flight. Returns the last collectives
  /// of this rank, one on each line, or nothing.
  virtual std::string giveUp() = 0;
  /// After giveUp: adds the last op and the last collectives of this rank.
  virtual void recordFlight(FlightRecord &) const {}

protected:
  explicit Executor(std::unique_ptr<ProgramMemory> memory) : programMemory(std::move(memory)) {}
  void noteCommit() { committed = true; }
  /// Before the arena is released, and at other times when it is another one.
  virtual void arenaMoves() {}

  /// What all executors know of collectives that the host runs; throws Failure if the communicator
  /// does not move data in host memory.
  static HostTransport &hostTransportOf(Communicator &communicator, const Manifest &manifest);

private:
  const std::unique_ptr<ProgramMemory> programMemory; ///< before the buffers that are of it
  Buffer arenaMemory;
  std::vector<Buffer> stagingMemory;
  bool committed = false;
};

/// A kind of target, by the name under which manifests ask for it (`target.kind`).
struct ExecutorKind {
  std::string_view name;
  /// Adds what this machine, or this runtime, lacks for the program.
  void (*check)(const Manifest &manifest, Problems &problems);
  std::unique_ptr<Executor> (*create)(const ExecutorContext &context);
};

/// The kinds of targets that can run.
class ExecutorRegistry {
public:
  /// What the library has (runtime/model/ExecutorRegistry.cpp lists it).
  static const ExecutorRegistry &builtIn();

  /// Replaces a kind of the same name.
  void add(const ExecutorKind &kind);
  /// Null if there is none.
  const ExecutorKind *find(std::string_view name) const;
  /// For messages: "cpu, toy".
  std::string names() const;

private:
  std::vector<ExecutorKind> kinds;
};

} // namespace shardc::rt

#endif // SHARDC_RUNTIME_EXECUTOR_EXECUTOR_H
