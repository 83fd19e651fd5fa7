// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/training/Passes.h"
#include "passes/training/StepUpdate.h"

namespace shardc {
#define GEN_PASS_DEF_WIDENREDUCTIONS
#include "passes/training/Passes.h.inc"
} // namespace shardc

using namespace mlir;
using namespace shardc;

namespace {

struct WidenReductionsPass : shardc::impl::WidenReductionsBase<WidenReductionsPass> {
  using WidenReductionsBase::WidenReductionsBase;

  void runOnOperation() override {
    SmallVector<aten::ToCopyOp> casts;
    for (auto cast : getOperation().getBody().getOps<aten::ToCopyOp>())
      if (cast->removeAttr(training::kWidenAttr))
        casts.push_back(cast);
    for (aten::ToCopyOp cast : casts)
      while (dist::RedistributeOp reduction = reductionBefore(cast))
        cast = widen(cast, reduction);
  }

private:
  /// The redistribution that makes a sum of what is cast.
  static dist::RedistributeOp reductionBefore(aten::ToCopyOp cast) {
    auto op = cast.getSelf().getDefiningOp<dist::RedistributeOp>();
    dist::LayoutAttr source = op ? op.getSourceLayout() : dist::LayoutAttr();
    return source && !source.getValue().partialAxes().empty() ? op : dist::RedistributeOp();
  }

  aten::ToCopyOp widen(aten::ToCopyOp cast, dist::RedistributeOp reduction) {
    OpBuilder builder(cast);
    auto result = mlir::cast<RankedTensorType>(cast.getResult().getType());
    auto wide = aten::ToCopyOp::create(builder, cast.getLoc(), reduction.getInput(),
                                       result.getElementType());
    wide.getResult().setType(RankedTensorType::get(result.getShape(), result.getElementType(),
                                                   reduction.getSourceLayout()));
    auto moved = dist::RedistributeOp::create(builder, reduction.getLoc(), result, wide.getResult(),
                                              reduction.getBackward());
    cast.getResult().replaceAllUsesWith(moved.getResult());
    cast.erase();
    if (reduction->use_empty())
      reduction.erase();
    ++numWidened;
    return wide;
  }
};

} // namespace
