// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Adaptive pools over sharded spatial dims. Of a dim that becomes one part, each rank has some
// elements: the result is partial. Of any other sharded dim, a rank fetches what its parts have
// that others hold; parts may overlap and be of two sizes, so that the pool is then written out,
// dim by dim, over the elements that are in each part.

#include "passes/localize/Models.h"
#include "passes/localize/MovePieces.h"

#include "dialects/aten/Spatial.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"

using namespace mlir;
using namespace shardc;

namespace {

template <typename Op> constexpr bool kIsMean = std::is_same_v<Op, aten::AdaptiveAvgPoolOp>;

/// The spatial dims of one adaptive pool, and how they are laid out.
struct SpatialDims {
  SmallVector<int64_t> whole;  ///< sharded, and all of one part
  SmallVector<int64_t> shared; ///< sharded, and of several parts
  SmallVector<int64_t> pooled; ///< whose number of elements changes

  SpatialDims(const Localizer &localizer, ArrayRef<int64_t> parts) {
    int64_t first = localizer.globalOperandType(0).getRank() - static_cast<int64_t>(parts.size());
    const Layout *result = localizer.resultLayout(0);
    for (auto [i, part] : llvm::enumerate(parts)) {
      int64_t dim = first + static_cast<int64_t>(i);
      bool isSharded =
          !localizer.operandAxes(0, dim).empty() || (result && !result->splitOfDim(dim).empty());
      if (isSharded)
        (part == 1 ? whole : shared).push_back(dim);
      if (localizer.globalOperandType(0).getDimSize(dim) != part)
        pooled.push_back(dim);
    }
  }
};

/// A pool that is written out, in the type in which it adds.
template <typename Op> class WrittenOut {
public:
  WrittenOut(Localizer &localizer, OpBuilder &builder, Op op, Value local)
      : localizer(localizer), builder(builder), op(op), emit(localizer.emitter(builder)),
        mesh(localizer.getMesh().getValue()), sizes(localizer.operandSizes(builder, 0)) {
    Type type = aten::elementTypeOf(local);
    value = emit.cast(local, kIsMean<Op> ? Emitter::accumulator(type) : type);
  }

  FailureOr<Value> run(const SpatialDims &dims) {
    for (int64_t dim : dims.shared)
      if (failed(fetch(dim)))
        return failure();
    for (int64_t dim : dims.pooled)
      sizeOf(dim) == 1 ? poolWhole(dim) : pool(dim);
    Value made = emit.cast(value, localizer.localResultType(0).getElementType());
    made.setType(localizer.localResultType(0));
    return made;
  }

private:
  int64_t sizeOf(int64_t dim) const { return localizer.globalResultType(0).getDimSize(dim); }
  int64_t elementsOf(int64_t dim) const { return localizer.globalOperandType(0).getDimSize(dim); }
  DimSplit splitOf(int64_t dim) const {
    const Layout *layout = localizer.resultLayout(0);
    return layout ? layout->splitOfDim(dim) : DimSplit();
  }
  OpFoldResult table(ArrayRef<int64_t> numbers) {
    return getAsOpFoldResult(localizer.indices(builder).table(numbers));
  }

  /// Brings the elements of this rank's parts.
  LogicalResult fetch(int64_t dim) {
    if (ShapedType::isDynamic(elementsOf(dim))) {
      localizer.refuse() << "along dim " << dim
                         << ", whose size is symbolic, a rank would need "
                            "elements of other ranks; replicate the dim before";
      return failure();
    }
    HeldDim parts = heldDim(mesh, localizer.resultDim(0, dim));
    SmallVector<int64_t> begins, extents;
    for (std::vector<Run> &runs : parts.runs) {
      Run run = runs.empty() ? Run{} : runs.front();
      Run covered = aten::coverOfParts(run, elementsOf(dim), sizeOf(dim));
      begins.push_back(covered.begin);
      extents.push_back(covered.size());
      runs.clear();
      if (covered.size() > 0)
        runs.push_back(covered);
    }
    parts.size = elementsOf(dim);
    PieceSource source{value, sizes, heldDim(mesh, localizer.operandDim(0, dim))};
    sizes[dim] = table(extents);
    SmallVector<int64_t> shape(aten::shapeOf(value));
    shape[dim] = llvm::all_equal(extents) ? extents.front() : ShapedType::kDynamic;
    PieceTarget target{{{0, elementsOf(dim)}},
                       std::move(parts),
                       sizes,
                       RankedTensorType::get(shape, aten::elementTypeOf(value))};
    value = movePieces(localizer, builder, dim, source, target).front();
    firstOf[dim] = localizer.indices(builder).table(begins);
    return success();
  }

  /// [elements]: which of the whole dim this rank has after `fetch`.
  Value elementNumbers(int64_t dim) {
    LocalIndices indices = localizer.indices(builder);
    auto fetched = firstOf.find(dim);
    Value first = fetched == firstOf.end() ? indices.constant(0) : fetched->second;
    Value length = getValueOrCreateConstantIndexOp(builder, op.getLoc(), sizes[dim]);
    return emit.range(first, length);
  }

  void poolWhole(int64_t dim) {
    value = kIsMean<Op> ? emit.sum(value, dim, /*keepdim=*/true)
                        : emit.amax(value, dim, /*keepdim=*/true);
    sizes[dim] = builder.getIndexAttr(1);
    if (kIsMean<Op>) {
      Value count = localizer.indices(builder).global(localizer.operandSize(builder, 0, dim));
      Type type = aten::elementTypeOf(value);
      value = emit.div(value, emit.cast(emit.ofIndex(count, builder.getI64Type()), type));
    }
  }

  /// Of [..., elements, ...] makes [..., parts, ...], by [..., parts, elements, ...].
  void pool(int64_t dim) {
    Type i64 = builder.getI64Type(), type = aten::elementTypeOf(value);
    int64_t rank = static_cast<int64_t>(sizes.size());
    OpFoldResult count = localizer.localSizes(builder, 0)[dim];
    Value part = alongDim(
        emit, globalRange(localizer, builder, localizer.resultSize(builder, 0, dim), splitOf(dim)),
        count, dim, rank + 1);
    Value element = alongDim(emit, elementNumbers(dim), sizes[dim], dim + 1, rank + 1);
    Value all = emit.integer(elementsOf(dim), i64), parts = emit.integer(sizeOf(dim), i64);
    auto floorDiv = [&](Value x, Value y) -> Value {
      return aten::DivOp::create(builder, op.getLoc(), x, y, builder.getStringAttr("floor"));
    };
    // [floor(i * all / parts), ceil((i + 1) * all / parts))
    Value begin = floorDiv(emit.mul(part, all), parts);
    Value next = emit.mul(emit.add(part, emit.integer(1, i64)), all);
    Value end = floorDiv(emit.add(next, emit.integer(sizeOf(dim) - 1, i64)), parts);
    Value isIn = emit.binary<aten::LogicalAndOp>(emit.binary<aten::GeOp>(element, begin),
                                                 emit.binary<aten::LtOp>(element, end));
    Value neutral = kIsMean<Op> ? emit.scalar(0, type) : lowestOf(emit, type);
    Value inPart = emit.where(isIn, emit.unsqueeze(value, dim), neutral);
    value = kIsMean<Op> ? emit.sum(inPart, dim + 1, /*keepdim=*/false)
                        : emit.amax(inPart, dim + 1, /*keepdim=*/false);
    sizes[dim] = count;
    if (kIsMean<Op>) {
      SmallVector<OpFoldResult> along(rank, builder.getIndexAttr(1));
      along[dim] = count;
      value = emit.div(value, emit.view(emit.cast(emit.sub(end, begin), type), along));
    }
  }

  Localizer &localizer;
  OpBuilder &builder;
  Op op;
  Emitter emit;
  const Mesh &mesh;
  SmallVector<OpFoldResult> sizes; ///< of `value`
  Value value;
  llvm::DenseMap<int64_t, Value> firstOf;
};

/// Partial over the axes of dims of one part: P(sum) of what ranks have, divided by the whole
/// count, or P(max).
template <typename Op> struct AdaptivePoolModel : LocalizeModel<AdaptivePoolModel<Op>, Op> {
  static LocalValues run(Localizer &localizer, OpBuilder &builder, Op op, ValueRange operands) {
    SpatialDims dims(localizer, op.getOutputSize());
    if (dims.whole.empty() && dims.shared.empty())
      return sameOp(localizer, builder, operands);
    Reduction reduction = kIsMean<Op> ? Reduction::Sum : Reduction::Max;
    if (!isPartialOver(localizer, localizer.operandAxes(0, dims.whole), reduction)) {
      localizer.refuse() << "ranks have some of the elements, so the result must be "
                         << (kIsMean<Op> ? "P(sum)" : "P(max)") << " over that axis";
      return failure();
    }
    if (!dims.shared.empty()) {
      FailureOr<Value> pooled = WrittenOut<Op>(localizer, builder, op, operands[0]).run(dims);
      return failed(pooled) ? LocalValues(failure()) : single(*pooled);
    }
    return wholeDims(localizer, builder, op, operands[0], dims.whole);
  }

  /// The op over the other dims, of what is there of the sharded ones together.
  static LocalValues wholeDims(Localizer &localizer, OpBuilder &builder, Op op, Value local,
                               ArrayRef<int64_t> sharded) {
    Emitter emit = localizer.emitter(builder);
    if (!kIsMean<Op>)
      return sameOp(localizer, builder, emit.amax(local, sharded, /*keepdim=*/true));
    Type element = aten::elementTypeOf(local), wide = Emitter::accumulator(element);
    Value sum = emit.sum(emit.cast(local, wide), sharded, /*keepdim=*/true);
    for (int64_t dim : sharded)
      sum = emit.div(sum, emit.cast(emit.ofIndex(localizer.indices(builder).global(
                                                     localizer.operandSize(builder, 0, dim)),
                                                 builder.getI64Type()),
                                    wide));
    Value mean = Op::create(builder, op.getLoc(), sum, op.getOutputSize());
    mean = emit.cast(mean, element);
    mean.setType(localizer.localResultType(0));
    return single(mean);
  }
};

} // namespace

void shardc::attachAdaptivePoolModels(MLIRContext *context) {
  attachModel<aten::AdaptiveAvgPoolOp, AdaptivePoolModel<aten::AdaptiveAvgPoolOp>>(context);
  attachModel<aten::AdaptiveMaxPoolOp, AdaptivePoolModel<aten::AdaptiveMaxPoolOp>>(context);
}
