// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tensors made out of nothing, or written over: each rank makes its own part.

#include "passes/localize/Models.h"
#include "passes/localize/RedistributeSteps.h"

using namespace mlir;
using namespace shardc;

namespace {

struct ConstantModel : LocalizeModel<ConstantModel, aten::ConstantOp> {
  static LocalValues run(Localizer &localizer, OpBuilder &builder, aten::ConstantOp op,
                         ValueRange) {
    const Layout *layout = localizer.resultLayout(0);
    if (layout && layout->hasPartial()) {
      localizer.refuse() << "a constant is not a partial value; place it as R and redistribute";
      return failure();
    }
    RankedTensorType local = localizer.localResultType(0);
    auto elements = dyn_cast<DenseElementsAttr>(op.getValue());
    bool isSplat = elements && elements.isSplat();
    if (isSplat && local.hasStaticShape())
      return single(aten::ConstantOp::create(builder, op.getLoc(), local,
                                             elements.resizeSplat(cast<ShapedType>(local))));
    if (isSplat) {
      auto scalar = RankedTensorType::get({}, local.getElementType());
      Value fill = aten::ConstantOp::create(builder, op.getLoc(), scalar,
                                            elements.resizeSplat(cast<ShapedType>(scalar)));
      return single(localizer.emitter(builder).full(localizer.localSizes(builder, 0), fill));
    }
    Value whole = aten::ConstantOp::create(builder, op.getLoc(), localizer.globalResultType(0),
                                           op.getValue());
    return single(layout ? emitShard(localizer, builder, whole, *layout) : whole);
  }
};

struct ArangeModel : LocalizeModel<ArangeModel, aten::ArangeOp> {
  static LocalValues run(Localizer &localizer, OpBuilder &builder, aten::ArangeOp op,
                         ValueRange operands) {
    const Layout *layout = localizer.resultLayout(0);
    if (!layout || layout->splitOfDim(0).empty())
      return sameOp(localizer, builder, operands);
    Emitter emit = localizer.emitter(builder);
    LocalIndices indices = localizer.indices(builder);
    GlobalSize size = localizer.resultSize(builder, 0, 0);
    DimSplit split = layout->splitOfDim(0);
    Value offset = indices.offset(size, split);
    if (!offset) {
      Value whole = aten::ArangeOp::create(builder, op.getLoc(), localizer.globalResultType(0),
                                           static_cast<int64_t>(op.getStaticStart()), op.getStart(),
                                           static_cast<int64_t>(op.getStaticEnd()), op.getEnd(),
                                           static_cast<int64_t>(op.getStep()), op.getDtype());
      return single(emitShard(localizer, builder, whole, *layout));
    }
    int64_t step = static_cast<int64_t>(op.getStep());
    Value start = op.getStart() ? operands.front()
                                : indices.constant(static_cast<int64_t>(op.getStaticStart()));
    start = indices.add(start, indices.mul(offset, indices.constant(step)));
    return single(emit.range(start, indices.extent(size, split), step, op.getDtype()));
  }
};

/// The size is the global one, whatever a rank holds.
struct SymSizeModel : LocalizeModel<SymSizeModel, aten::SymSizeOp> {
  static LocalValues run(Localizer &localizer, OpBuilder &builder, aten::SymSizeOp op, ValueRange) {
    return single(localizer.indices(builder).global(
        localizer.operandSize(builder, 0, static_cast<int64_t>(op.getDim()))));
  }
};

/// What is overwritten is not needed any more: gradients are built by now.
struct CopyModel : LocalizeModel<CopyModel, aten::CopyOp> {
  static LocalValues run(Localizer &, OpBuilder &, aten::CopyOp op, ValueRange operands) {
    return single(operands[op.getSrcMutable().getOperandNumber()]);
  }
};

} // namespace

void shardc::attachCreationModels(MLIRContext *context) {
  attachModel<aten::CopyOp, CopyModel>(context);
  attachModel<aten::ConstantOp, ConstantModel>(context);
  attachModel<aten::ArangeOp, ArangeModel>(context);
  attachModel<aten::SymSizeOp, SymSizeModel>(context);
}
