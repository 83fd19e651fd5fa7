// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/aten/Aten.h"
#include "dialects/aten/Emitter.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace shardc::aten {
namespace {

struct Attention {
  Shape batch; ///< dims in front of the last two, heads included
  Type type;
};

/// What all forms of attention ask of query, key, value and mask.
template <typename Adaptor> FailureOr<Attention> inferAttention(Inference &inference, Adaptor op) {
  if (failed(inference.checkDynamic(op.getStaticFirst(), op.getFirst(), "first")))
    return failure();
  if (!op.getIsCausal() && (op.getFirst() || op.getStaticFirst() != 0))
    return inference.error("says where its first query is among the keys, and is not causal");
  if (!op.getFirst() && static_cast<int64_t>(op.getStaticFirst()) < 0)
    return inference.error("has its first query at ", static_cast<int64_t>(op.getStaticFirst()),
                           ", before the first key");
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
  return Attention{*shape, *type};
}

/// The batch, then these dims.
Shape join(ArrayRef<Dim> batch, std::initializer_list<Dim> last) {
  Shape shape(batch);
  shape.append(last);
  return shape;
}

template <typename Adaptor>
Shape outputShape(Inference &inference, const Attention &of, Adaptor op) {
  Shape query = inference.sizesOf(op.getQuery()), value = inference.sizesOf(op.getValue());
  return join(of.batch, {query[query.size() - 2], value.back()});
}

template <typename Adaptor>
Shape logsumexpShape(Inference &inference, const Attention &of, Adaptor op) {
  Shape query = inference.sizesOf(op.getQuery());
  return join(of.batch, {query[query.size() - 2]});
}

/// Pairs of a query and a key that it sees, of `queries` of which the first is at `first`.
double countSeen(int64_t first, int64_t queries, int64_t keys) {
  // Those before the last key see more and more, and the others all.
  int64_t growing = std::clamp<int64_t>(keys - first, 0, queries);
  return static_cast<double>(growing) *
             (static_cast<double>(first) + static_cast<double>(growing + 1) / 2) +
         static_cast<double>(queries - growing) * static_cast<double>(keys);
}

/// Where the first query is, as far as that is known: else where the last one is at the last key,
/// as it is on the rank that has most to do.
template <typename OpT> int64_t firstQueryOf(OpT op, int64_t queries, int64_t keys) {
  IntegerAttr constant;
  if (!op.getFirst())
    return static_cast<int64_t>(op.getStaticFirst());
  if (matchPattern(op.getFirst(), m_Constant(&constant)))
    return std::max<int64_t>(constant.getInt(), 0);
  return std::max<int64_t>(keys - queries, 0);
}

/// Both products of a forward with these operands; the softmax is of lower order.
template <typename OpT> std::optional<double> forwardFlops(OpT op, Value output) {
  std::optional<double> result = numElements(output.getType());
  ArrayRef<int64_t> query = shapeOf(op.getQuery()), key = shapeOf(op.getKey()),
                    value = shapeOf(op.getValue());
  int64_t keys = key[key.size() - 2];
  if (!result || ShapedType::isDynamic(keys) || ShapedType::isDynamic(query.back()))
    return std::nullopt;
  double rows = value.back() == 0 ? 0 : *result / static_cast<double>(value.back());
  double full =
      2 * rows * static_cast<double>(keys) * static_cast<double>(query.back() + value.back());
  if (!op.getIsCausal())
    return full;
  int64_t queries = query[query.size() - 2];
  if (ShapedType::isDynamic(queries))
    return full / 2;
  double all = static_cast<double>(queries) * static_cast<double>(keys);
  return all == 0 ? 0 : full * countSeen(firstQueryOf(op, queries, keys), queries, keys) / all;
}

} // namespace

LogicalResult ScaledDotProductAttentionOp::infer(Inference &inference, Adaptor op) {
  FailureOr<Attention> attention = inferAttention(inference, op);
  if (failed(attention))
    return failure();
  return inference.result(outputShape(inference, *attention, op), attention->type);
}

LogicalResult ScaledDotProductFlashAttentionOp::infer(Inference &inference, Adaptor op) {
  FailureOr<Attention> attention = inferAttention(inference, op);
  if (failed(attention))
    return failure();
  Type sums = Emitter::accumulator(attention->type);
  if (failed(inference.result(outputShape(inference, *attention, op),
                              op.getPartial() ? sums : attention->type)))
    return failure();
  return inference.result(logsumexpShape(inference, *attention, op), sums);
}

LogicalResult ScaledDotProductFlashAttentionBackwardOp::infer(Inference &inference, Adaptor op) {
  FailureOr<Attention> attention = inferAttention(inference, op);
  if (failed(attention))
    return failure();
  Shape query = inference.sizesOf(op.getQuery()), key = inference.sizesOf(op.getKey()),
        value = inference.sizesOf(op.getValue());
  size_t outer = query.size() - (op.getEnableGqa() ? 3 : 2);
  for (auto &[name, shape] : {std::pair("key", &key), std::pair("value", &value)})
    if (shape->size() != query.size() ||
        !areCompatible(ArrayRef(*shape).take_front(outer), ArrayRef(query).take_front(outer)))
      return inference.error("needs a ", name, " with the dims of query in front of its ",
                             op.getEnableGqa() ? "heads" : "last two", ": expand it");
  if (op.getEnableGqa() &&
      failed(inference.same(key[outer], value[outer], "heads of key and value")))
    return failure();
  Shape output = outputShape(inference, *attention, op);
  for (auto [name, tensor] :
       {std::pair("grad_out", op.getGradOut()), std::pair("out", op.getOut())})
    if (elementTypeOf(tensor) != attention->type ||
        !areCompatible(inference.sizesOf(tensor), output))
      return inference.error("needs ", name, " as attention of these operands returns it, not ",
                             tensor.getType());
  Type sums = Emitter::accumulator(attention->type);
  if (elementTypeOf(op.getLogsumexp()) != sums ||
      !areCompatible(inference.sizesOf(op.getLogsumexp()),
                     logsumexpShape(inference, *attention, op)))
    return inference.error("needs the logsumexp of each query, of ", sums, ", not ",
                           op.getLogsumexp().getType());
  for (const Shape &shape : {query, key, value})
    if (failed(inference.result(shape, op.getPartial() ? sums : attention->type)))
      return failure();
  return success();
}

std::optional<double> ScaledDotProductAttentionOp::getFlops() {
  return forwardFlops(*this, getResult());
}
std::optional<double> ScaledDotProductFlashAttentionOp::getFlops() {
  return forwardFlops(*this, getOutput());
}
/// Five products of this kind.
std::optional<double> ScaledDotProductFlashAttentionBackwardOp::getFlops() {
  std::optional<double> forward = forwardFlops(*this, getOut());
  return forward ? std::optional(*forward * 2.5) : std::nullopt;
}

} // namespace shardc::aten
