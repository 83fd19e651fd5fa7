// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Norms over sharded dims: sums are reduced over the ranks, one number a row at a time, and divided
// by the global count (G6). The variance takes two passes, the mean first and then the squares of
// the differences from it, which is as exact as PyTorch's; the sum of squares alone would cancel.

#include "dialects/interfaces/FewUsers.h"
#include "passes/localize/Models.h"

#include "llvm/ADT/Sequence.h"

using namespace mlir;
using namespace shardc;

static SmallVector<int64_t> trailingDims(Localizer &localizer, size_t count) {
  int64_t rank = localizer.globalOperandType(0).getRank();
  return llvm::to_vector(llvm::seq<int64_t>(rank - static_cast<int64_t>(count), rank));
}

/// Sum over `dims` on all ranks, divided by the global count: in the order in which `aten.mean`
/// does both, so that a mean of the same elements elsewhere is the same collective. The dims stay,
/// with size 1.
static Value globalMean(Localizer &localizer, OpBuilder &builder, Value x, ArrayRef<int64_t> dims,
                        Value count, bool keepdim = true) {
  Emitter emit = localizer.emitter(builder);
  Value mean = localizer.allReduce(builder, emit.div(emit.sum(x, dims, keepdim), count),
                                   localizer.operandAxes(0, dims), Reduction::Sum);
  if (keepdim)
    return mean;
  SmallVector<OpFoldResult> sizes = localizer.operandSizes(builder, 0);
  for (int64_t dim : dims)
    sizes[dim] = builder.getIndexAttr(1);
  return emit.view(mean, sizes);
}

/// Whether a mean over `dims` of what `op` takes the variance of keeps the dims; yes if there is
/// none.
static bool doesMeanKeepDims(aten::VarOp op, ArrayRef<int64_t> dims) {
  if (!hasFewUsers(op.getSelf()))
    return true;
  int64_t rank = aten::typeOf(op.getSelf()).getRank();
  for (Operation *user : op.getSelf().getUsers()) {
    auto mean = dyn_cast<aten::MeanOp>(user);
    if (mean && reducedDims(mean.getDim(), rank) == dims)
      return mean.getKeepdim();
  }
  return true;
}

static Value countOf(Localizer &localizer, OpBuilder &builder, ArrayRef<int64_t> dims, Type type) {
  OpFoldResult count = localizer.globalCount(builder, 0, dims);
  Emitter emit = localizer.emitter(builder);
  if (std::optional<int64_t> fixed = getConstantIntValue(count))
    return emit.scalar(static_cast<double>(*fixed), type);
  return emit.ofIndex(cast<Value>(count), type);
}

/// y * weight + bias in the accumulator's type, then in that of the result.
static Value affine(Emitter &emit, Value y, Value weight, Value bias, Type resultType) {
  Type type = aten::elementTypeOf(y);
  if (weight)
    y = emit.mul(y, emit.cast(weight, type));
  if (bias)
    y = emit.add(y, emit.cast(bias, type));
  return emit.cast(y, resultType);
}

namespace {

struct LayerNormModel : LocalizeModel<LayerNormModel, aten::LayerNormOp> {
  static LocalValues run(Localizer &localizer, OpBuilder &builder, aten::LayerNormOp op,
                         ValueRange operands) {
    SmallVector<int64_t> dims = trailingDims(localizer, op.getNormalizedShape().size());
    if (localizer.operandAxes(0, dims).empty())
      return sameOp(localizer, builder, operands);
    Emitter emit = localizer.emitter(builder);
    Type resultType = localizer.localResultType(0).getElementType();
    Type type = Emitter::accumulator(resultType);
    Value count = countOf(localizer, builder, dims, type);
    Value x = emit.cast(operands[0], type);
    Value centered = emit.sub(x, globalMean(localizer, builder, x, dims, count));
    Value variance = globalMean(localizer, builder, emit.mul(centered, centered), dims, count);
    Value eps = emit.scalar(op.getEps().convertToDouble(), type);
    Value y = emit.mul(centered, emit.unary<aten::RsqrtOp>(emit.add(variance, eps)));
    unsigned next = 1;
    Value weight = op.getWeight() ? operands[next++] : Value();
    Value bias = op.getBias() ? operands[next] : Value();
    return single(affine(emit, y, weight, bias, resultType));
  }
};

struct RmsNormModel : LocalizeModel<RmsNormModel, aten::RmsNormOp> {
  static LocalValues run(Localizer &localizer, OpBuilder &builder, aten::RmsNormOp op,
                         ValueRange operands) {
    SmallVector<int64_t> dims = trailingDims(localizer, op.getNormalizedShape().size());
    if (localizer.operandAxes(0, dims).empty())
      return sameOp(localizer, builder, operands);
    Emitter emit = localizer.emitter(builder);
    Type inputType = aten::elementTypeOf(operands[0]);
    Type resultType = localizer.localResultType(0).getElementType();
    Type type = Emitter::accumulator(inputType);
    Value x = emit.cast(operands[0], type);
    Value square = globalMean(localizer, builder, emit.mul(x, x), dims,
                              countOf(localizer, builder, dims, type));
    double eps = op.getEps()
                     ? op.getEps()->convertToDouble()
                     : std::ldexp(1.0, 1 - static_cast<int>(APFloat::semanticsPrecision(
                                               cast<FloatType>(inputType).getFloatSemantics())));
    Value y = emit.mul(x, emit.unary<aten::RsqrtOp>(emit.add(square, emit.scalar(eps, type))));
    return single(affine(emit, y, op.getWeight() ? operands[1] : Value(), Value(), resultType));
  }
};

struct VarModel : LocalizeModel<VarModel, aten::VarOp> {
  static LocalValues run(Localizer &localizer, OpBuilder &builder, aten::VarOp op,
                         ValueRange operands) {
    SmallVector<int64_t> dims = reducedDims(op.getDim(), localizer.globalOperandType(0).getRank());
    SmallVector<unsigned> axes = localizer.operandAxes(0, dims);
    if (axes.empty())
      return sameOp(localizer, builder, operands);
    Emitter emit = localizer.emitter(builder);
    Type resultType = localizer.localResultType(0).getElementType();
    Type type = Emitter::accumulator(resultType);
    Value count = countOf(localizer, builder, dims, type);
    Value x = emit.cast(operands[0], type);
    Value mean = globalMean(localizer, builder, x, dims, count, doesMeanKeepDims(op, dims));
    Value centered = emit.sub(x, mean);
    Value squares = emit.sum(emit.mul(centered, centered), dims, op.getKeepdim());
    squares = localizer.allReduce(builder, squares, axes, Reduction::Sum);
    // The divisor is not less than 0, as in PyTorch.
    Value divisor = emit.sub(count, emit.scalar(op.getCorrection().convertToDouble(), type));
    divisor = emit.binary<aten::MaximumOp>(divisor, emit.scalar(0.0, type));
    return single(emit.cast(emit.div(squares, divisor), resultType));
  }
};

} // namespace

void shardc::attachNormalizationModels(MLIRContext *context) {
  attachModel<aten::LayerNormOp, LayerNormModel>(context);
  attachModel<aten::RmsNormOp, RmsNormModel>(context);
  attachModel<aten::VarOp, VarModel>(context);
}
