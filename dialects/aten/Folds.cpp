// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ops that do nothing, and pairs that undo each other. A value is replaced only by one of identical
// type, encoding included: on a placed program no layout changes by folding. Equal types with sizes
// that are not known say nothing: `?` may be repeated to another `?`.
#include "dialects/aten/Aten.h"

using namespace mlir;

namespace shardc::aten {

static bool isIdentity(ArrayRef<int64_t> dims) {
  return llvm::all_of(llvm::enumerate(dims), [](auto entry) {
    return static_cast<int64_t>(entry.index()) == entry.value();
  });
}

/// The permuted tensor, or what that was made from by the inverse permutation.
static OpFoldResult foldPermutation(Operation *op) {
  Value self = op->getOperand(0);
  Type type = op->getResult(0).getType();
  SmallVector<int64_t> dims = *permutationOf(op);
  if (isIdentity(dims))
    return self.getType() == type ? self : Value();
  Operation *before = self.getDefiningOp();
  std::optional<SmallVector<int64_t>> inner = permutationOf(before);
  if (!inner || before->getOperand(0).getType() != type)
    return {};
  for (int64_t &dim : dims)
    dim = (*inner)[dim];
  return isIdentity(dims) ? before->getOperand(0) : Value();
}

OpFoldResult PermuteOp::fold(FoldAdaptor) { return foldPermutation(*this); }
OpFoldResult TransposeOp::fold(FoldAdaptor) { return foldPermutation(*this); }

OpFoldResult ViewOp::fold(FoldAdaptor) {
  RankedTensorType type = typeOf(getSelf());
  if (type != getType())
    return {};
  // One size that is not known follows from the others, unless there are no elements.
  auto unknown = llvm::count_if(type.getShape(), ShapedType::isDynamic);
  bool same = unknown == 0 || (unknown == 1 && !llvm::is_contained(type.getShape(), 0));
  return same ? getSelf() : Value();
}

/// A view of a view is one view. Not on placed tensors: the layout between them says how to get
/// from the one to the other.
LogicalResult ViewOp::canonicalize(ViewOp op, PatternRewriter &rewriter) {
  auto inner = op.getSelf().getDefiningOp<ViewOp>();
  if (!inner)
    return failure();
  for (Value tensor : {inner.getSelf(), op.getSelf(), op.getResult()})
    if (typeOf(tensor).getEncoding())
      return failure();
  rewriter.modifyOpInPlace(op, [&] { op.getSelfMutable().assign(inner.getSelf()); });
  return success();
}

OpFoldResult ExpandOp::fold(FoldAdaptor) {
  RankedTensorType type = typeOf(getSelf());
  return type == getType() && type.hasStaticShape() ? getSelf() : Value();
}

OpFoldResult ToCopyOp::fold(FoldAdaptor) {
  return getSelf().getType() == getType() ? getSelf() : Value();
}

OpFoldResult SliceOp::fold(FoldAdaptor) {
  RankedTensorType type = typeOf(getSelf());
  if (type != getType() || getStaticStart() != 0 || getStep() != 1 || getEnd())
    return {};
  int64_t size = type.getDimSize(getDim()), end = getStaticEnd();
  bool whole =
      end == std::numeric_limits<int64_t>::max() || (!ShapedType::isDynamic(size) && end >= size);
  return whole ? getSelf() : Value();
}

} // namespace shardc::aten
