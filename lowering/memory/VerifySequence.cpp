// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// exec-verify-sequence: ranks whose programs differ run the same collectives in the same order.

#include "lowering/memory/EntryVariants.h"
#include "lowering/memory/Passes.h"

#include "dialects/dist/FunctionAttributes.h"
#include "dialects/exec/Exec.h"
#include "passes/verify/Violations.h"

#include <map>

namespace shardc::memory {
#define GEN_PASS_DEF_VERIFYSEQUENCE
#include "lowering/memory/Passes.h.inc"
} // namespace shardc::memory

using namespace mlir;
using namespace shardc;
using namespace shardc::memory;

namespace {

using Collective = exec::CollectiveCallInterface;

/// What is not the same, or nothing.
StringRef difference(Collective a, Collective b) {
  if (a->getName() != b->getName())
    return "it is started on one and runs to its end on the other";
  if (a.getKind() != b.getKind())
    return "the kinds differ";
  if (a.getReductionAttr() != b.getReductionAttr())
    return "the reductions differ";
  if (a.getGroup() != b.getGroup())
    return "the groups differ";
  if (a.getElementTypes() != b.getElementTypes())
    return "the element types or the numbers of tensors differ";
  if (a.getGatherDims() != b.getGatherDims() || a.getScatterDims() != b.getScatterDims())
    return "the dims differ";
  if (a.getRoot() != b.getRoot() || a.getPairs() != b.getPairs())
    return "the sources differ";
  return "";
}

struct VerifySequence : memory::impl::VerifySequenceBase<VerifySequence> {
  void runOnOperation() override {
    Violations violations;
    for (ArrayRef<func::FuncOp> entries : groupVariants(getOperation()))
      compare(entries, violations);
    if (failed(violations.report()))
      signalPassFailure();
    markAllAnalysesPreserved();
  }

  /// Variants agree about what both of them run. One that runs only a part of the sequence (L5)
  /// says which: `dist-verify-schedule` has checked that the rest does not concern it.
  void compare(ArrayRef<func::FuncOp> entries, Violations &violations) {
    std::map<int64_t, std::pair<func::FuncOp, Collective>> known;
    func::FuncOp firstEntry = entries.front();
    size_t whole = collectivesOf(firstEntry).size();
    collectives += whole;
    bool areParts = llvm::any_of(entries, [](func::FuncOp entry) {
      return llvm::any_of(collectivesOf(entry), [](const auto &collective) {
        return collective.second->hasAttr(dist::kOrdinalAttr);
      });
    });
    for (func::FuncOp entry : entries) {
      auto pairWith = [&](func::FuncOp other) {
        return ("'" + other.getName() + "' and '" + entry.getName() +
                "', which are one function on different ranks,")
            .str();
      };
      auto mine = collectivesOf(entry);
      for (auto [ordinal, collective] : mine) {
        auto [first, added] = known.try_emplace(ordinal, entry, collective);
        if (StringRef what = difference(first->second.second, collective); !what.empty())
          violations.add(collective->getLoc(), pairWith(first->second.first) +
                                                   " do not agree about collective " +
                                                   Twine(ordinal) + ": " + what);
      }
      if (mine.size() != whole && !areParts)
        violations.add(entry.getLoc(), pairWith(firstEntry) + " have " + Twine(whole) + " and " +
                                           Twine(mine.size()) + " collectives");
    }
  }
};

} // namespace
