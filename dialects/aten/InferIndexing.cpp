// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/aten/Aten.h"
#include "dialects/aten/IndexedWrites.h"

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

FailureOr<Shape> inferIndexed(Inference &inference, Value self, ValueRange indices,
                              ArrayRef<int64_t> at) {
  if (at.size() != indices.size() || at.empty())
    return inference.error("has ", indices.size(), " indices for ", at.size(), " dims");
  int64_t rank = typeOf(self).getRank();
  if (!llvm::is_sorted(at) || failed(inference.checkDims(at, rank, "indices_at")) || rank == 0)
    return inference.error("indices_at must list dims of self in ascending order");
  FailureOr<Shape> common = inference.broadcast(indices);
  if (failed(common))
    return failure();
  bool adjacent = at.back() - at.front() + 1 == static_cast<int64_t>(at.size());
  Shape shape;
  if (!adjacent)
    shape = *common;
  for (auto [i, size] : llvm::enumerate(inference.sizesOf(self))) {
    int64_t dim = i;
    if (adjacent && dim == at.front())
      shape.append(*common);
    if (!llvm::is_contained(at, dim))
      shape.push_back(size);
  }
  return shape;
}

LogicalResult IndexOp::infer(Inference &inference, Adaptor op) {
  FailureOr<Shape> shape =
      inferIndexed(inference, op.getSelf(), op.getIndices(), op.getIndicesAt());
  if (failed(shape))
    return failure();
  return inference.result(*shape, elementTypeOf(op.getSelf()));
}

LogicalResult inferIndexedWrite(Inference &inference, Value self, ValueRange indices, Value values,
                                ArrayRef<int64_t> at) {
  FailureOr<Shape> shape = inferIndexed(inference, self, indices, at);
  FailureOr<Type> type = inference.sameElementType({self, values});
  if (failed(shape) || failed(type))
    return failure();
  FailureOr<Shape> written = inference.broadcast({ArrayRef(*shape), inference.sizesOf(values)});
  if (failed(written))
    return failure();
  if (!areCompatible(*written, *shape))
    return inference.error("values do not broadcast to the shape that the indices name");
  return inference.result(inference.sizesOf(self), *type);
}

LogicalResult IndexPutOp::infer(Inference &inference, Adaptor op) {
  if (!op.getAccumulate())
    return inference.error("adds values only: aten.index_write is the form without 'accumulate'");
  return inferIndexedWrite(inference, op.getSelf(), op.getIndices(), op.getValues(),
                           op.getIndicesAt());
}

LogicalResult inferScatter(Inference &inference, Value selfTensor, int64_t dim, Value indexTensor,
                           Value source) {
  Shape self = inference.sizesOf(selfTensor), index = inference.sizesOf(indexTensor),
        src = inference.sizesOf(source);
  FailureOr<Type> type = inference.sameElementType({selfTensor, source});
  if (failed(type))
    return failure();
  if (self.empty() || self.size() != index.size() || self.size() != src.size())
    return inference.error("needs self, index and src of equally many dims, at least one, not of ",
                           self.size(), ", ", index.size(), " and ", src.size());
  if (failed(inference.checkDim(dim, self.size(), "dim")))
    return failure();
  if (llvm::none_of(index, [](Dim size) { return size.is(0); }))
    for (size_t i = 0; i < index.size(); ++i) {
      std::optional<int64_t> want = index[i].number(), have = src[i].number(),
                             room = self[i].number();
      if (want && have && *want > *have)
        return inference.error("index has size ", *want, " at dim ", i, ", src only ", *have);
      if (static_cast<int64_t>(i) != dim && want && room && *want > *room)
        return inference.error("index has size ", *want, " at dim ", i, ", self only ", *room);
    }
  return inference.result(self, *type);
}

LogicalResult ScatterAddOp::infer(Inference &inference, Adaptor op) {
  return inferScatter(inference, op.getSelf(), static_cast<int64_t>(op.getDim()), op.getIndex(),
                      op.getSrc());
}

} // namespace shardc::aten
