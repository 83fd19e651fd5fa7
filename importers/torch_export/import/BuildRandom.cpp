// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Random numbers, dropout, and attention that drops weights.
#include "importers/torch_export/import/BuildersInternal.h"
#include "importers/torch_export/import/SliceBuilders.h"

#include "dialects/aten/Emitter.h"
#include "dialects/aten/Random.h"
#include "dialects/aten/TrainingAttention.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace shardc::torch_export {
namespace {

LogicalResult checkGenerator(Call &call) {
  if (!call.schema.find("generator") || call.isNone("generator"))
    return success();
  return call.error() << "a generator of its own is not supported: all random numbers of a program "
                         "come from its states 'random.seed' and 'random.offset'";
}

/// Numbers of the shape of the call's result.
FailureOr<Value> draw(Call &call, StringRef distribution, Type type) {
  FailureOr<SmallVector<OpFoldResult>> sizes = call.resultSizes();
  if (failed(checkGenerator(call)) || failed(sizes))
    return failure();
  return call.draw(distribution, type, *sizes);
}

FailureOr<double> probability(Call &call, StringRef name) {
  FailureOr<std::optional<double>> p = call.real(name);
  if (failed(p))
    return failure();
  double value = p->value_or(0.5);
  if (!(value >= 0 && value <= 1))
    return call.error() << "the probability '" << name << "' is " << value << ", not in [0, 1]";
  return value;
}

/// Bools of these sizes that are true with probability `p`.
FailureOr<Value> drawBools(Call &call, ArrayRef<OpFoldResult> sizes, double p) {
  Emitter emit(call.builder, call.loc);
  Type f32 = call.builder.getF32Type();
  FailureOr<Value> numbers = call.draw("uniform", f32, sizes);
  if (failed(numbers))
    return failure();
  return emit.binary<aten::LtOp>(*numbers, emit.scalar(p, f32));
}

Value buildDropped(Call &call, Value self, Value kept, double p) {
  return aten::DropoutOp::create(call.builder, call.loc, self, kept, APFloat(p));
}

/// `self`, whose elements the numbers are written over; its gradient is zero.
FailureOr<Results> overwrite(Call &call, Value numbers) {
  FailureOr<Value> self = call.tensor("self");
  if (failed(self))
    return failure();
  Emitter emit(call.builder, call.loc);
  return one(buildOverwritten(call.builder, call.loc, *self,
                              emit.cast(numbers, aten::elementTypeOf(*self))));
}

} // namespace

//===----------------------------------------------------------------------===//
// Tensors of numbers
//===----------------------------------------------------------------------===//

FailureOr<Results> buildRandom(Call &call) {
  bool isNormal = StringRef(call.schema.overload).starts_with("randn");
  Type type = call.resultElementType();
  if (!isa<FloatType>(type))
    return call.error() << "makes tensors of floats only";
  return one(draw(call, isNormal ? "normal" : "uniform", type));
}

FailureOr<Results> buildRandomIntegers(Call &call) {
  FailureOr<std::optional<int64_t>> high = call.integer("high");
  FailureOr<std::optional<int64_t>> low =
      call.schema.find("low") ? call.integer("low") : std::optional<int64_t>(0);
  if (failed(high) || failed(low))
    return failure();
  if (!*high || !*low || **high <= **low)
    return call.error() << "needs numbers low < high";
  Type i64 = call.builder.getI64Type();
  FailureOr<Value> bits = draw(call, "bits", i64);
  if (failed(bits))
    return failure();
  Emitter emit(call.builder, call.loc);
  // A range of more than 2^63 has every number that 63 bits have above its lower end.
  uint64_t range = uint64_t(**high) - uint64_t(**low);
  Value number = *bits;
  if (range <= uint64_t(std::numeric_limits<int64_t>::max()))
    number = emit.binary<aten::RemainderOp>(number, emit.integer(int64_t(range), i64));
  return Results{emit.cast(emit.add(number, emit.integer(**low, i64)), call.resultElementType())};
}

FailureOr<Results> buildUniform(Call &call) {
  FailureOr<std::optional<double>> from = call.real("from"), to = call.real("to");
  Type type = call.resultElementType();
  FailureOr<Value> numbers = draw(call, "uniform", type);
  if (failed(from) || failed(to) || failed(numbers))
    return failure();
  double low = from->value_or(0), high = to->value_or(1);
  Emitter emit(call.builder, call.loc);
  Type wide = Emitter::accumulator(type);
  Value scaled = emit.mul(emit.cast(*numbers, wide), emit.scalar(high - low, wide));
  return overwrite(call, emit.add(scaled, emit.scalar(low, wide)));
}

namespace {

/// mean + std * number. Tensors get no gradient, as in PyTorch.
FailureOr<Value> drawNormal(Call &call) {
  Type type = call.resultElementType();
  FailureOr<Value> numbers = draw(call, "normal", type);
  if (failed(numbers))
    return failure();
  Emitter emit(call.builder, call.loc);
  auto parameter = [&](StringRef name) -> FailureOr<Value> {
    const Argument *argument = call.find(name);
    if (!std::holds_alternative<TensorArg>(*argument))
      return call.scalar(*argument, type);
    FailureOr<Value> tensor = call.tensor(name);
    if (failed(tensor))
      return failure();
    auto alias = aten::AliasOp::create(call.builder, call.loc, *tensor);
    alias.setDetached(true);
    return alias.getResult();
  };
  FailureOr<Value> mean = parameter("mean"), deviation = parameter("std");
  if (failed(mean) || failed(deviation))
    return failure();
  return emit.cast(emit.add(emit.mul(*numbers, *deviation), *mean), type);
}

} // namespace

FailureOr<Results> buildNormal(Call &call) {
  FailureOr<Value> numbers = drawNormal(call);
  if (failed(numbers))
    return failure();
  return call.schema.find("self") ? overwrite(call, *numbers) : one(numbers);
}

FailureOr<Results> buildBernoulli(Call &call) {
  Emitter emit(call.builder, call.loc);
  StringRef probabilities = call.schema.find("p") ? "p" : "self";
  const Argument *given = call.find(probabilities);
  if (!std::holds_alternative<TensorArg>(*given)) {
    FailureOr<double> p = probability(call, "p");
    FailureOr<SmallVector<OpFoldResult>> sizes = call.resultSizes();
    if (failed(p) || failed(sizes) || failed(checkGenerator(call)))
      return failure();
    FailureOr<Value> bools = drawBools(call, *sizes, *p);
    return failed(bools) ? FailureOr<Results>(failure()) : overwrite(call, *bools);
  }
  FailureOr<Value> p = call.tensor(probabilities);
  if (failed(p))
    return failure();
  // A probability is compared as it is: with numbers of no fewer digits.
  Type type =
      aten::elementTypeOf(*p).isF64() ? call.builder.getF64Type() : Type(call.builder.getF32Type());
  FailureOr<Value> numbers = draw(call, "uniform", type);
  if (failed(numbers))
    return failure();
  Value bools = emit.binary<aten::LtOp>(*numbers, emit.cast(*p, type));
  return call.schema.find("p") ? overwrite(call, bools)
                               : Results{emit.cast(bools, call.resultElementType())};
}

//===----------------------------------------------------------------------===//
// Dropout
//===----------------------------------------------------------------------===//

FailureOr<Results> buildDropout(Call &call) {
  FailureOr<Value> self = call.tensor(call.schema.arguments.front().name);
  FailureOr<bool> train = call.isNone("train") ? FailureOr<bool>(true) : call.boolean("train");
  FailureOr<double> p = probability(call, "p");
  FailureOr<SmallVector<OpFoldResult>> sizes = call.resultSizes();
  if (failed(self) || failed(train) || failed(p) || failed(sizes))
    return failure();
  StringRef packet = StringRef(call.schema.overload).split('.').first;
  packet.consume_back("_");
  if (!*train || *p == 0) {
    FailureOr<Value> value = call.buildOne("aten.alias", {{"self", {*self}}});
    if (failed(value))
      return failure();
    Results results{*value};
    if (packet == "native_dropout")
      results.push_back(aten::buildFull(
          call.builder,
          aten::buildScalar(call.builder, call.loc, call.builder.getI1Type(), int64_t(1)), *sizes));
    return results;
  }
  if (packet.contains("alpha"))
    return call.error() << "'" << packet << "' in training is not supported";
  // Whole channels: one number for all elements behind the first two dims.
  if (packet == "feature_dropout")
    for (OpFoldResult &size :
         MutableArrayRef(*sizes).drop_front(std::min<size_t>(2, sizes->size())))
      size = call.builder.getIndexAttr(1);
  FailureOr<Value> kept = drawBools(call, *sizes, 1 - *p);
  if (failed(kept))
    return failure();
  Results results{buildDropped(call, *self, *kept, *p)};
  if (packet == "native_dropout")
    results.push_back(*kept);
  return results;
}

FailureOr<Results> buildDropoutBackward(Call &call) {
  FailureOr<Value> grad = call.tensor("grad_output"), mask = call.tensor("mask");
  FailureOr<std::optional<double>> scale = call.real("scale");
  if (failed(grad) || failed(mask) || failed(scale))
    return failure();
  // PyTorch's scale is 0 where all is dropped.
  double factor = scale->value_or(1);
  return Results{buildDropped(call, *grad, *mask, factor == 0 ? 1 : 1 - 1 / factor)};
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

namespace {

/// Attention as products and a softmax, whose weights are dropped: in f32 for shorter floats, as
/// PyTorch's composition computes it.
struct DroppingAttention {
  Call &call;
  double p;
  Emitter emit;
  Type type, wide;
  Value query, key, value, mask;
  DistinctAttr mark; // of the values that it is made of

  DroppingAttention(Call &call, double p) : call(call), p(p), emit(call.builder, call.loc) {}

  LogicalResult read() {
    for (auto [name, into] : {std::pair("query", &query), std::pair("key", &key),
                              std::pair("value", &value), std::pair("attn_mask", &mask)}) {
      FailureOr<Value> tensor = call.tensor(name);
      if (failed(tensor))
        return failure();
      *into = *tensor;
    }
    for (auto [name, operand] : {std::pair(aten::kAttentionQuery, &query),
                                 {aten::kAttentionKey, &key},
                                 {aten::kAttentionValue, &value},
                                 {aten::kAttentionMask, &mask}})
      if (*operand)
        *operand = part(name, *operand);
    type = aten::elementTypeOf(query);
    wide = Emitter::accumulator(type);
    return success();
  }

  aten::AliasOp part(StringRef name, Value x) {
    auto alias = aten::AliasOp::create(call.builder, call.loc, x);
    if (!mark)
      mark = DistinctAttr::create(call.builder.getUnitAttr());
    alias->setAttr(aten::kTrainingAttentionAttr, mark);
    alias->setAttr(aten::kAttentionPartAttr, call.builder.getStringAttr(name));
    return alias;
  }

  /// The result, with what the op of attention would have been told.
  FailureOr<Value> result(Value x, bool isCausal, bool isGrouped) {
    FailureOr<std::optional<double>> scale = call.real("scale");
    if (failed(scale))
      return failure();
    NamedAttrList options;
    for (auto [name, holds] :
         {std::pair("attn_mask", bool(mask)), {"is_causal", isCausal}, {"enable_gqa", isGrouped}})
      if (holds)
        options.set(name, call.builder.getUnitAttr());
    if (*scale)
      options.set("scale", call.builder.getF64FloatAttr(**scale));
    aten::AliasOp alias = part(aten::kAttentionResult, x);
    alias->setAttr(aten::kAttentionOptionsAttr, options.getDictionary(call.builder.getContext()));
    return alias.getResult();
  }

  OpFoldResult size(Value x, int64_t fromEnd) {
    auto sizes = sizesOf(call.builder, call.loc, x);
    return sizes[sizes.size() - fromEnd];
  }

  /// Each head as often as it has queries: [..., heads, S, E] to [..., heads, group, S, E], and
  /// back.
  FailureOr<Value> repeatHeads(Value x) {
    ArrayRef<int64_t> shape = aten::shapeOf(x), queries = aten::shapeOf(query);
    auto rank = static_cast<int64_t>(shape.size());
    if (rank < 3 || queries.size() < 3 || ShapedType::isDynamic(shape[rank - 3]) ||
        ShapedType::isDynamic(queries[queries.size() - 3]))
      return call.error() << "grouped queries with dropout need known numbers of heads";
    int64_t heads = queries[queries.size() - 3], own = shape[rank - 3];
    if (heads == own)
      return x;
    if (own == 0 || heads % own != 0)
      return call.error() << "has " << heads << " heads of queries for " << own << " of keys";
    SmallVector<OpFoldResult> sizes = sizesOf(call.builder, call.loc, x), repeated = sizes;
    repeated.insert(repeated.begin() + rank - 2, call.builder.getIndexAttr(heads / own));
    sizes[rank - 3] = call.builder.getIndexAttr(heads);
    FailureOr<Value> all =
        buildExpand(call.builder, call.loc, emit.unsqueeze(x, rank - 2), repeated);
    return failed(all) ? all : buildView(call.builder, call.loc, *all, sizes);
  }

  FailureOr<Value> factor() {
    FailureOr<std::optional<double>> scale = call.real("scale");
    if (failed(scale))
      return failure();
    OpFoldResult depth = size(query, 1);
    if (*scale)
      return emit.scalar(**scale, wide);
    if (std::optional<int64_t> known = getConstantIntValue(depth))
      return emit.scalar(*known == 0 ? 0 : 1 / std::sqrt(double(*known)), wide);
    return emit.unary<aten::RsqrtOp>(emit.ofIndex(cast<Value>(depth), wide));
  }

  /// [queries, keys]: key j <= query i.
  Value causalMask() {
    Value zero = arith(0);
    auto positions = [&](OpFoldResult length, int64_t dim) {
      Value range =
          emit.range(zero, getValueOrCreateConstantIndexOp(call.builder, call.loc, length));
      return emit.unsqueeze(range, dim);
    };
    return emit.binary<aten::LeOp>(positions(size(key, 2), 0), positions(size(query, 2), 1));
  }
  Value arith(int64_t number) {
    return getValueOrCreateConstantIndexOp(call.builder, call.loc,
                                           call.builder.getIndexAttr(number));
  }

  Value turned(Value x) {
    int64_t rank = aten::typeOf(x).getRank();
    return aten::TransposeOp::create(call.builder, call.loc, x, rank - 2, rank - 1);
  }

  FailureOr<Results> build() {
    FailureOr<bool> isCausal = call.boolean("is_causal"), isGrouped = call.boolean("enable_gqa");
    if (failed(read()) || failed(isCausal) || failed(isGrouped))
      return failure();
    FailureOr<Value> scale = factor(), keys = key, values = value;
    if (*isGrouped) {
      keys = repeatHeads(key);
      values = repeatHeads(value);
    }
    if (failed(scale) || failed(keys) || failed(values))
      return failure();
    Value hidden = emit.scalar(-INFINITY, wide);
    Value scores = emit.mul(
        emit.binary<aten::MatmulOp>(emit.cast(query, wide), turned(emit.cast(*keys, wide))),
        *scale);
    if (*isCausal)
      scores = emit.where(causalMask(), scores, hidden);
    if (mask)
      scores = aten::elementTypeOf(mask).isInteger(1) ? emit.where(mask, scores, hidden)
                                                      : emit.add(scores, emit.cast(mask, wide));
    int64_t last = aten::typeOf(scores).getRank() - 1;
    // A query that sees no key has weights of 0, and gives no gradient.
    Value sees;
    if (mask) {
      sees = emit.binary<aten::NeOp>(emit.amax(scores, last, /*keepdim=*/true), hidden);
      scores = emit.where(sees, scores, emit.scalar(0, wide));
    }
    Value weights = aten::SoftmaxOp::create(call.builder, call.loc, scores, last, TypeAttr());
    if (sees)
      weights = emit.where(sees, weights, emit.scalar(0, wide));
    FailureOr<Value> kept = drawBools(call, sizesOf(call.builder, call.loc, weights), 1 - p);
    if (failed(kept))
      return failure();
    Value output = emit.binary<aten::MatmulOp>(buildDropped(call, weights, *kept, p),
                                               emit.cast(*values, wide));
    return one(result(emit.cast(output, type), *isCausal, *isGrouped));
  }
};

} // namespace

FailureOr<Results> buildAttention(Call &call) {
  FailureOr<double> p = probability(call, "dropout_p");
  if (failed(p))
    return failure();
  if (*p == 0)
    return buildByName(call, "aten.scaled_dot_product_attention");
  return DroppingAttention(call, *p).build();
}

} // namespace shardc::torch_export
