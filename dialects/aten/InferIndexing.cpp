// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/aten/Aten.h"

using namespace mlir;

namespace shardc::aten {

LogicalResult EmbeddingOp::infer(Inference &inference, Adaptor op) {
  Shape weight = inference.sizesOf(op.getWeight());
  if (weight.size() != 2)
    return inference.error("needs a weight of two dims, not ", weight.size());
  Shape shape = inference.sizesOf(op.getIndices());
  shape.push_back(weight.back());
  return inference.result(shape, elementTypeOf(op.getWeight()));
}

LogicalResult GatherOp::infer(Inference &inference, Adaptor op) {
  RankedTensorType self = typeOf(op.getSelf()), index = typeOf(op.getIndex());
  int64_t dim = op.getDim();
  if (failed(inference.checkDim(dim, self.getRank(), "dim")))
    return failure();
  if (std::max<int64_t>(self.getRank(), 1) != std::max<int64_t>(index.getRank(), 1))
    return inference.error("self has ", self.getRank(), " dims and index ", index.getRank());
  Shape table = inference.sizesOf(op.getSelf()), shape = inference.sizesOf(op.getIndex());
  if (llvm::none_of(shape, [](Dim size) { return size.is(0); }))
    for (size_t i = 0; i < std::min(table.size(), shape.size()); ++i) {
      std::optional<int64_t> have = table[i].number(), want = shape[i].number();
      if (static_cast<int64_t>(i) != dim && have && want && *want > *have)
        return inference.error("index has size ", *want, " at dim ", i, ", self only ", *have);
    }
  return inference.result(shape, self.getElementType());
}

LogicalResult IndexSelectOp::infer(Inference &inference, Adaptor op) {
  RankedTensorType self = typeOf(op.getSelf()), index = typeOf(op.getIndex());
  if (failed(inference.checkDim(op.getDim(), self.getRank(), "dim")))
    return failure();
  if (index.getRank() > 1)
    return inference.error("index must be a vector");
  Shape shape = inference.sizesOf(op.getSelf());
  if (!shape.empty())
    shape[op.getDim()] = index.getRank() == 0 ? Dim(1) : inference.sizesOf(op.getIndex()).front();
  return inference.result(shape, self.getElementType());
}

LogicalResult IndexOp::infer(Inference &inference, Adaptor op) {
  RankedTensorType self = typeOf(op.getSelf());
  ArrayRef<int64_t> at = op.getIndicesAt();
  if (at.size() != op.getIndices().size() || at.empty())
    return inference.error("has ", op.getIndices().size(), " indices for ", at.size(), " dims");
  if (!llvm::is_sorted(at) || failed(inference.checkDims(at, self.getRank(), "indices_at")) ||
      self.getRank() == 0)
    return inference.error("indices_at must list dims of self in ascending order");
  FailureOr<Shape> indices = inference.broadcast(op.getIndices());
  if (failed(indices))
    return failure();
  bool adjacent = at.back() - at.front() + 1 == static_cast<int64_t>(at.size());
  Shape shape;
  if (!adjacent)
    shape = *indices;
  for (auto [i, size] : llvm::enumerate(inference.sizesOf(op.getSelf()))) {
    int64_t dim = i;
    if (adjacent && dim == at.front())
      shape.append(*indices);
    if (!llvm::is_contained(at, dim))
      shape.push_back(size);
  }
  return inference.result(shape, self.getElementType());
}

} // namespace shardc::aten
