// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/aten/Aten.h"

using namespace mlir;

namespace shardc::aten {

LogicalResult ScaledDotProductAttentionOp::infer(Inference &inference, Adaptor op) {
  Shape query = inference.sizesOf(op.getQuery()), key = inference.sizesOf(op.getKey()),
        value = inference.sizesOf(op.getValue());
  Value queryKeyValue[] = {op.getQuery(), op.getKey(), op.getValue()};
  FailureOr<Type> type = inference.sameElementType(queryKeyValue);
  if (failed(type))
    return failure();
  if (query.size() < 2 || key.size() < 2 || value.size() < 2)
    return inference.error("needs query, key and value of at least two dims");
  if (failed(inference.same(query.back(), key.back(), "last dims of query and key")) ||
      failed(
          inference.same(key[key.size() - 2], value[value.size() - 2], "lengths of key and value")))
    return failure();
  ArrayRef<Dim> queryBatch = ArrayRef(query).drop_back(2);
  Shape keyBatch(ArrayRef(key).drop_back(2)), valueBatch(ArrayRef(value).drop_back(2));
  if (op.getEnableGqa()) {
    if (queryBatch.empty() || keyBatch.empty() || valueBatch.empty())
      return inference.error("gqa needs a dim of heads");
    for (Shape *batch : {&keyBatch, &valueBatch}) {
      std::optional<int64_t> heads = queryBatch.back().number(), own = batch->back().number();
      // No heads at all is what a rank with an empty shard has.
      if (heads && own && (*own == 0 ? *heads != 0 : *heads % *own != 0))
        return inference.error("gqa: ", *heads, " query heads are no multiple of ", *own);
      batch->back() = queryBatch.back();
    }
  }
  FailureOr<Shape> shape = inference.broadcast({queryBatch, keyBatch, valueBatch});
  if (failed(shape))
    return failure();
  if (Value mask = op.getAttnMask()) {
    Shape own = inference.sizesOf(mask);
    if (own.size() < 2)
      return inference.error("attn_mask needs at least two dims");
    Shape scores(*shape);
    scores.append({query[query.size() - 2], key[key.size() - 2]});
    FailureOr<Shape> masked = inference.broadcast({ArrayRef(scores), ArrayRef(own)});
    if (failed(masked))
      return failure();
    if (!areCompatible(*masked, scores))
      return inference.error("attn_mask does not broadcast to the scores");
    if (!elementTypeOf(mask).isInteger(1) && elementTypeOf(mask) != *type)
      return inference.error("attn_mask must be bool or have the element type of query");
  }
  shape->push_back(query[query.size() - 2]);
  shape->push_back(value.back());
  return inference.result(*shape, *type);
}

std::optional<double> ScaledDotProductAttentionOp::getFlops() {
  // Scores and their product with value; the softmax is of lower order.
  std::optional<double> result = numElements(getResult().getType());
  ArrayRef<int64_t> query = shapeOf(getQuery()), key = shapeOf(getKey()),
                    value = shapeOf(getValue());
  int64_t keys = key[key.size() - 2];
  if (!result || ShapedType::isDynamic(keys) || ShapedType::isDynamic(query.back()))
    return std::nullopt;
  double rows = value.back() == 0 ? 0 : *result / static_cast<double>(value.back());
  double full =
      2 * rows * static_cast<double>(keys) * static_cast<double>(query.back() + value.back());
  return getIsCausal() ? full / 2 : full;
}

} // namespace shardc::aten
