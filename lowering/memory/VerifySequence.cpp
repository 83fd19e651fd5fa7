// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// exec-verify-sequence: ranks whose programs differ run the same collectives in the same order.

#include "lowering/memory/EntryVariants.h"
#include "lowering/memory/Passes.h"

#include "dialects/exec/Exec.h"
#include "passes/verify/Violations.h"

namespace shardc::memory {
#define GEN_PASS_DEF_VERIFYSEQUENCE
#include "lowering/memory/Passes.h.inc"
} // namespace shardc::memory

using namespace mlir;
using namespace shardc;
using namespace shardc::memory;

namespace {

using Collective = exec::CollectiveCallInterface;

SmallVector<Collective> collectivesOf(func::FuncOp entry) {
  SmallVector<Collective> list;
  for (Operation &op : entry.getBody().front())
    if (auto collective = dyn_cast<Collective>(op))
      list.push_back(collective);
  return list;
}

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
    for (ArrayRef<func::FuncOp> entries : groupVariants(getOperation())) {
      SmallVector<Collective> first = collectivesOf(entries.front());
      collectives += first.size();
      for (func::FuncOp other : entries.drop_front())
        compare(entries.front(), first, other, violations);
    }
    if (failed(violations.report()))
      signalPassFailure();
    markAllAnalysesPreserved();
  }

  static void compare(func::FuncOp firstEntry, ArrayRef<Collective> first, func::FuncOp other,
                      Violations &violations) {
    SmallVector<Collective> mine = collectivesOf(other);
    std::string pair = ("'" + firstEntry.getName() + "' and '" + other.getName() +
                        "', which are one function on different ranks,")
                           .str();
    for (size_t number = 0; number < std::min(first.size(), mine.size()); ++number)
      if (StringRef what = difference(first[number], mine[number]); !what.empty())
        return violations.add(mine[number]->getLoc(), pair + " do not agree about collective " +
                                                          Twine(number) + ": " + what);
    if (first.size() != mine.size())
      violations.add(other.getLoc(), pair + " have " + Twine(first.size()) + " and " +
                                         Twine(mine.size()) + " collectives");
  }
};

} // namespace
