// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reductions over sharded dims whose local form is not the reduction itself, and scans along one.
// (sum, prod, amax, amin, any and all are: their results are P(sum), P(prod), P(max) ... and an
// empty shard contributes the identity.)

#include "dialects/aten/Sorting.h"
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

/// The local scan, plus the sum of all that is on ranks before this one.
struct CumsumModel : LocalizeModel<CumsumModel, aten::CumsumOp> {
  static LocalValues run(Localizer &localizer, OpBuilder &builder, aten::CumsumOp op,
                         ValueRange operands) {
    int64_t dim = static_cast<int64_t>(op.getDim());
    DimSplit split =
        localizer.operandLayout(0) ? localizer.operandLayout(0)->splitOfDim(dim) : DimSplit();
    if (split.empty())
      return sameOp(localizer, builder, operands);
    if (llvm::any_of(split.axes, [](const AxisSplit &axis) { return !axis.isOnePiece(); })) {
      localizer.refuse() << "dim " << dim << " is sharded in blocks; replicate it before";
      return failure();
    }
    Emitter emit = localizer.emitter(builder);
    LocalIndices indices = localizer.indices(builder);
    Type type = localizer.localResultType(0).getElementType();
    Value x = emit.cast(operands[0], type);
    // One total for each rank, in the order of the shards.
    Value total = emit.sum(x, dim, /*keepdim=*/true);
    Layout onePerRank(localizer.getMesh().getValue());
    onePerRank.order = localizer.operandLayout(0)->order;
    SmallVector<int64_t> shape(aten::shapeOf(total));
    SmallVector<unsigned> axes;
    for (const AxisSplit &axis : split.axes) {
      onePerRank.placements[axis.axis] = Placement::shard(dim);
      axes.push_back(axis.axis);
      shape[dim] *= axis.count;
    }
    Value totals = localizer.allGather(builder, total, onePerRank,
                                       RankedTensorType::get(shape, type), dim, axes);
    // Those of ranks before this one. A mask, not a slice: its size is the same on every rank.
    Type i64 = builder.getI64Type();
    OpFoldResult count = builder.getIndexAttr(shape[dim]);
    Value first = arith::ConstantIndexOp::create(builder, op.getLoc(), 0);
    Value length = getValueOrCreateConstantIndexOp(builder, op.getLoc(), count);
    Value position =
        alongDim(emit, emit.range(first, length), count, dim, static_cast<int64_t>(shape.size()));
    Value mine = emit.ofIndex(indices.groupIndex(axes), i64);
    Value before =
        emit.where(emit.binary<aten::LtOp>(position, mine), totals, emit.scalar(0.0, type));
    Value scan = aten::CumsumOp::create(builder, op.getLoc(), x, dim, TypeAttr::get(type));
    return single(emit.add(scan, emit.sum(before, dim, true)));
  }
};

/// The first elements of what each rank has are gathered, with their positions, and the first of
/// those are the result. Ranks that have fewer than that gather all.
struct SortModel : LocalizeModel<SortModel, aten::SortOp> {
  static LocalValues run(Localizer &localizer, OpBuilder &builder, aten::SortOp op,
                         ValueRange operands) {
    auto dim = static_cast<int64_t>(op.getDim());
    DimSplit split =
        localizer.operandLayout(0) ? localizer.operandLayout(0)->splitOfDim(dim) : DimSplit();
    if (split.empty())
      return sameOp(localizer, builder, operands);
    LocalIndices indices = localizer.indices(builder);
    GlobalSize size = localizer.operandSize(builder, 0, dim);
    Value offset = indices.offset(size, split);
    if (!offset || !op.getCount()) {
      localizer.refuse() << "dim " << dim << " is sharded" << (offset ? "" : " in blocks")
                         << "; replicate it before";
      return failure();
    }
    auto count = static_cast<int64_t>(*op.getCount());
    auto sort = [&](Value x) {
      return aten::SortOp::create(builder, op.getLoc(), x, dim, op.getDescending(),
                                  op.getCountAttr());
    };
    Emitter emit = localizer.emitter(builder);
    Layout shards(localizer.getMesh().getValue());
    shards.order = localizer.operandLayout(0)->order;
    SmallVector<unsigned> axes;
    int64_t ranks = 1;
    for (const AxisSplit &axis : split.axes) {
      shards.placements[axis.axis] = localizer.operandLayout(0)->placements[axis.axis];
      axes.push_back(axis.axis);
      ranks *= axis.count;
    }
    auto gathered = [&](Value x, const Layout &layout, int64_t whole) {
      SmallVector<int64_t> shape(aten::shapeOf(x));
      shape[dim] = whole;
      return localizer.allGather(builder, x, layout,
                                 RankedTensorType::get(shape, aten::elementTypeOf(x)), dim, axes);
    };
    int64_t whole = size.fixed();
    if (whole == kDynamic) {
      localizer.refuse() << "dim " << dim << " has no known size; replicate it before";
      return failure();
    }
    if (split.distinctExtents(whole, split.axes.size()).front() < count)
      return SmallVector<Value>(sort(gathered(operands[0], shards, whole))->getResults());
    aten::SortOp own = sort(operands[0]);
    Value place = emit.add(own.getIndices(), emit.ofIndex(offset, builder.getI64Type()));
    Layout candidates(localizer.getMesh().getValue());
    candidates.order = shards.order;
    for (unsigned axis : axes)
      candidates.placements[axis] = Placement::shard(dim);
    aten::SortOp best = sort(gathered(own.getValues(), candidates, count * ranks));
    Value places = gathered(place, candidates, count * ranks);
    Value positions = aten::GatherOp::create(builder, op.getLoc(), places, dim, best.getIndices());
    return SmallVector<Value>{best.getValues(), positions};
  }
};

} // namespace

void shardc::attachReductionModels(MLIRContext *context) {
  attachModel<aten::MeanOp, MeanModel>(context);
  attachModel<aten::VectorNormOp, VectorNormModel>(context);
  attachModel<aten::ArgmaxOp, ArgModel<aten::ArgmaxOp>>(context);
  attachModel<aten::ArgminOp, ArgModel<aten::ArgminOp>>(context);
  attachModel<aten::CumsumOp, CumsumModel>(context);
  attachModel<aten::SortOp, SortModel>(context);
}
