// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Parts and wholes along a sharded dim: what each rank needs must be its own, at a place that may
// differ from rank to rank (a fused weight in blocks is cut into its blocks this way).

#include "dialects/aten/Concatenation.h"
#include "passes/localize/Models.h"
#include "passes/localize/Parts.h"
#include "passes/localize/Rearrangements.h"
#include "passes/localize/Scans.h"
#include "passes/localize/SymbolicParts.h"

using namespace mlir;
using namespace shardc;

static LogicalResult refuseForeignElements(Localizer &localizer, int64_t dim) {
  localizer.refuse() << "along dim " << dim
                     << " a rank would need elements of other ranks; replicate the dim before";
  return failure();
}

/// [start, start + length * step) of dim `dim`, where `starts` says where it begins on each rank.
static Value sliceAt(Localizer &localizer, OpBuilder &builder, Value value, int64_t dim,
                     ArrayRef<int64_t> starts, unsigned result, int64_t step) {
  LocalIndices indices = localizer.indices(builder);
  Value start = indices.table(starts);
  Value length = indices.extent(localizer.resultSize(builder, result, dim),
                                localizer.resultLayout(result)->splitOfDim(dim));
  Value end = indices.add(start, indices.mul(length, indices.constant(step)));
  Value slice = localizer.emitter(builder).slice(value, dim, start, end, step);
  slice.setType(localizer.localResultType(result));
  return slice;
}

/// Whether a rank has several pieces of the dim: blocks of a symbolic size are not told apart.
static bool isInPieces(const Layout *layout, int64_t dim) {
  return layout && llvm::any_of(layout->splitOfDim(dim).axes,
                                [](const AxisSplit &axis) { return !axis.isOnePiece(); });
}

/// Of one operand along dims of known sizes at once, and along each of symbolic size by `move`,
/// which takes what is moved so far and its sizes, and changes them.
static LocalValues
moveDims(Localizer &localizer, OpBuilder &builder, ValueRange operands, ArrayRef<int64_t> dims,
         function_ref<Value(int64_t, Value, SmallVectorImpl<OpFoldResult> &)> move) {
  SmallVector<int64_t> known, symbolic;
  for (int64_t dim : dims)
    (ShapedType::isDynamic(localizer.globalOperandType(0).getDimSize(dim)) ? symbolic : known)
        .push_back(dim);
  LocalValues moved = SmallVector<Value>{operands[0]};
  if (!known.empty())
    moved = moveAlong(localizer, builder, operands, known);
  if (failed(moved) || symbolic.empty())
    return moved;
  SmallVector<OpFoldResult> sizes = localizer.operandSizes(builder, 0);
  for (int64_t dim : known)
    sizes[dim] = localizer.localSizes(builder, 0)[dim];
  for (int64_t dim : symbolic)
    moved->front() = move(dim, moved->front(), sizes);
  return moved;
}

namespace {

struct SliceModel : LocalizeModel<SliceModel, aten::SliceOp> {
  static LocalValues run(Localizer &localizer, OpBuilder &builder, aten::SliceOp op,
                         ValueRange operands) {
    int64_t dim = static_cast<int64_t>(op.getDim()), step = static_cast<int64_t>(op.getStep());
    bool sharded = !localizer.operandAxes(0, dim).empty();
    if (!sharded && localizer.resultLayout(0)->splitOfDim(dim).empty())
      return sameOp(localizer, builder, operands);
    int64_t size = localizer.globalOperandType(0).getDimSize(dim);
    if (isWhole(localizer, builder, op, dim))
      return single(operands[0]);
    if (ShapedType::isDynamic(size) || op.getStart() || op.getEnd()) {
      if (isInPieces(localizer.operandLayout(0), dim) || isInPieces(localizer.resultLayout(0), dim))
        return refuseForeignElements(localizer, dim);
      return sliceSymbolic(localizer, builder, op, operands[0]);
    }
    // What comes from other ranks goes straight to where it is needed.
    if (isBehindMoves(localizer, dim))
      return moveAlong(localizer, builder, operands, dim);
    std::optional<std::vector<int64_t>> starts =
        localSliceStarts(localizer.getMesh().getValue(), localizer.operandDim(0, dim),
                         localizer.resultDim(0, dim), startOf(op), step);
    if (!starts)
      return moveAlong(localizer, builder, operands, dim);
    return single(sliceAt(localizer, builder, operands[0], dim, *starts, 0, step));
  }

  /// Nothing is cut off, and nothing moves.
  static bool isWhole(Localizer &localizer, OpBuilder &builder, aten::SliceOp op, int64_t dim) {
    dist::SizeAttr size = localizer.operandSize(builder, 0, dim).size;
    return size && size == localizer.resultSize(builder, 0, dim).size && op.getStep() == 1 &&
           localizer.operandLayout(0)->splitOfDim(dim) ==
               localizer.resultLayout(0)->splitOfDim(dim);
  }
};

struct SplitModel : LocalizeModel<SplitModel, aten::SplitWithSizesOp> {
  static LocalValues run(Localizer &localizer, OpBuilder &builder, aten::SplitWithSizesOp op,
                         ValueRange operands) {
    int64_t dim = static_cast<int64_t>(op.getDim());
    bool sharded = !localizer.operandAxes(0, dim).empty();
    for (unsigned i = 0; i < op.getNumResults(); ++i)
      sharded |= !localizer.resultLayout(i)->splitOfDim(dim).empty();
    if (!sharded)
      return sameOp(localizer, builder, operands);
    if (!op.getSplitSizes().empty() ||
        ShapedType::isDynamic(localizer.globalOperandType(0).getDimSize(dim))) {
      bool inPieces = isInPieces(localizer.operandLayout(0), dim);
      for (unsigned i = 0; i < op.getNumResults(); ++i)
        inPieces |= isInPieces(localizer.resultLayout(i), dim);
      if (inPieces)
        return refuseForeignElements(localizer, dim);
      return splitSymbolic(localizer, builder, op, operands[0]);
    }
    SmallVector<Value> parts;
    int64_t start = 0;
    for (unsigned i = 0; i < op.getNumResults() && !isBehindMoves(localizer, dim); ++i) {
      std::optional<std::vector<int64_t>> starts =
          localSliceStarts(localizer.getMesh().getValue(), localizer.operandDim(0, dim),
                           localizer.resultDim(i, dim), start, 1);
      if (!starts)
        break;
      parts.push_back(sliceAt(localizer, builder, operands[0], dim, *starts, i, 1));
      start += localizer.resultDim(i, dim).size;
    }
    if (parts.size() != op.getNumResults())
      return moveAlong(localizer, builder, operands, dim);
    return parts;
  }
};

/// One position of a sharded dim: its owner has it, the others contribute nothing.
struct SelectModel : LocalizeModel<SelectModel, aten::SelectOp> {
  static LocalValues run(Localizer &localizer, OpBuilder &builder, aten::SelectOp op,
                         ValueRange operands) {
    int64_t dim = static_cast<int64_t>(op.getDim());
    SmallVector<unsigned> axes = localizer.operandAxes(0, dim);
    if (axes.empty())
      return sameOp(localizer, builder, operands);
    Emitter emit = localizer.emitter(builder);
    LocalIndices indices = localizer.indices(builder);
    GlobalSize size = localizer.operandSize(builder, 0, dim);
    DimSplit split = localizer.operandLayout(0)->splitOfDim(dim);
    bool isBool = aten::elementTypeOf(operands[0]).isInteger(1);
    if (!isPartialOver(localizer, axes, isBool ? Reduction::Max : Reduction::Sum)) {
      localizer.refuse() << "the position is on one rank only, so the result must be "
                         << (isBool ? "P(max)" : "P(sum)") << " over that axis";
      return failure();
    }
    Value offset = indices.offset(size, split);
    if (!offset) {
      localizer.refuse() << "dim " << dim << " is sharded in blocks; replicate it before";
      return failure();
    }
    int64_t fixed = static_cast<int64_t>(op.getStaticIndex());
    Value index = op.getIndex() ? operands.back() : indices.constant(fixed);
    if (!op.getIndex() && fixed < 0)
      index = indices.add(index, indices.global(size));
    Value extent = indices.extent(size, split), zero = indices.constant(0);
    auto clip = [&](Value bound) { return indices.min(indices.max(bound, zero), extent); };
    Value begin = indices.sub(index, offset);
    Value part =
        emit.slice(operands[0], dim, clip(begin), clip(indices.add(begin, indices.constant(1))));
    return single(isBool ? aten::AnyOp::create(builder, op.getLoc(), part,
                                               builder.getDenseI64ArrayAttr({dim}), false)
                         : emit.sum(part, {dim}, /*keepdim=*/false));
  }
};

struct CatModel : LocalizeModel<CatModel, aten::CatOp> {
  static LocalValues run(Localizer &localizer, OpBuilder &builder, aten::CatOp op,
                         ValueRange operands) {
    int64_t dim = static_cast<int64_t>(op.getDim());
    bool sharded = !localizer.resultLayout(0)->splitOfDim(dim).empty();
    bool isStatic = !ShapedType::isDynamic(localizer.globalResultType(0).getDimSize(dim));
    int64_t rank = aten::rankOfCat(op.getTensors());
    std::vector<SplitDim> inputs;
    for (unsigned i = 0; i < operands.size(); ++i) {
      if (aten::isSkippedByCat(op.getTensors()[i], rank))
        continue;
      sharded |= !localizer.operandAxes(i, dim).empty();
      inputs.push_back(localizer.operandDim(i, dim));
      isStatic &= !ShapedType::isDynamic(inputs.back().size);
    }
    if (!sharded)
      return sameOp(localizer, builder, operands);
    if (!isStatic) {
      bool inPieces = isInPieces(localizer.resultLayout(0), dim);
      for (unsigned i = 0; i < operands.size(); ++i)
        if (!aten::isSkippedByCat(op.getTensors()[i], rank))
          inPieces |= isInPieces(localizer.operandLayout(i), dim);
      if (inPieces)
        return refuseForeignElements(localizer, dim);
      return joinSymbolic(localizer, builder, op, operands);
    }
    if (!isBehindMoves(localizer, dim) &&
        isLocalConcatenation(localizer.getMesh().getValue(), inputs, localizer.resultDim(0, dim)))
      return sameOp(localizer, builder, operands);
    return moveAlong(localizer, builder, operands, dim);
  }
};

struct PadModel : LocalizeModel<PadModel, aten::ConstantPadNdOp> {
  static LocalValues run(Localizer &localizer, OpBuilder &builder, aten::ConstantPadNdOp op,
                         ValueRange operands) {
    SmallVector<int64_t> dims = shardedMovedDims(localizer);
    if (dims.empty())
      return sameOp(localizer, builder, operands);
    LocalValues moved =
        moveDims(localizer, builder, operands, dims, [&](int64_t dim, Value value, auto &sizes) {
          return padSymbolic(localizer, builder, op, dim, value, sizes);
        });
    if (failed(moved))
      return failure();
    // The other dims are padded alike on all ranks.
    SmallVector<int64_t> rest(op.getPad());
    for (int64_t dim : dims)
      for (size_t side = 0; side < 2; ++side)
        rest[amountsOf(op, dim) + side] = 0;
    if (llvm::all_of(rest, [](int64_t amount) { return amount == 0; })) {
      moved->front().setType(localizer.localResultType(0));
      return moved;
    }
    Value padded =
        aten::ConstantPadNdOp::create(builder, op.getLoc(), moved->front(), rest, op.getValue());
    padded.setType(localizer.localResultType(0));
    return single(padded);
  }
};

/// Zeroes a triangle of the last two dims by their global indices.
template <typename Op> struct TriangleModel : LocalizeModel<TriangleModel<Op>, Op> {
  static LocalValues run(Localizer &localizer, OpBuilder &builder, Op op, ValueRange operands) {
    int64_t rank = localizer.globalOperandType(0).getRank();
    if (localizer.operandAxes(0, {rank - 2, rank - 1}).empty())
      return sameOp(localizer, builder, operands);
    Emitter emit = localizer.emitter(builder);
    SmallVector<OpFoldResult> sizes = localizer.localSizes(builder, 0);
    auto indexOf = [&](int64_t dim) {
      Value range = globalRange(localizer, builder, localizer.operandSize(builder, 0, dim),
                                localizer.operandLayout(0)->splitOfDim(dim));
      return alongDim(emit, range, sizes[dim], dim, rank);
    };
    Value diagonal = emit.integer(static_cast<int64_t>(op.getDiagonal()), builder.getI64Type());
    Value limit = emit.add(indexOf(rank - 2), diagonal), column = indexOf(rank - 1);
    Value keep = std::is_same_v<Op, aten::TrilOp> ? emit.binary<aten::LeOp>(column, limit)
                                                  : emit.binary<aten::GeOp>(column, limit);
    Type elementType = aten::elementTypeOf(operands[0]);
    return single(emit.where(keep, operands[0], emit.integer(0, elementType)));
  }
};

struct FlipModel : LocalizeModel<FlipModel, aten::FlipOp> {
  static LocalValues run(Localizer &localizer, OpBuilder &builder, aten::FlipOp op,
                         ValueRange operands) {
    SmallVector<int64_t> dims = shardedMovedDims(localizer);
    if (dims.empty())
      return sameOp(localizer, builder, operands);
    if (LocalValues scanned = scanFromEnd(localizer, builder, op); succeeded(scanned))
      return scanned;
    LocalValues moved =
        moveDims(localizer, builder, operands, dims, [&](int64_t dim, Value value, auto &sizes) {
          return flipSymbolic(localizer, builder, dim, value, sizes);
        });
    if (failed(moved))
      return failure();
    SmallVector<int64_t> rest = llvm::filter_to_vector(
        op.getDims(), [&](int64_t dim) { return !llvm::is_contained(dims, dim); });
    moved->front().setType(localizer.localResultType(0));
    if (rest.empty())
      return moved;
    return single(aten::FlipOp::create(builder, op.getLoc(), moved->front(), rest));
  }
};

} // namespace

void shardc::attachPartModels(MLIRContext *context) {
  attachModel<aten::SliceOp, SliceModel>(context);
  attachModel<aten::SplitWithSizesOp, SplitModel>(context);
  attachModel<aten::SelectOp, SelectModel>(context);
  attachModel<aten::CatOp, CatModel>(context);
  attachModel<aten::ConstantPadNdOp, PadModel>(context);
  attachModel<aten::FlipOp, FlipModel>(context);
  attachModel<aten::TrilOp, TriangleModel<aten::TrilOp>>(context);
  attachModel<aten::TriuOp, TriangleModel<aten::TriuOp>>(context);
  attachPieces(context);
}
