// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Adaptive pools over sharded spatial dims. Of a dim that becomes one part, each rank has some
// elements: the result is partial. Of any other sharded dim, a rank makes of its elements what it
// can of each part that has some, and sends what it has made of parts of others: one number for
// each that a border cuts. Parts may overlap and be of two sizes, so that the pool is then written
// out, dim by dim, over the elements that are in each part.

#include "passes/localize/Halos.h"
#include "passes/localize/Models.h"
#include "passes/localize/SymbolicHalos.h"

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
      // Of a single element that one rank has, the others make what the reduction leaves as it is.
      if (localizer.globalOperandType(0).getDimSize(dim) != part || (isSharded && part == 1))
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
      if (failed(poolShared(dim)))
        return failure();
    for (int64_t dim : dims.pooled) {
      if (llvm::is_contained(dims.shared, dim))
        continue;
      if (sizeOf(dim) == 1) {
        poolWhole(dim);
      } else {
        LocalIndices indices = localizer.indices(builder);
        pool(dim, {indices.constant(0), builder.getIndexAttr(sizeOf(dim))}, indices.constant(0));
        divide(dim);
      }
    }
    Value made = emit.cast(value, localizer.localResultType(0).getElementType());
    made.setType(localizer.localResultType(0));
    return made;
  }

private:
  /// Up to so many parts of a rank are pooled by an op each, which reads their elements alone.
  static constexpr int64_t kFewParts = 16;

  /// Parts of a dim, one after the other.
  struct PartRange {
    Value first;
    OpFoldResult count;
  };

  int64_t sizeOf(int64_t dim) const { return localizer.globalResultType(0).getDimSize(dim); }
  int64_t elementsOf(int64_t dim) const { return localizer.globalOperandType(0).getDimSize(dim); }
  OpFoldResult table(ArrayRef<int64_t> numbers) {
    return getAsOpFoldResult(localizer.indices(builder).table(numbers));
  }

  /// Of the elements that a rank has, all parts that have any; then all that ranks have of a part
  /// goes to its owner.
  LogicalResult poolShared(int64_t dim) {
    HaloDim halo{0, dim, localizer.resultDim(0, dim), localizer.operandDim(0, dim), {}};
    bool isSymbolic = ShapedType::isDynamic(elementsOf(dim));
    if ((isSymbolic && !kIsMean<Op>) || !halo.image.split.isOverAxesOf(halo.positions.split)) {
      localizer.refuse()
          << "along dim " << dim
          << ", which has an unknown size or is sharded over other "
             "axes than the result, a rank would need elements of other ranks; replicate "
             "the dim before";
      return failure();
    }
    if (isSymbolic) {
      poolSymbolic(dim, halo.image.split, halo.positions.split);
      return success();
    }
    SmallVector<int64_t> firstPart, firstElement, counts;
    for (int64_t position = 0; position < mesh.numDevices(); ++position) {
      std::vector<Run> runs =
          halo.positions.split.runs(elementsOf(dim), mesh.coordinateOfPosition(position));
      Run own = runs.empty() ? Run{} : runs.front();
      // Element i is in part i * parts / elements: the same with both exchanged.
      Run parts = aten::coverOfParts(own, sizeOf(dim), elementsOf(dim));
      halo.covers.push_back({parts});
      firstElement.push_back(own.begin);
      firstPart.push_back(parts.begin);
      counts.push_back(parts.size());
    }
    LocalIndices indices = localizer.indices(builder);
    if (sizeOf(dim) != elementsOf(dim)) {
      if (*llvm::max_element(counts) <= kFewParts)
        poolEach(dim, firstPart, counts, halo.positions);
      else
        pool(dim, {indices.table(firstPart), table(counts)}, indices.table(firstElement));
    }
    value = haloSum(localizer, builder, halo, value, sizes,
                    kIsMean<Op> ? Reduction::Sum : Reduction::Max);
    sizes[dim] = localizer.localSizes(builder, 0)[dim];
    divide(dim);
    return success();
  }

  /// Likewise where the program computes which parts these are. Sums alone are added up there.
  void poolSymbolic(int64_t dim, const DimSplit &parts, const DimSplit &elements) {
    LocalIndices indices = localizer.indices(builder);
    SymbolicHalo halo{dim,
                      localizer.resultSize(builder, 0, dim),
                      localizer.operandSize(builder, 0, dim),
                      parts,
                      elements,
                      Value()};
    halo.coversParts = true;
    IndexCover cover = ownCover(indices, halo);
    auto own = [&](int64_t position) { return mesh.coordinateOfPosition(position); };
    pool(dim, {cover.elements.begin, getAsOpFoldResult(cover.length)},
         indices.interval(halo.count, elements, own).begin);
    value = sumOfCovered(indices, halo, value, sizes);
    // All of them: where a rank has no part, the types of all that follows say so.
    sizes[dim] = localizer.localSizes(builder, 0)[dim];
    value = emit.slice(value, dim, builder.getIndexAttr(0), sizes[dim]);
    divide(dim);
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

  /// Of parts: [floor(i * elements / parts), ceil((i + 1) * elements / parts)).
  std::pair<Value, Value> boundsOf(Value part, int64_t dim) {
    Type i64 = builder.getI64Type();
    Value all = emit.ofIndex(
        localizer.indices(builder).global(localizer.operandSize(builder, 0, dim)), i64);
    Value parts = emit.integer(sizeOf(dim), i64);
    auto floorDiv = [&](Value x) -> Value {
      return aten::DivOp::create(builder, op.getLoc(), x, parts, builder.getStringAttr("floor"));
    };
    Value next = emit.mul(emit.add(part, emit.integer(1, i64)), all);
    return {floorDiv(emit.mul(part, all)),
            floorDiv(emit.add(next, emit.integer(sizeOf(dim) - 1, i64)))};
  }

  /// Of the elements of this rank, those of its k-th part, for one k after the other.
  void poolEach(int64_t dim, ArrayRef<int64_t> firstPart, ArrayRef<int64_t> counts,
                const SplitDim &elements) {
    SmallVector<Value> parts;
    for (int64_t k = 0; k < *llvm::max_element(counts); ++k) {
      SmallVector<int64_t> begins, ends;
      for (auto [position, count] : llvm::enumerate(counts)) {
        std::vector<Run> runs = elements.split.runs(
            elementsOf(dim), mesh.coordinateOfPosition(static_cast<int64_t>(position)));
        Run own = runs.empty() ? Run{} : runs.front(), part{own.begin, own.begin};
        if (k < count) {
          int64_t number = firstPart[position] + k;
          part = aten::coverOfParts({number, number + 1}, elementsOf(dim), sizeOf(dim));
        }
        begins.push_back(std::clamp(part.begin, own.begin, own.end) - own.begin);
        ends.push_back(std::clamp(part.end, own.begin, own.end) - own.begin);
      }
      Value piece = emit.slice(value, dim, table(begins), table(ends));
      parts.push_back(kIsMean<Op> ? emit.sum(piece, dim, /*keepdim=*/true)
                                  : emit.amax(piece, dim, /*keepdim=*/true));
    }
    sizes[dim] = table(counts);
    if (parts.empty()) { // nobody has an element
      value = emit.zeros(sizes, aten::elementTypeOf(value));
      return;
    }
    value = parts.size() == 1 ? parts.front() : emit.cat(parts, dim);
    if (!llvm::all_equal(counts))
      value = emit.slice(value, dim, builder.getIndexAttr(0), sizes[dim]);
  }

  Value lengthOf(OpFoldResult size) {
    return getValueOrCreateConstantIndexOp(builder, op.getLoc(), size);
  }

  /// Of [..., elements, ...], the first of which is `firstElement` of all, makes [..., parts, ...],
  /// by way of [..., parts, elements, ...].
  void pool(int64_t dim, PartRange range, Value firstElement) {
    Type type = aten::elementTypeOf(value);
    auto rank = static_cast<int64_t>(sizes.size());
    Value part =
        alongDim(emit, emit.range(range.first, lengthOf(range.count)), range.count, dim, rank + 1);
    Value element = alongDim(emit, emit.range(firstElement, lengthOf(sizes[dim])), sizes[dim],
                             dim + 1, rank + 1);
    auto [begin, end] = boundsOf(part, dim);
    Value isIn = emit.binary<aten::LogicalAndOp>(emit.binary<aten::GeOp>(element, begin),
                                                 emit.binary<aten::LtOp>(element, end));
    double neutral = kIsMean<Op> ? 0 : lowestOf(type);
    Value none = isa<FloatType>(type) ? emit.scalar(neutral, type)
                                      : emit.integer(static_cast<int64_t>(neutral), type);
    Value inPart = emit.where(isIn, emit.unsqueeze(value, dim), none);
    value = kIsMean<Op> ? emit.sum(inPart, dim + 1, /*keepdim=*/false)
                        : emit.amax(inPart, dim + 1, /*keepdim=*/false);
    sizes[dim] = range.count;
  }

  /// The sums of this rank's parts by how many elements these have.
  void divide(int64_t dim) {
    if (!kIsMean<Op> || sizeOf(dim) == elementsOf(dim))
      return;
    const Layout *layout = localizer.resultLayout(0);
    Value part = alongDim(emit,
                          globalRange(localizer, builder, localizer.resultSize(builder, 0, dim),
                                      layout ? layout->splitOfDim(dim) : DimSplit()),
                          sizes[dim], dim, static_cast<int64_t>(sizes.size()));
    auto [begin, end] = boundsOf(part, dim);
    value = emit.div(value, emit.cast(emit.sub(end, begin), aten::elementTypeOf(value)));
  }

  Localizer &localizer;
  OpBuilder &builder;
  Op op;
  Emitter emit;
  const Mesh &mesh;
  SmallVector<OpFoldResult> sizes; ///< of `value`
  Value value;
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
