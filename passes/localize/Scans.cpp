// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Scans along a sharded dim: the local scan, combined with what all ranks before this one have, or
// all ranks behind it where the scan is between two flips.

#include "passes/localize/Scans.h"

#include "dialects/aten/Scans.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "llvm/ADT/TypeSwitch.h"

#include <limits>

using namespace mlir;
using namespace shardc;

namespace {

/// Of an op: the combination of all elements along dims, whose size becomes 1; that of no elements;
/// and that of two.
template <typename Op> struct Combination;

template <> struct Combination<aten::CumsumOp> {
  static Value all(Emitter &emit, Value x, int64_t dim) { return emit.sum(x, dim, true); }
  static Value none(Emitter &emit, Type type) { return emit.scalar(0, type); }
  static Value two(Emitter &emit, Value x, Value y) { return emit.add(x, y); }
};

template <> struct Combination<aten::CumprodOp> {
  static Value all(Emitter &emit, Value x, int64_t dim) {
    OpBuilder &b = emit.getBuilder();
    return aten::ProdOp::create(b, emit.getLoc(), x, b.getDenseI64ArrayAttr(dim), true,
                                TypeAttr::get(aten::elementTypeOf(x)));
  }
  static Value none(Emitter &emit, Type type) { return emit.scalar(1, type); }
  static Value two(Emitter &emit, Value x, Value y) { return emit.mul(x, y); }
};

/// Of no elements, an extremum is the identity.
template <bool isMax> struct Extremum {
  static Value all(Emitter &emit, Value x, int64_t dim) {
    return isMax ? emit.amax(x, dim, true) : emit.amin(x, dim, true);
  }
  static Value none(Emitter &emit, Type type) {
    if (isa<FloatType>(type))
      return emit.scalar(isMax ? -kInfinity : kInfinity, type);
    bool isUnsigned = type.isUnsignedInteger() || type.isInteger(1);
    unsigned width = type.getIntOrFloatBitWidth();
    APInt value = isMax
                      ? (isUnsigned ? APInt::getMinValue(width) : APInt::getSignedMinValue(width))
                      : (isUnsigned ? APInt::getMaxValue(width) : APInt::getSignedMaxValue(width));
    return emit.integer(
        static_cast<int64_t>(isUnsigned ? value.getZExtValue() : uint64_t(value.getSExtValue())),
        type);
  }
  static Value two(Emitter &emit, Value x, Value y) {
    return isMax ? emit.binary<aten::MaximumOp>(x, y) : emit.binary<aten::MinimumOp>(x, y);
  }
  static constexpr double kInfinity = std::numeric_limits<double>::infinity();
};
template <> struct Combination<aten::CummaxOp> : Extremum<true> {};
template <> struct Combination<aten::CumminOp> : Extremum<false> {};

template <> struct Combination<aten::LogcumsumexpOp> {
  static Value all(Emitter &emit, Value x, int64_t dim) {
    OpBuilder &b = emit.getBuilder();
    return aten::LogsumexpOp::create(b, emit.getLoc(), x, b.getDenseI64ArrayAttr(dim), true);
  }
  static Value none(Emitter &emit, Type type) { return Extremum<true>::none(emit, type); }
  /// An infinite maximum is the result.
  static Value two(Emitter &emit, Value x, Value y) {
    Value max = emit.binary<aten::MaximumOp>(x, y), min = emit.binary<aten::MinimumOp>(x, y);
    Value ratio = emit.unary<aten::ExpOp>(emit.sub(min, max));
    Value sum = emit.add(max, emit.unary<aten::Log1pOp>(ratio));
    return emit.where(emit.unary<aten::IsinfOp>(max), max, sum);
  }
};

template <typename Op> struct ScanModel : LocalizeModel<ScanModel<Op>, Op> {
  using Of = Combination<Op>;

  static LocalValues run(Localizer &localizer, OpBuilder &builder, Op op, ValueRange operands) {
    int64_t dim = static_cast<int64_t>(op.getDim());
    DimSplit split =
        localizer.operandLayout(0) ? localizer.operandLayout(0)->splitOfDim(dim) : DimSplit();
    if (split.empty())
      return sameOp(localizer, builder, operands);
    if (llvm::any_of(split.axes, [](const AxisSplit &axis) { return !axis.isOnePiece(); })) {
      localizer.refuse() << "dim " << dim << " is sharded in blocks; replicate it before";
      return failure();
    }
    return along(localizer, builder, op, operands[0], *localizer.operandLayout(0),
                 /*isReversed=*/false);
  }

  /// Of shards in one piece each, from the first element on or from the last one back.
  static LocalValues along(Localizer &localizer, OpBuilder &builder, Op op, Value self,
                           const Layout &layout, bool isReversed) {
    auto dim = static_cast<int64_t>(op.getDim());
    DimSplit split = layout.splitOfDim(dim);
    Emitter emit = localizer.emitter(builder);
    LocalIndices indices = localizer.indices(builder);
    Type type = localizer.localResultType(0).getElementType();
    Value x = emit.cast(self, type);
    // One total for each rank, in the order of the shards.
    Value total = Of::all(emit, x, dim);
    Layout onePerRank(localizer.getMesh().getValue());
    onePerRank.order = layout.order;
    SmallVector<int64_t> shape(aten::shapeOf(total));
    SmallVector<unsigned> axes;
    for (const AxisSplit &axis : split.axes) {
      onePerRank.placements[axis.axis] = Placement::shard(dim);
      axes.push_back(axis.axis);
      shape[dim] *= axis.count;
    }
    Value totals = localizer.allGather(builder, total, onePerRank,
                                       RankedTensorType::get(shape, type), dim, axes);
    // Those of ranks before this one, or behind it. A mask, not a slice: its size is the same on
    // every rank.
    Type i64 = builder.getI64Type();
    OpFoldResult count = builder.getIndexAttr(shape[dim]);
    Value first = arith::ConstantIndexOp::create(builder, op.getLoc(), 0);
    Value length = getValueOrCreateConstantIndexOp(builder, op.getLoc(), count);
    Value position =
        alongDim(emit, emit.range(first, length), count, dim, static_cast<int64_t>(shape.size()));
    Value mine = emit.ofIndex(indices.groupIndex(axes), i64);
    Value isBefore = isReversed ? emit.binary<aten::GtOp>(position, mine)
                                : emit.binary<aten::LtOp>(position, mine);
    Value before = emit.where(isBefore, totals, Of::none(emit, type));
    auto flip = [&](Value value) -> Value {
      return isReversed ? aten::FlipOp::create(builder, op.getLoc(), value, dim).getResult()
                        : value;
    };
    Value prefix = Of::all(emit, before, dim);
    return single(Of::two(emit, prefix, flip(scan(builder, op, flip(x), dim, type))));
  }

  /// The result of `turned`, a flip of the op's result where the op scans a flip of another value
  /// along the same dim: a scan from the end. Each rank turns its own part alone.
  static LocalValues fromEnd(Localizer &localizer, OpBuilder &builder, aten::FlipOp turned, Op op) {
    auto dim = static_cast<int64_t>(op.getDim());
    auto first = op.getSelf().template getDefiningOp<aten::FlipOp>();
    auto turns = [&](aten::FlipOp flip) { return flip.getDims() == ArrayRef(dim); };
    if (!first || !turns(first) || !turns(turned) || !op->hasOneUse() || !first->hasOneUse())
      return failure();
    dist::LayoutAttr before = dist::getLayout(first.getSelf().getType());
    const Layout *due = localizer.resultLayout(0);
    if (!before || !due || !(before.getValue() == *due))
      return failure();
    DimSplit split = due->splitOfDim(dim);
    if (split.empty() || !due->partialAxes().empty() ||
        llvm::any_of(split.axes, [](const AxisSplit &axis) { return !axis.isOnePiece(); }))
      return failure();
    return along(localizer, builder, op, localizer.localOf(first.getSelf()), *due,
                 /*isReversed=*/true);
  }

  static Value scan(OpBuilder &builder, Op op, Value x, int64_t dim, Type type) {
    if constexpr (requires { op.getDtype(); })
      return Op::create(builder, op.getLoc(), x, dim, TypeAttr::get(type));
    else
      return Op::create(builder, op.getLoc(), x, dim);
  }
};

} // namespace

LocalValues shardc::scanFromEnd(Localizer &localizer, OpBuilder &builder, aten::FlipOp turned) {
  Operation *scan = turned.getSelf().getDefiningOp();
  if (!scan)
    return failure();
  return llvm::TypeSwitch<Operation *, LocalValues>(scan)
      .Case<aten::CumsumOp, aten::CumprodOp, aten::CummaxOp, aten::CumminOp, aten::LogcumsumexpOp>(
          [&](auto op) { return ScanModel<decltype(op)>::fromEnd(localizer, builder, turned, op); })
      .Default(LocalValues(failure()));
}

void shardc::attachScanModels(MLIRContext *context) {
  attachModel<aten::CumsumOp, ScanModel<aten::CumsumOp>>(context);
  attachModel<aten::CumprodOp, ScanModel<aten::CumprodOp>>(context);
  attachModel<aten::CummaxOp, ScanModel<aten::CummaxOp>>(context);
  attachModel<aten::CumminOp, ScanModel<aten::CumminOp>>(context);
  attachModel<aten::LogcumsumexpOp, ScanModel<aten::LogcumsumexpOp>>(context);
}
