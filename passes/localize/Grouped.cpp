// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rows times the matrix that each names, where ranks have some of the matrices each: an index
// counts from the first one that this rank has, and those of others name none here.

#include "passes/localize/Grouped.h"

#include "dialects/aten/Grouped.h"
#include "passes/localize/Models.h"

using namespace mlir;
using namespace shardc;

/// Null after a diagnostic. `split` is that of the dim that counts matrices.
static Value localIndex(Localizer &localizer, OpBuilder &builder, Value index,
                        const GlobalSize &size, const DimSplit &split) {
  Value offset = localizer.indices(builder).offset(size, split);
  if (!offset) {
    localizer.refuse() << "the dim that counts matrices is sharded in blocks; replicate it before";
    return nullptr;
  }
  Emitter emit = localizer.emitter(builder);
  return emit.sub(index, emit.ofIndex(offset, aten::elementTypeOf(index)));
}

/// `op`, which has a part of so many matrices.
static LocalValues ofAll(Operation *op, int64_t matrices) {
  if (!ShapedType::isDynamic(matrices))
    op->setAttr(aten::kAllMatricesAttr,
                IntegerAttr::get(IntegerType::get(op->getContext(), 64), matrices));
  return single(op->getResult(0));
}

static DimSplit splitOf(const Layout *layout) {
  return layout ? layout->splitOfDim(0) : DimSplit();
}

namespace {

struct IndexedMmModel : LocalizeModel<IndexedMmModel, aten::IndexedMmOp> {
  static LocalValues run(Localizer &localizer, OpBuilder &builder, aten::IndexedMmOp op,
                         ValueRange operands) {
    DimSplit split = splitOf(localizer.operandLayout(1));
    if (split.empty())
      return sameOp(localizer, builder, operands);
    Value index =
        localIndex(localizer, builder, operands[2], localizer.operandSize(builder, 1, 0), split);
    if (!index)
      return failure();
    return ofAll(aten::IndexedMmOp::create(builder, op.getLoc(), operands[0], operands[1], index,
                                           op.getSorted()),
                 localizer.globalOperandType(1).getDimSize(0));
  }
};

struct IndexedOuterModel : LocalizeModel<IndexedOuterModel, aten::IndexedOuterOp> {
  static LocalValues run(Localizer &localizer, OpBuilder &builder, aten::IndexedOuterOp op,
                         ValueRange operands) {
    DimSplit split = splitOf(localizer.resultLayout(0));
    Value index = operands[2];
    if (!split.empty())
      index = localIndex(localizer, builder, index, localizer.resultSize(builder, 0, 0), split);
    if (!index)
      return failure();
    int64_t all =
        split.empty() ? ShapedType::kDynamic : localizer.globalResultType(0).getDimSize(0);
    SmallVector<int64_t> fixed;
    SmallVector<Value> dynamic;
    splitMixed(localizer.localSizes(builder, 0).front(), fixed, dynamic);
    return ofAll(aten::IndexedOuterOp::create(builder, op.getLoc(), operands[0], operands[1], index,
                                              fixed, dynamic, op.getSorted()),
                 all);
  }
};

} // namespace

void shardc::attachGroupedModels(MLIRContext *context) {
  attachModel<aten::IndexedMmOp, IndexedMmModel>(context);
  attachModel<aten::IndexedOuterOp, IndexedOuterModel>(context);
}
