// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The memory of a program with what is computed again in it, counted step by step: shares nothing
// with the choice but its result.

#ifndef SHARDC_TEST_UNIT_PASSES_RECOMPUTE_REFERENCEMEMORY_H
#define SHARDC_TEST_UNIT_PASSES_RECOMPUTE_REFERENCEMEMORY_H

#include "passes/recompute/core/Recompute.h"

#include <algorithm>
#include <map>
#include <string>

namespace shardc::recompute {

/// Runs the program: `error` says what is read before it is made.
class ReferenceMemory {
public:
  ReferenceMemory(const Program &program, const Result &result) : program(program) {
    for (const Again &again : result.again)
      (again.op == again.owner ? shared[again.op] : chain[{again.owner, again.op}]) = again.before;
    for (OpId op = 0; op != program.numOps(); ++op) {
      for (const Again &again : result.again)
        if (again.before == op)
          run(again.op, op, again.owner);
      run(op, op, none);
    }
    std::vector<int64_t> bytes(program.numOps() + 1);
    for (auto &[copy, steps] : live)
      if (!program.isPinned(copy.storage)) {
        bytes[steps.first] += program.bytes(copy.storage);
        bytes[steps.second + 1] -= program.bytes(copy.storage);
      }
    int64_t now = 0, most = 0;
    for (int64_t change : bytes)
      most = std::max(most, now += change);
    peak = program.constantBytes + most;
  }

  uint64_t peak = 0;
  std::string error;

private:
  /// The first computation has no owner; parts of chains have that of their chain.
  struct Copy {
    StorageId storage;
    OpId owner;
    auto operator<=>(const Copy &) const = default;
  };

  Copy copyFor(StorageId storage, bool late, OpId owner) const {
    OpId maker = program.maker(storage);
    if (owner != none && chain.contains({owner, maker}))
      return {storage, owner};
    if (late && shared.contains(maker))
      return {storage, maker};
    return {storage, none};
  }

  void run(OpId op, uint32_t step, OpId owner) {
    bool late = owner != none || program.info(op).late;
    for (StorageId storage : program.reads(op)) {
      auto found = live.find(copyFor(storage, late, owner));
      if (found == live.end())
        error += "op " + std::to_string(op) + " at " + std::to_string(step) + " reads storage " +
                 std::to_string(storage) + " too early\n";
      else
        found->second.second = step;
    }
    for (StorageId storage : program.makes(op))
      live[{storage, owner}] = {step, step};
  }

  const Program &program;
  std::map<OpId, uint32_t> shared;
  std::map<std::pair<OpId, OpId>, uint32_t> chain;
  std::map<Copy, std::pair<uint32_t, uint32_t>> live;
};

} // namespace shardc::recompute

#endif // SHARDC_TEST_UNIT_PASSES_RECOMPUTE_REFERENCEMEMORY_H
