// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/aten/passes/IndexToView.h"

using namespace mlir;

namespace shardc::aten {
namespace {

/// What an index does to the dim that it indexes.
struct Indexed {
  int64_t dim;
  int64_t start; ///< first position
  int64_t commonDim =
      -1; ///< dim of the broadcast indices along which positions go up; -1: one position
};

/// The plan of a view: all positions known to be inside, and all dims told apart.
class IndexView {
public:
  IndexView(IndexOp op, const AffineForms &forms) : op(op), result(typeOf(op.getResult())) {
    ArrayRef<int64_t> at = op.getIndicesAt(), self = shapeOf(op.getSelf());
    common = result.getRank() - static_cast<int64_t>(self.size() - at.size());
    bool adjacent = at.back() - at.front() + 1 == static_cast<int64_t>(at.size());
    first = adjacent ? at.front() : 0;
    valid = result.hasStaticShape();
    for (auto [value, dim] : llvm::zip(op.getIndices(), at))
      valid = valid && add(forms.getAffine(value), dim, self[dim],
                           common - static_cast<int64_t>(shapeOf(value).size()));
  }

  bool isValid() const { return valid; }

  Value build(OpBuilder &builder) const {
    Location loc = op.getLoc();
    Value value = op.getSelf();
    ArrayRef<int64_t> self = shapeOf(op.getSelf());
    for (const Indexed &index : indexed)
      if (index.commonDim >= 0) {
        int64_t size = result.getDimSize(first + index.commonDim);
        if (size != self[index.dim])
          value = SliceOp::create(builder, loc, value, index.dim, index.start, Value(),
                                  index.start + size, Value(), 1);
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
    if (shapeOf(value) != result.getShape())
      value = ExpandOp::create(builder, loc, value, result.getShape(), ValueRange());
    return value;
  }

private:
  bool add(const AffineForm *form, int64_t dim, int64_t size, int64_t missingDims) {
    if (!form || ShapedType::isDynamic(size))
      return false;
    Indexed index{dim, form->constant};
    for (auto [i, coefficient] : llvm::enumerate(form->coefficients)) {
      if (coefficient == 0)
        continue;
      if (coefficient != 1 || index.commonDim >= 0)
        return false;
      index.commonDim = static_cast<int64_t>(i) + missingDims;
    }
    int64_t count = index.commonDim < 0 ? 1 : result.getDimSize(first + index.commonDim);
    if (index.start < 0 || index.start + count > size)
      return false;
    for (const Indexed &other : indexed)
      if (index.commonDim >= 0 && other.commonDim == index.commonDim)
        return false; // a diagonal
    indexed.push_back(index);
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
  bool valid;
  SmallVector<Indexed> indexed;
};

} // namespace

Value buildIndexAsView(OpBuilder &builder, IndexOp op, const AffineForms &forms) {
  IndexView view(op, forms);
  return view.isValid() ? view.build(builder) : Value();
}

} // namespace shardc::aten
