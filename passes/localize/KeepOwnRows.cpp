// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dialects/aten/Grouped.h"
#include "dialects/aten/OwnRows.h"
#include "dialects/dist/Dist.h"
#include "passes/localize/OwnRowsAttribute.h"
#include "passes/localize/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace shardc {
#define GEN_PASS_DEF_KEEPOWNROWS
#include "passes/localize/Passes.h.inc"
} // namespace shardc

using namespace mlir;
using namespace shardc;
using namespace shardc::dist;

namespace {

/// How a dim of matrices, or of rows that are looked up, is shared out: its size and its split.
struct Share {
  int64_t size;
  DimSplit split;
  bool operator==(const Share &) const = default;
};

std::optional<Share> shareOf(Value tensor) {
  LayoutAttr layout = getLayout(tensor.getType());
  if (!layout)
    return std::nullopt;
  return Share{aten::shapeOf(tensor).front(), layout.getValue().splitOfDim(0)};
}

/// What a product by index, or a lookup, has one of for each number of its index.
std::optional<Share> matricesOf(Operation *op) {
  if (isa<aten::IndexedMmOp>(op))
    return shareOf(op->getOperand(1));
  if (isa<aten::IndexedOuterOp, aten::IndexPutOp>(op))
    return shareOf(op->getResult(0));
  return isa<aten::IndexOp>(op) ? shareOf(op->getOperand(0)) : std::nullopt;
}

class PartialSum {
public:
  explicit PartialSum(RedistributeOp op) : op(op) {}

  /// Whether nothing needs to be reduced.
  bool isForOthers() {
    LayoutAttr from = op.getSourceLayout(), to = op.getTargetLayout();
    if (!from || !to || from.getValue().mesh != to.getValue().mesh)
      return false;
    const Layout &source = from.getValue(), &target = to.getValue();
    for (auto [axis, then] : llvm::enumerate(source.placements)) {
      const Placement &now = target.placements[axis];
      if (then == now)
        continue;
      if (then != Placement::partial(Reduction::Sum) || !now.isReplicate())
        return false;
      axes.push_back(static_cast<unsigned>(axis));
    }
    if (axes.empty())
      return false;
    auto isOwner = [&](Operation *product) { return isAsWanted(product); };
    auto isPartial = [&](Value tensor) { return isPartialOver(tensor); };
    auto isWhole = [&](Value tensor) { return isWholeOver(tensor); };
    for (int64_t dim = 0, rank = op.getInput().getType().getRank(); dim < rank; ++dim) {
      wanted.reset();
      aten::OwnRows rows(isOwner, isWhole);
      Value index = rows.ownersOf(op.getInput(), dim, isPartial);
      if (index && rows.readByOwners(op.getResult(), dim, index))
        return true;
    }
    return false;
  }

private:
  /// Shared out over exactly these axes, and as all others are.
  bool isAsWanted(Operation *product) {
    std::optional<Share> share = matricesOf(product);
    if (!share || share->split.axes.size() != axes.size() ||
        !llvm::all_of(share->split.axes,
                      [&](const AxisSplit &split) { return llvm::is_contained(axes, split.axis); }))
      return false;
    if (!wanted)
      wanted = share;
    return *wanted == *share;
  }
  bool isPartialOver(Value tensor) {
    return hasEverywhere(tensor, Placement::partial(Reduction::Sum));
  }
  bool isWholeOver(Value tensor) { return hasEverywhere(tensor, Placement::replicate()); }

  /// On each of the axes.
  bool hasEverywhere(Value tensor, const Placement &placement) {
    LayoutAttr layout = getLayout(tensor.getType());
    return layout && layout.getValue().mesh == op.getTargetLayout().getValue().mesh &&
           llvm::all_of(axes, [&](unsigned axis) {
             return layout.getValue().placements[axis] == placement;
           });
  }

  RedistributeOp op;
  SmallVector<unsigned> axes;
  std::optional<Share> wanted;
};

struct KeepOwnRows : shardc::impl::KeepOwnRowsBase<KeepOwnRows> {
  void runOnOperation() override {
    bool hasProducts = false;
    getOperation().walk([&](aten::IndexedMmOp) { hasProducts = true; });
    if (!hasProducts)
      return;
    getOperation().walk([&](RedistributeOp op) {
      if (!PartialSum(op).isForOthers())
        return;
      op->setAttr(kOwnRowsAttr, UnitAttr::get(&getContext()));
      ++numKept;
    });
  }
};

} // namespace
