// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/aten/Emitter.h"
#include "dialects/aten/Neighborhood.h"
#include "dialects/aten/Rules.h"
#include "dialects/sharding/HaloCost.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

using namespace mlir;

#define GET_OP_CLASSES
#include "dialects/aten/Neighborhood.cpp.inc"

namespace shardc::aten {
namespace {

/// Larger numbers are no windows; their products would overflow.
constexpr int64_t kMaxWindow = int64_t(1) << 31;

template <typename T> Neighborhoods makeNeighborhoods(T &&op) {
  Neighborhoods all;
  for (auto [kernel, stride, dilation, isCausal] :
       llvm::zip_equal(op.getKernelSize(), op.getStride(), op.getDilation(), op.getIsCausal()))
    all.push_back({kernel, stride, dilation, isCausal});
  if (std::optional<ArrayRef<int64_t>> cut = op.getCut())
    for (auto [one, number] : llvm::zip_equal(all, *cut))
      one.cut = number;
  return all;
}

/// What all of the ops check: attributes, and the shape of queries, keys or values.
template <typename Adaptor>
FailureOr<Neighborhoods> checkWindow(Inference &inference, Adaptor op, ArrayRef<Dim> rows) {
  size_t spatial = op.getKernelSize().size();
  if (spatial < 1 || spatial > 3)
    return inference.error("has one, two or three spatial dims, not ", spatial);
  for (auto [name, count] :
       {std::pair("stride", op.getStride().size()), std::pair("dilation", op.getDilation().size()),
        std::pair("is_causal", op.getIsCausal().size()),
        std::pair("cut", op.getCut() ? op.getCut()->size() : spatial)})
    if (count != spatial)
      return inference.error(name, " must be one entry for each of ", spatial,
                             " spatial dims, not ", count);
  for (auto [name, list] :
       {std::pair("the kernel size", op.getKernelSize()), std::pair("stride", op.getStride()),
        std::pair("dilation", op.getDilation())})
    for (int64_t entry : list)
      if (entry < 1 || entry >= kMaxWindow)
        return inference.error(name, " must not be ", entry);
  if (rows.size() != kNeighborhoodBatch + spatial + kNeighborhoodRow)
    return inference.error("needs tensors of ", kNeighborhoodBatch + spatial + kNeighborhoodRow,
                           " dims (batch, ", spatial, " spatial, heads and one more), not of ",
                           rows.size());
  Neighborhoods all = makeNeighborhoods(op);
  size_t numbers = op.getStaticPlace().size();
  if (numbers != 0 && numbers != spatial * kNeighborhoodPlaces)
    return inference.error("needs a place of ", kNeighborhoodPlaces,
                           " numbers for each spatial dim, or none, not of ", numbers);
  if (failed(inference.checkDynamicList(op.getStaticPlace(), op.getPlace(), "place")))
    return failure();
  for (auto [i, one] : llvm::enumerate(all)) {
    if (one.cut < -1 || one.cut >= one.kernel)
      return inference.error("has a window of ", one.kernel, " keys, ", one.cut,
                             " of which are behind its query: there are from 0 to ", one.kernel - 1,
                             ", or -1 for a window that is not cut off");
    if (one.isCut() && (one.isCausal || one.stride != 1))
      return inference.error("has a window that is cut off at the border, which must not have a "
                             "stride or be causal");
    if (one.stride > one.kernel)
      return inference.error("has a stride of ", one.stride, " and a kernel of ", one.kernel,
                             ": a stride is at most the kernel size");
    Dim size = numbers == 0
                   ? rows[kNeighborhoodBatch + i]
                   : inference.given(op.getStaticPlace(), op.getPlace())[i * kNeighborhoodPlaces];
    std::optional<int64_t> known = size.number();
    if (known && *known > 0 && *known < one.kernel * one.dilation && !one.isIdentity() &&
        !one.isCut())
      return inference.error("has a kernel of ", one.kernel, " with dilation ", one.dilation,
                             " for a dim of ", *known, " elements, which must be at least ",
                             one.kernel * one.dilation);
  }
  return all;
}

/// Whether a place that is known lies within the whole, and has as many keys as `keys`.
template <typename Adaptor>
LogicalResult checkPlace(Inference &inference, Adaptor op, ArrayRef<Dim> queries,
                         ArrayRef<Dim> keys) {
  Shape place = inference.given(op.getStaticPlace(), op.getPlace());
  auto at = [&](size_t dim, NeighborhoodPlace which) {
    return place[dim * kNeighborhoodPlaces + static_cast<size_t>(which)];
  };
  auto isWithin = [](Dim first, Dim count, Dim size) {
    return !first.number() || !count.number() || !size.number() ||
           (*first.number() >= 0 && *first.number() <= *size.number() - *count.number());
  };
  for (size_t dim = 0; dim * kNeighborhoodPlaces < place.size(); ++dim) {
    Dim size = at(dim, NeighborhoodPlace::Size), numKeys = at(dim, NeighborhoodPlace::NumKeys);
    if (!isWithin(at(dim, NeighborhoodPlace::FirstQuery), queries[kNeighborhoodBatch + dim],
                  size) ||
        !isWithin(at(dim, NeighborhoodPlace::FirstKey), numKeys, size))
      return inference.error("has a place that is not within the whole, along spatial dim ", dim);
    if (!keys.empty() &&
        failed(inference.same(numKeys, keys[kNeighborhoodBatch + dim], "numbers of keys")))
      return failure();
  }
  return success();
}

/// Whether two tensors have the same batch and heads, and, for the whole, as many queries as keys.
template <typename Adaptor>
LogicalResult checkOuter(Inference &inference, Adaptor op, ArrayRef<Dim> queries,
                         ArrayRef<Dim> keys) {
  size_t spatial = op.getKernelSize().size(), heads = kNeighborhoodBatch + spatial;
  if (failed(inference.same(queries[0], keys[0], "batch sizes")) ||
      failed(inference.same(queries[heads], keys[heads], "numbers of heads")))
    return failure();
  for (size_t i = kNeighborhoodBatch; op.getStaticPlace().empty() && i < heads; ++i)
    if (failed(inference.same(queries[i], keys[i], "numbers of queries and keys")))
      return failure();
  return success();
}

/// Whether `weights` has a number for each neighbor of each query.
template <typename Adaptor> LogicalResult checkWeights(Inference &inference, Adaptor op) {
  Shape shape = inference.sizesOf(op.getWeights());
  ArrayRef<int64_t> kernel = op.getKernelSize();
  size_t outer = kNeighborhoodBatch + kernel.size() + 1;
  if (shape.size() != outer + kernel.size())
    return inference.error("needs weights of ", outer + kernel.size(), " dims, not of ",
                           shape.size());
  for (auto [own, size] : llvm::zip_equal(ArrayRef(shape).drop_front(outer), kernel))
    if (failed(inference.same(own, Dim(size), "kernel sizes")))
      return failure();
  return success();
}

/// Twice the number of scores times the length of a row.
std::optional<double> flopsOf(Value scores, Value rows) {
  std::optional<double> count = numElements(scores.getType());
  int64_t length = shapeOf(rows).back();
  if (!count || ShapedType::isDynamic(length))
    return std::nullopt;
  return 2 * *count * static_cast<double>(length);
}

//===----------------------------------------------------------------------===//
// How the ops may be sharded
//===----------------------------------------------------------------------===//

/// Queries and keys of one spatial dim.
struct SpatialDim {
  Neighborhood neighborhood;
  int64_t size;

  /// Most keys of others that one of two ranks has to get.
  int64_t halo() const {
    return mostLackedOfTwo(size, size, [&](Run own) { return keysOfAll(neighborhood, own, size); });
  }
};

/// Factors of batch, spatial dims and heads, which all tensors have, at the same dims. `moved` is
/// the tensor of which ranks get or send elements, and `result` that of the op.
template <typename Op>
void shardOuter(RuleBuilder &builder, Op op, ArrayRef<int64_t> moved, ArrayRef<int64_t> result) {
  Neighborhoods neighborhoods = op.getNeighborhoods();
  ArrayRef<int64_t> queries = shapeOf(op->getOperand(0));
  for (size_t dim = 0; dim < kNeighborhoodBatch + neighborhoods.size() + 1; ++dim) {
    int64_t size = queries[dim];
    if (size == 1)
      continue;
    size_t spatial = dim - kNeighborhoodBatch;
    unsigned factor;
    if (dim < kNeighborhoodBatch || spatial == neighborhoods.size() ||
        neighborhoods[spatial].isIdentity()) {
      factor = builder.factor(size);
    } else {
      if (ShapedType::isDynamic(size) || size == 0)
        continue;
      SpatialDim own{neighborhoods[spatial], size};
      factor = builder.factor(size, FactorKind::Neighbouring);
      builder.at(factor).inOnePiece = true;
      double amount = static_cast<double>(own.halo()) * elementsOf(moved);
      builder.at(factor).haloAfter = elementsOf(result) == 0 ? 0 : amount / elementsOf(result);
    }
    auto at = static_cast<int64_t>(dim);
    builder.operandDim(0, at, {factor}).operandDim(1, at, {factor}).resultDim(0, at, {factor});
  }
}

/// The last dim of one operand, and of the other or of the result.
unsigned rowFactor(RuleBuilder &builder, Value rows, FactorKind kind) {
  return builder.factor(shapeOf(rows).back(), kind);
}

} // namespace

Neighborhoods NeighborhoodQkOp::getNeighborhoods() { return makeNeighborhoods(*this); }
Neighborhoods NeighborhoodAvOp::getNeighborhoods() { return makeNeighborhoods(*this); }
Neighborhoods NeighborhoodAdjointOp::getNeighborhoods() { return makeNeighborhoods(*this); }

LogicalResult NeighborhoodQkOp::infer(Inference &inference, Adaptor op) {
  Shape query = inference.sizesOf(op.getQuery()), key = inference.sizesOf(op.getKey());
  FailureOr<Type> type = inference.sameElementType({op.getQuery(), op.getKey()});
  FailureOr<Neighborhoods> all = checkWindow(inference, op, query);
  if (failed(type) || failed(all))
    return failure();
  if (key.size() != query.size())
    return inference.error("needs a key of as many dims as the query, not of ", key.size());
  if (failed(checkOuter(inference, op, query, key)) ||
      failed(checkPlace(inference, op, query, key)) ||
      failed(inference.same(query.back(), key.back(), "last dims of query and key")))
    return failure();
  Shape scores(ArrayRef(query).drop_back());
  for (const Neighborhood &one : *all)
    scores.push_back(one.kernel);
  return inference.result(scores, Emitter::accumulator(*type));
}

LogicalResult NeighborhoodAvOp::infer(Inference &inference, Adaptor op) {
  Shape value = inference.sizesOf(op.getValue()), weights = inference.sizesOf(op.getWeights());
  Type type = elementTypeOf(op.getValue());
  if (elementTypeOf(op.getWeights()) != Emitter::accumulator(type))
    return inference.error("needs weights of ", Emitter::accumulator(type), ", not of ",
                           elementTypeOf(op.getWeights()));
  if (failed(checkWindow(inference, op, value)) || failed(checkWeights(inference, op)) ||
      failed(checkOuter(inference, op, weights, value)) ||
      failed(checkPlace(inference, op, weights, value)))
    return failure();
  Shape result(ArrayRef(weights).take_front(value.size() - 1));
  result.push_back(value.back());
  return inference.result(result, type);
}

LogicalResult NeighborhoodAdjointOp::infer(Inference &inference, Adaptor op) {
  Shape rows = inference.sizesOf(op.getRows()), weights = inference.sizesOf(op.getWeights());
  Type type = elementTypeOf(op.getRows());
  if (elementTypeOf(op.getWeights()) != Emitter::accumulator(type))
    return inference.error("needs weights of ", Emitter::accumulator(type), ", not of ",
                           elementTypeOf(op.getWeights()));
  FailureOr<Neighborhoods> all = checkWindow(inference, op, rows);
  if (failed(all) || failed(checkWeights(inference, op)) ||
      failed(checkPlace(inference, op, rows, {})))
    return failure();
  for (size_t dim = 0; dim + 1 < rows.size(); ++dim)
    if (failed(inference.same(rows[dim], weights[dim], "sizes of weights and rows")))
      return failure();
  Shape place = inference.given(op.getStaticPlace(), op.getPlace());
  for (size_t i = 0; !place.empty() && i < all->size(); ++i)
    rows[kNeighborhoodBatch + i] =
        place[i * kNeighborhoodPlaces + static_cast<size_t>(NeighborhoodPlace::NumKeys)];
  return inference.result(rows, type);
}

std::optional<double> NeighborhoodQkOp::getFlops() { return flopsOf(getResult(), getQuery()); }
std::optional<double> NeighborhoodAvOp::getFlops() { return flopsOf(getWeights(), getValue()); }
std::optional<double> NeighborhoodAdjointOp::getFlops() { return flopsOf(getWeights(), getRows()); }

ShardingRule NeighborhoodQkOp::getShardingRule() {
  RuleBuilder builder = ruleBuilder(*this);
  shardOuter(builder, *this, shapeOf(getKey()), shapeOf(getResult()));
  if (shapeOf(getQuery()).back() != 1) {
    unsigned row = rowFactor(builder, getQuery(), FactorKind::Reducing);
    builder.operandDim(0, -1, {row}).operandDim(1, -1, {row});
  }
  return builder.linear(0).linear(1).build();
}

ShardingRule NeighborhoodAvOp::getShardingRule() {
  RuleBuilder builder = ruleBuilder(*this);
  shardOuter(builder, *this, shapeOf(getValue()), shapeOf(getResult()));
  if (shapeOf(getValue()).back() != 1) {
    unsigned row = rowFactor(builder, getValue(), FactorKind::Parallel);
    builder.operandDim(1, -1, {row}).resultDim(0, -1, {row});
  }
  return builder.linear(0).linear(1).build();
}

ShardingRule NeighborhoodAdjointOp::getShardingRule() {
  RuleBuilder builder = ruleBuilder(*this);
  // A part of the whole has other keys than queries: nothing is said of it.
  if (getStaticPlace().empty())
    shardOuter(builder, *this, shapeOf(getResult()), shapeOf(getResult()));
  if (shapeOf(getRows()).back() != 1) {
    unsigned row = rowFactor(builder, getRows(), FactorKind::Parallel);
    builder.operandDim(1, -1, {row}).resultDim(0, -1, {row});
  }
  return builder.linear(0).linear(1).build();
}

} // namespace shardc::aten
