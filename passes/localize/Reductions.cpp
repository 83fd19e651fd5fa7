// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reductions over sharded dims whose local form is not the reduction itself.
// (sum, prod, amax, amin, any and all are: their results are P(sum), P(prod), P(max) ... and an
// empty shard contributes the identity.)

#include "passes/localize/Models.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"

#include <cmath>

using namespace mlir;
using namespace shardc;

namespace {

/// A mean is a sum over the ranks divided by the global count, never a mean of means (G6).
struct MeanModel : LocalizeModel<MeanModel, aten::MeanOp> {
  static LocalValues run(Localizer &localizer, OpBuilder &builder, aten::MeanOp op,
                         ValueRange operands) {
    SmallVector<int64_t> dims = reducedDims(op.getDim(), localizer.globalOperandType(0).getRank());
    SmallVector<unsigned> axes = localizer.operandAxes(0, dims);
    if (axes.empty())
      return sameOp(localizer, builder, operands);
    double ranks = 1; // P(avg) divides by the number of ranks: multiply by it before
    for (unsigned axis : axes) {
      const Placement &placement = localizer.resultLayout(0)->placements[axis];
      if (placement == Placement::partial(Reduction::Avg))
        ranks *= static_cast<double>(localizer.getMesh().getValue().axes[axis].size);
      else if (placement != Placement::partial(Reduction::Sum)) {
        localizer.refuse() << "a mean over a sharded dim is P(sum) over its axis";
        return failure();
      }
    }
    Emitter emit = localizer.emitter(builder);
    Type type = localizer.localResultType(0).getElementType();
    Value sum = emit.sum(emit.cast(operands[0], type), dims, op.getKeepdim());
    OpFoldResult count = localizer.globalCount(builder, 0, dims);
    if (std::optional<int64_t> fixed = getConstantIntValue(count))
      return single(emit.div(sum, emit.scalar(static_cast<double>(*fixed) / ranks, type)));
    Value divisor = emit.ofIndex(cast<Value>(count), type);
    Value mean = emit.div(sum, divisor);
    return single(ranks == 1 ? mean : emit.mul(mean, emit.scalar(ranks, type)));
  }
};

/// Powers are summed over the ranks, and the root is taken of the sum.
struct VectorNormModel : LocalizeModel<VectorNormModel, aten::VectorNormOp> {
  static LocalValues run(Localizer &localizer, OpBuilder &builder, aten::VectorNormOp op,
                         ValueRange operands) {
    SmallVector<int64_t> dims = reducedDims(op.getDim(), localizer.globalOperandType(0).getRank());
    SmallVector<unsigned> axes = localizer.operandAxes(0, dims);
    if (axes.empty())
      return sameOp(localizer, builder, operands);
    Emitter emit = localizer.emitter(builder);
    Type resultType = localizer.localResultType(0).getElementType();
    Type type = Emitter::accumulator(resultType);
    Value x = emit.cast(emit.cast(operands[0], resultType), type);
    double order = op.getOrd().convertToDouble();
    bool keep = op.getKeepdim();
    auto reduced = [&](Value local, Reduction reduction) {
      return localizer.allReduce(builder, local, axes, reduction);
    };
    auto sumOfPowers = [&](Value powers) {
      return reduced(emit.sum(powers, dims, keep), Reduction::Sum);
    };
    Value y;
    if (std::isinf(order)) {
      Value magnitude = emit.unary<aten::AbsOp>(x);
      y = order > 0 ? reduced(emit.amax(magnitude, dims, keep), Reduction::Max)
                    : reduced(emit.amin(magnitude, dims, keep), Reduction::Min);
    } else if (order == 0) {
      Value nonzero = emit.binary<aten::NeOp>(x, emit.scalar(0.0, type));
      y = sumOfPowers(emit.cast(nonzero, type));
    } else if (order == 1) {
      y = sumOfPowers(emit.unary<aten::AbsOp>(x));
    } else if (order == 2) {
      y = emit.unary<aten::SqrtOp>(sumOfPowers(emit.mul(x, x)));
    } else {
      Value magnitude = emit.unary<aten::AbsOp>(x);
      Value power = emit.binary<aten::PowOp>(magnitude, emit.scalar(order, type));
      y = emit.binary<aten::PowOp>(sumOfPowers(power), emit.scalar(1 / order, type));
    }
    return single(emit.cast(y, resultType));
  }
};

/// The extreme value over all ranks, then the least global position that has it; NaN counts as the
/// extreme. Two small reductions; a rank without elements proposes the last position there is.
template <typename Op> struct ArgModel : LocalizeModel<ArgModel<Op>, Op> {
  static LocalValues run(Localizer &localizer, OpBuilder &builder, Op op, ValueRange operands) {
    RankedTensorType type = localizer.globalOperandType(0);
    int64_t rank = type.getRank();
    std::optional<uint64_t> dim = op.getDim();
    SmallVector<int64_t> dims =
        dim ? SmallVector<int64_t>{static_cast<int64_t>(*dim)} : reducedDims(std::nullopt, rank);
    SmallVector<unsigned> axes = localizer.operandAxes(0, dims);
    if (axes.empty())
      return sameOp(localizer, builder, operands);
    Emitter emit = localizer.emitter(builder);
    Type i64 = builder.getI64Type();
    Value x = operands[0], none = emit.integer(std::numeric_limits<int64_t>::max(), i64);
    bool largest = std::is_same_v<Op, aten::ArgmaxOp>;
    Value extreme = largest ? emit.amax(x, dims, true) : emit.amin(x, dims, true);
    extreme =
        localizer.allReduce(builder, extreme, axes, largest ? Reduction::Max : Reduction::Min);
    Value hit = emit.binary<aten::EqOp>(x, extreme);
    if (isa<FloatType>(type.getElementType()))
      hit = emit.binary<aten::LogicalOrOp>(hit, emit.unary<aten::IsnanOp>(x));
    Value position = globalPosition(localizer, builder, dims);
    if (!position)
      return failure();
    Value least = emit.amin(emit.where(hit, position, none), dims, op.getKeepdim());
    return single(localizer.allReduce(builder, least, axes, Reduction::Min));
  }

  /// Row-major position over `dims` of each element of this rank; null after a diagnostic.
  static Value globalPosition(Localizer &localizer, OpBuilder &builder, ArrayRef<int64_t> dims) {
    Emitter emit = localizer.emitter(builder);
    int64_t rank = localizer.globalOperandType(0).getRank();
    SmallVector<OpFoldResult> sizes = localizer.operandSizes(builder, 0);
    Value position;
    int64_t stride = 1;
    for (int64_t dim : llvm::reverse(dims)) {
      GlobalSize size = localizer.operandSize(builder, 0, dim);
      if (stride == kDynamic) {
        localizer.refuse() << "the position in a flattened tensor of symbolic size";
        return nullptr;
      }
      Value range =
          globalRange(localizer, builder, size, localizer.operandLayout(0)->splitOfDim(dim));
      Value along = alongDim(emit, range, sizes[dim], dim, rank);
      if (stride != 1)
        along = emit.mul(along, emit.integer(stride, builder.getI64Type()));
      position = position ? emit.add(position, along) : along;
      stride = size.fixed() == kDynamic ? kDynamic : stride * size.fixed();
    }
    return position;
  }
};

} // namespace

void shardc::attachReductionModels(MLIRContext *context) {
  attachModel<aten::MeanOp, MeanModel>(context);
  attachModel<aten::VectorNormOp, VectorNormModel>(context);
  attachModel<aten::ArgmaxOp, ArgModel<aten::ArgmaxOp>>(context);
  attachModel<aten::ArgminOp, ArgModel<aten::ArgminOp>>(context);
}
