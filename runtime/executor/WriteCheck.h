// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Finds what a program reads or returns without having written it. The program runs twice: arena,
// scratch memory and outputs are filled before each run, the second time with other values. What an
// op computed differently the second time, it computed from memory that nobody had written; what is
// still as it was filled in both, nobody wrote.
#ifndef SHARDC_RUNTIME_EXECUTOR_WRITECHECK_H
#define SHARDC_RUNTIME_EXECUTOR_WRITECHECK_H

#include "runtime/executor/Executor.h"

#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace shardc::rt {

/// Memory that a run may write: the arena (no name), an output, or a parameter.
struct CheckedMemory {
  void *data = nullptr;
  size_t bytes = 0;
  std::string name;
  size_t elementBytes = 1;
  bool isKept = false; ///< it has a value, which the program may read and change: not filled
};

/// Of one rank. Needs collectives to run where they are waited for (SHARDRT_NO_COMM_THREAD), so
/// that both runs write in one order, and as much memory as all ops of the program write together.
class WriteCheck {
public:
  WriteCheck(std::vector<CheckedMemory> memory, const shardrt_entry &entry)
      : memory(std::move(memory)), ops(entry.ops, entry.n_ops) {}

  /// Calls `call` twice, which runs the entry on `executor`. Results are those of the second run.
  /// Throws Failure with all findings, by op and module, or if the executor cannot be observed.
  void run(Executor &executor, const std::function<void()> &call);

  /// For executors: replaces the services of a frame by ones that look at memory between ops.
  void attach(shardrt_frame &frame);

private:
  friend struct CheckingServices;
  using Bytes = std::vector<uint8_t>;

  /// Bytes that an op left, at this place of one memory.
  struct Written {
    size_t memory, offset;
    Bytes bytes;
  };
  struct Step {
    std::string name;
    std::vector<Written> written;
  };

  /// Fills the memory, and returns what it is then.
  std::vector<Bytes> begin();
  void complete(const std::string &name) noexcept;
  void record(const std::string &name);
  void compare(const std::string &name);
  void findUnwritten(const std::vector<Bytes> &afterFirst);
  void fill(void *data, size_t bytes) const;

  const std::vector<CheckedMemory> memory;
  std::vector<Bytes> kept; ///< what memory that is kept was before the first run, by memory
  const std::span<const shardrt_op> ops;
  const shardrt_services *services = nullptr; ///< those of the executor, and their first argument
  void *runtime = nullptr;
  std::map<uint64_t, const shardrt_collective *> inFlight; ///< by token
  bool isFirst = true;
  std::string current; ///< the op that runs
  /// What the memory was after the last step, in the first run and, while that runs, the second.
  std::vector<Bytes> known, knownNow;
  std::vector<Step> steps; ///< of the first run
  size_t next = 0;         ///< step of the second run
  std::vector<std::string> findings;
  std::string problem; ///< why the check itself cannot go on
};

} // namespace shardc::rt

#endif // SHARDC_RUNTIME_EXECUTOR_WRITECHECK_H
