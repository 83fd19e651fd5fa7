// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/aten/passes/IndexToView.h"

#include "dialects/aten/DimOrigins.h"
#include "dialects/aten/Emitter.h"

using namespace mlir;

namespace shardc::aten {
namespace {

/// What an index does to the dim that it indexes.
struct Indexed {
  int64_t dim;
  int64_t start;          ///< first position
  Value index;            ///< the operand
  int64_t indexDim = -1;  ///< its dim along which positions go up; -1: one position
  int64_t commonDim = -1; ///< the same, counted in the broadcast indices
  bool isWhole = false;   ///< all positions of the dim
};

/// The plan of a view: all positions known to be inside, and all dims told apart.
class IndexView {
public:
  IndexView(IndexOp op, const AffineForms &forms) : op(op), result(typeOf(op.getResult())) {
    ArrayRef<int64_t> at = op.getIndicesAt(), self = shapeOf(op.getSelf());
    common = result.getRank() - static_cast<int64_t>(self.size() - at.size());
    bool adjacent = at.back() - at.front() + 1 == static_cast<int64_t>(at.size());
    first = adjacent ? at.front() : 0;
    for (auto [value, dim] : llvm::zip(op.getIndices(), at))
      valid = valid && add(value, forms.getAffine(value), dim, self[dim]);
    // A dim that no position goes along is repeated, which needs its size.
    for (int64_t i = 0; i < common; ++i)
      valid = valid &&
              (!ShapedType::isDynamic(result.getDimSize(first + i)) ||
               llvm::any_of(indexed, [&](const Indexed &index) { return index.commonDim == i; }));
  }

  bool isValid() const { return valid; }

  Value build(OpBuilder &builder) const {
    Location loc = op.getLoc();
    Value value = op.getSelf();
    for (const Indexed &index : indexed)
      if (index.commonDim >= 0 && !index.isWhole) {
        int64_t size = result.getDimSize(first + index.commonDim);
        bool isDynamic = ShapedType::isDynamic(size);
        // Only dims that start at 0 are of dynamic size.
        Value end =
            isDynamic ? materializeSize(builder, loc, index.index, index.indexDim) : Value();
        value = SliceOp::create(builder, loc, value, index.dim, index.start, Value(),
                                isDynamic ? size : index.start + size, end, 1);
      }
    for (const Indexed &index : llvm::reverse(indexed))
      if (index.commonDim < 0)
        value = SelectOp::create(builder, loc, value, index.dim, index.start, Value());

    // Dims of `value`, by the place in the result that they go to.
    SmallVector<int64_t> places = placesOfRemainingDims();
    SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(0, places.size()));
    llvm::sort(order, [&](int64_t a, int64_t b) { return places[a] < places[b]; });
    if (!llvm::is_sorted(order))
      value = PermuteOp::create(builder, loc, value, order);
    for (int64_t dim = 0; dim < result.getRank(); ++dim)
      if (!llvm::is_contained(places, dim))
        value = UnsqueezeOp::create(builder, loc, value, dim);
    bool fits = succeeded(verifyCompatibleShape(shapeOf(value), result.getShape()));
    if (fits && shapeOf(value) != result.getShape())
      value.setType(result); // a slice whose size only the indices tell
    if (fits)
      return value;
    SmallVector<OpFoldResult> sizes;
    for (auto [dim, size] : llvm::enumerate(result.getShape()))
      sizes.push_back(ShapedType::isDynamic(size)
                          ? OpFoldResult(materializeSize(builder, loc, value, dim))
                          : builder.getIndexAttr(size));
    SmallVector<Value> dynamic;
    SmallVector<int64_t> fixed;
    dispatchIndexOpFoldResults(sizes, dynamic, fixed);
    return ExpandOp::create(builder, loc, value, fixed, dynamic);
  }

private:
  bool add(Value value, const AffineForm *form, int64_t dim, int64_t size) {
    if (!form)
      return false;
    Indexed index{dim, form->constant, value};
    int64_t missingDims = common - static_cast<int64_t>(shapeOf(value).size());
    for (auto [i, coefficient] : llvm::enumerate(form->coefficients)) {
      if (coefficient == 0)
        continue;
      if (coefficient != 1 || index.commonDim >= 0)
        return false;
      index.indexDim = static_cast<int64_t>(i);
      index.commonDim = index.indexDim + missingDims;
    }
    if (!isInside(index, size))
      return false;
    for (const Indexed &other : indexed)
      if (index.commonDim >= 0 && other.commonDim == index.commonDim)
        return false; // a diagonal
    indexed.push_back(index);
    return true;
  }

  /// Whether all positions are known to be ones of a dim of this size; sets `isWhole`.
  bool isInside(Indexed &index, int64_t size) const {
    int64_t count = index.commonDim < 0 ? 1 : shapeOf(index.index)[index.indexDim];
    if (!ShapedType::isDynamic(count) && !ShapedType::isDynamic(size)) {
      index.isWhole = index.commonDim >= 0 && count == size;
      return index.start >= 0 && index.start + count <= size;
    }
    // An index beyond the end is an error of the model: from 0 on, a slice is what it means.
    if (index.commonDim < 0 || index.start != 0)
      return false;
    DimSizes sizes;
    index.isWhole = sizes.of(index.index, index.indexDim) == sizes.of(op.getSelf(), index.dim);
    return true;
  }

  SmallVector<int64_t> placesOfRemainingDims() const {
    SmallVector<int64_t> places;
    int64_t kept = first == 0 ? common : 0;
    const auto *next = indexed.begin();
    for (int64_t dim = 0, rank = shapeOf(op.getSelf()).size(); dim < rank; ++dim) {
      if (next != indexed.end() && next->dim == dim) {
        if (next->commonDim >= 0)
          places.push_back(first + next->commonDim);
        if (++next == indexed.end() && first != 0)
          kept = first + common;
      } else {
        places.push_back(kept++);
      }
    }
    return places;
  }

  mutable IndexOp op;
  RankedTensorType result;
  int64_t common,
      first; ///< number of dims of the broadcast indices, and where they are in the result
  bool valid = true;
  SmallVector<Indexed> indexed;
};

/// Each row several times in turn, where its position is that of the result divided by a number.
/// Null where it is otherwise.
Value buildRepeatedRows(OpBuilder &builder, IndexOp op, const AffineForms &forms) {
  Value position = op.getIndices().front(), self = op.getSelf();
  auto quotient = position.getDefiningOp<DivOp>();
  auto range = quotient ? quotient.getSelf().getDefiningOp<ArangeOp>() : ArangeOp();
  if (op.getIndicesAt() != ArrayRef<int64_t>(0) || !range || range.getStart() ||
      range.getStaticStart() != 0 || range.getStep() != 1 || shapeOf(position).size() != 1 ||
      !quotient.getRoundingMode())
    return {};
  int64_t times = forms.getSplat(quotient.getOther()).value_or(0);
  DimSizes sizes;
  DimSize rows = sizes.of(self, 0);
  if (times < 1 || rows.isUnknown() ||
      llvm::MulOverflow(rows.coefficient, times, rows.coefficient) ||
      rows != sizes.of(position, 0) || rows != sizes.of(range, 0))
    return {};
  SmallVector<OpFoldResult> ofResult, ofCopies;
  for (int64_t dim = 0; dim < typeOf(self).getRank(); ++dim) {
    auto sizeOf = [&](Value tensor) {
      return getAsOpFoldResult(materializeSize(builder, op.getLoc(), tensor, dim));
    };
    ofResult.push_back(sizeOf(dim == 0 ? position : self));
    ofCopies.push_back(sizeOf(self));
  }
  ofCopies.insert(ofCopies.begin() + 1, builder.getIndexAttr(times));
  Emitter emit(builder, op.getLoc());
  SmallVector<Value> dynamic;
  SmallVector<int64_t> fixed;
  dispatchIndexOpFoldResults(ofCopies, dynamic, fixed);
  Value copies = ExpandOp::create(builder, op.getLoc(), emit.unsqueeze(self, 1), fixed, dynamic);
  return emit.view(copies, ofResult);
}

} // namespace

Value buildIndexAsView(OpBuilder &builder, IndexOp op, const AffineForms &forms) {
  IndexView view(op, forms);
  Value built = view.isValid() ? view.build(builder) : buildRepeatedRows(builder, op, forms);
  return built && built.getType() == op.getType() ? built : Value();
}

} // namespace shardc::aten
