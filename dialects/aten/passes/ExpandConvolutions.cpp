// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/aten/ConvolutionAsProduct.h"
#include "dialects/aten/Spatial.h"
#include "dialects/aten/passes/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace shardc::aten {

#define GEN_PASS_DEF_ATENEXPANDCONVOLUTIONS
#include "dialects/aten/passes/Passes.h.inc"

namespace {

void expand(ConvolutionOp op) {
  OpBuilder builder(op);
  Location loc = op.getLoc();
  int64_t groups = op.getGroups(), out = shapeOf(op.getWeight())[0];
  OpFoldResult outOfGroup = builder.getIndexAttr(out / groups);
  if (ShapedType::isDynamic(out)) {
    Value size = SymSizeOp::create(builder, loc, builder.getIndexType(), op.getWeight(), 0);
    Value count = arith::ConstantIndexOp::create(builder, loc, groups);
    outOfGroup = arith::DivSIOp::create(builder, loc, size, count).getResult();
  }
  Value result =
      buildConvolutionAsProduct(builder, loc, op.getWindows(), op.getInput(), op.getWeight(),
                                op.getBias(), builder.getIndexAttr(groups), outOfGroup);
  // What the op's own type knows, the expansion may have lost.
  if (auto type = typeOf(op.getResult()); result.getType() != type)
    result.setType(type);
  op.getResult().replaceAllUsesWith(result);
  op.erase();
}

struct ExpandConvolutions : impl::AtenExpandConvolutionsBase<ExpandConvolutions> {
  void runOnOperation() override {
    SmallVector<ConvolutionOp> convolutions;
    getOperation().walk([&](ConvolutionOp op) { convolutions.push_back(op); });
    for (ConvolutionOp op : convolutions)
      if (llvm::any_of(shapeOf(op.getWeight()).drop_front(2), ShapedType::isDynamic)) {
        op.emitOpError("cannot be lowered: the sizes of its kernel are not known");
        return signalPassFailure();
      }
    for (ConvolutionOp op : convolutions)
      expand(op);
    expanded += convolutions.size();
  }
};

} // namespace
} // namespace shardc::aten
