// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Softmax, log-softmax and log-sum-exp over a sharded dim: the largest element and the sum of
// exponentials are reduced over the ranks, two numbers a row, and nothing is gathered. An empty
// shard contributes the identities, -inf and 0.

#include "passes/localize/Models.h"

using namespace mlir;
using namespace shardc;

namespace {

/// exp(x - m) and its sum over `dims` on all ranks, with m the largest element on all ranks.
struct ExpSum {
  Value largest;  ///< keeps the dims, size 1
  Value centered; ///< x - m
  Value exp, sum;
};

ExpSum expSum(Localizer &localizer, OpBuilder &builder, Value x, ArrayRef<int64_t> dims,
              bool guardInfinite) {
  Emitter emit = localizer.emitter(builder);
  SmallVector<unsigned> axes = localizer.operandAxes(0, dims);
  ExpSum r;
  r.largest = localizer.allReduce(builder, emit.amax(x, dims, true), axes, Reduction::Max);
  if (guardInfinite) { // as PyTorch's logsumexp: inf - inf must not appear
    Value zero = emit.scalar(0.0, aten::elementTypeOf(x));
    r.largest = emit.where(emit.unary<aten::IsinfOp>(r.largest), zero, r.largest);
  }
  r.centered = emit.sub(x, r.largest);
  r.exp = emit.unary<aten::ExpOp>(r.centered);
  r.sum = localizer.allReduce(builder, emit.sum(r.exp, dims, true), axes, Reduction::Sum);
  return r;
}

template <typename Op> struct SoftmaxModel : LocalizeModel<SoftmaxModel<Op>, Op> {
  static LocalValues run(Localizer &localizer, OpBuilder &builder, Op op, ValueRange operands) {
    int64_t dim = static_cast<int64_t>(op.getDim());
    if (localizer.operandAxes(0, dim).empty())
      return sameOp(localizer, builder, operands);
    Emitter emit = localizer.emitter(builder);
    Type type = localizer.localResultType(0).getElementType();
    // Short floats are computed in f32, as PyTorch does.
    Value x = emit.cast(emit.cast(operands[0], type), Emitter::accumulator(type));
    ExpSum r = expSum(localizer, builder, x, dim, /*guardInfinite=*/false);
    Value y = std::is_same_v<Op, aten::SoftmaxOp>
                  ? emit.div(r.exp, r.sum)
                  : emit.sub(r.centered, emit.unary<aten::LogOp>(r.sum));
    return single(emit.cast(y, type));
  }
};

struct LogsumexpModel : LocalizeModel<LogsumexpModel, aten::LogsumexpOp> {
  static LocalValues run(Localizer &localizer, OpBuilder &builder, aten::LogsumexpOp op,
                         ValueRange operands) {
    SmallVector<int64_t> dims = reducedDims(op.getDim(), localizer.globalOperandType(0).getRank());
    if (localizer.operandAxes(0, dims).empty())
      return sameOp(localizer, builder, operands);
    Emitter emit = localizer.emitter(builder);
    Type type = localizer.localResultType(0).getElementType();
    Value x = emit.cast(emit.cast(operands[0], type), Emitter::accumulator(type));
    ExpSum r = expSum(localizer, builder, x, dims, /*guardInfinite=*/true);
    Value y = emit.cast(emit.add(emit.unary<aten::LogOp>(r.sum), r.largest), type);
    return single(op.getKeepdim() ? y : emit.view(y, localizer.localSizes(builder, 0)));
  }
};

} // namespace

void shardc::attachSoftmaxModels(MLIRContext *context) {
  attachModel<aten::SoftmaxOp, SoftmaxModel<aten::SoftmaxOp>>(context);
  attachModel<aten::LogSoftmaxOp, SoftmaxModel<aten::LogSoftmaxOp>>(context);
  attachModel<aten::LogsumexpOp, LogsumexpModel>(context);
}
