// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Attention: the forward keeps its logsumexp, and one op is the backward. What that op has no form
// for (a trained mask, sharded columns of values, partial operands) is written out as
// products and a softmax.

#include "passes/gradient/differentiate/Models.h"

#include "dialects/dist/Dist.h"

#include <cmath>

using namespace mlir;
using namespace shardc;

namespace {

Expr turned(Expr x) { return transpose(x, x.rank() - 2, x.rank() - 1); }

template <typename OpT> std::optional<double> scaleOf(OpT op) {
  if (std::optional<APFloat> scale = op.getScale())
    return scale->convertToDouble();
  int64_t depth = aten::shapeOf(op.getQuery()).back();
  if (ShapedType::isDynamic(depth))
    return std::nullopt;
  return depth == 0 ? 0 : 1 / std::sqrt(static_cast<double>(depth));
}

/// [queries, keys]: key j <= query i, which is `first` behind its place here.
template <typename OpT> Expr causalMask(Derivation &d, OpT op) {
  Type i64 = d.builder.getI64Type();
  int64_t queryRank = aten::typeOf(op.getQuery()).getRank(),
          keyRank = aten::typeOf(op.getKey()).getRank();
  Expr rows = d.positions(d.size(op.getQuery(), queryRank - 2), 0, 2, i64);
  if (op.getFirst())
    rows = rows + d.of(d.emit.ofIndex(op.getFirst(), i64));
  else if (int64_t first = static_cast<int64_t>(op.getStaticFirst()); first != 0)
    rows = rows + d.of(d.emit.integer(first, i64));
  Expr columns = d.positions(d.size(op.getKey(), keyRank - 2), 1, 2, i64);
  return le(columns, rows);
}

/// With grouped queries a head is (key head, position in its group), and keys have one position.
template <typename OpT> struct Heads {
  Derivation &d;
  OpT op;
  bool isGrouped;
  int64_t dim = 0; ///< of the heads

  Heads(Derivation &d, OpT op)
      : d(d), op(op), isGrouped(op.getEnableGqa()), dim(d.result().rank() - 3) {}

  static bool areKnown(OpT op) {
    for (Value tensor : {op.getQuery(), op.getKey(), op.getValue()}) {
      ArrayRef<int64_t> shape = aten::shapeOf(tensor);
      if (shape.size() < 3 || ShapedType::isDynamic(shape[shape.size() - 3]))
        return false;
    }
    return true;
  }

  Expr ofQuery(Expr x) {
    if (!isGrouped)
      return x;
    SmallVector<OpFoldResult> sizes = d.sizes(x.value);
    return view(x, grouped(sizes));
  }
  Expr ofKey(Expr x) { return isGrouped ? unsqueeze(x, dim + 1) : x; }
  Expr ofMask(Expr x) {
    if (!isGrouped || x.rank() < 3)
      return x;
    int64_t heads = x.rank() - 3;
    SmallVector<OpFoldResult> sizes = d.sizes(x.value);
    if (getConstantIntValue(sizes[heads]) == 1)
      return unsqueeze(x, heads);
    SmallVector<OpFoldResult> split = headSizes();
    sizes[heads] = split[1];
    sizes.insert(sizes.begin() + heads, split[0]);
    return view(x, sizes);
  }
  Expr backToQuery(Expr x) { return isGrouped ? view(x, d.sizes(op.getQuery())) : x; }
  /// The group's queries share the key.
  Expr backToKey(Expr x, Value like) {
    return isGrouped ? view(sum(x, dim + 1, /*keepdim=*/true), d.sizes(like)) : x;
  }
  Expr backToMask(Expr x) {
    if (!isGrouped)
      return x;
    SmallVector<OpFoldResult> sizes = d.sizes(op.getQuery());
    sizes.back() = d.size(op.getKey(), aten::typeOf(op.getKey()).getRank() - 2);
    return view(x, sizes);
  }

private:
  SmallVector<OpFoldResult> headSizes() {
    OpFoldResult keys = d.size(op.getKey(), dim);
    int64_t all = aten::shapeOf(op.getQuery())[dim];
    int64_t ofKeys = aten::shapeOf(op.getKey())[dim];
    int64_t group = ofKeys > 0 ? all / ofKeys : 1;
    return {keys, d.builder.getIndexAttr(group)};
  }
  SmallVector<OpFoldResult> grouped(SmallVector<OpFoldResult> sizes) {
    SmallVector<OpFoldResult> split = headSizes();
    sizes[dim] = split[1];
    sizes.insert(sizes.begin() + dim, split[0]);
    return sizes;
  }
};

/// The scores are computed again, as a whole.
template <typename OpT> void writeOut(Derivation &d, OpT op) {
  Heads<OpT> heads(d, op);
  Type type = Emitter::accumulator(aten::elementTypeOf(op.getQuery()));
  Expr query = cast(heads.ofQuery(d.of(op.getQuery())), type);
  Expr key = cast(heads.ofKey(d.of(op.getKey())), type);
  Expr value = cast(heads.ofKey(d.of(op.getValue())), type);
  Expr grad = cast(heads.ofQuery(d.grad()), type);
  std::optional<double> known = scaleOf(op);
  Expr scale = known ? d.of(d.emit.scalar(*known, type))
                     : rsqrt(d.scalar(d.size(op.getQuery(), query.rank() - 1), type));

  Expr scores = matmul(query, turned(key)) * scale;
  Expr bias; // what is added, if anything asks for its cotangent
  if (op.getIsCausal())
    scores = where(causalMask(d, op), scores, -INFINITY);
  if (Value given = op.getAttnMask()) {
    Expr mask = heads.ofMask(d.of(given));
    if (mask.elementType().isInteger(1))
      scores = where(mask, scores, -INFINITY);
    else
      scores = scores + (bias = cast(mask, type));
  }
  Expr weights = d.of(aten::SoftmaxOp::create(d.builder, d.emit.getLoc(), scores.value,
                                              scores.rank() - 1, TypeAttr()));
  // A query that sees no key has a result of 0, and softmax has none.
  if (op.getAttnMask())
    weights = where(eq(weights, weights), weights, 0);
  Expr ofWeights = matmul(grad, turned(value));
  Expr inner = sum(ofWeights * weights, scores.rank() - 1, /*keepdim=*/true);
  Expr ofScores = weights * (ofWeights - inner);
  if (d.needs(0))
    d.add(0, heads.backToQuery(matmul(ofScores, key) * scale));
  if (d.needs(1))
    d.add(1, heads.backToKey(matmul(turned(ofScores), query) * scale, op.getKey()));
  if (d.needs(2))
    d.add(2, heads.backToKey(matmul(turned(weights), grad), op.getValue()));
  if (bias && d.needs(3))
    d.add(3, heads.backToMask(ofScores));
}

/// The dims in front of the last `own` as in another tensor: repeated where they are missing or 1.
Expr repeatOuter(Derivation &d, Expr x, Value like, int64_t own) {
  ArrayRef<int64_t> have = aten::shapeOf(x.value), wanted = aten::shapeOf(like);
  if (have.drop_back(own) == wanted.drop_back(own))
    return x;
  SmallVector<OpFoldResult> sizes = d.sizes(like), ownSizes = d.sizes(x.value);
  for (int64_t i = 1; i <= own; ++i)
    sizes[sizes.size() - i] = ownSizes[ownSizes.size() - i];
  return expand(x, sizes);
}

/// What a placed op says of its operands; null without a layout.
const Layout *layoutOf(Value value) {
  dist::LayoutAttr layout = value ? dist::getLayout(value.getType()) : dist::LayoutAttr();
  return layout ? &layout.getValue() : nullptr;
}

bool isSharded(Value value, int64_t dimFromEnd) {
  const Layout *layout = layoutOf(value);
  return layout && !layout->axesOfDim(aten::typeOf(value).getRank() - dimFromEnd).empty();
}

/// Whether the backward op computes what is asked for without moving more than the op moved.
template <typename OpT> bool hasBackward(Derivation &d, OpT op) {
  Value mask = op.getAttnMask();
  if (mask && !aten::elementTypeOf(mask).isInteger(1) && d.needs(3))
    return false;
  SmallVector<Value> values(op->getOperands());
  values.push_back(op->getResult(0));
  for (Value value : values)
    if (const Layout *layout = layoutOf(value); layout && layout->hasPartial())
      return false;
  return !isSharded(op.getValue(), 1);
}

/// The same attention, which keeps its logsumexp: that has the layout of the result, whose last dim
/// is whole.
aten::ScaledDotProductFlashAttentionOp withLogsumexp(Derivation &d,
                                                     aten::ScaledDotProductFlashAttentionOp op) {
  return op;
}
aten::ScaledDotProductFlashAttentionOp withLogsumexp(Derivation &d,
                                                     aten::ScaledDotProductAttentionOp op) {
  OpBuilder::InsertionGuard guard(d.builder);
  d.builder.setInsertionPoint(op);
  auto output = aten::typeOf(op.getResult());
  auto rows =
      RankedTensorType::get(output.getShape().drop_back(),
                            Emitter::accumulator(output.getElementType()), output.getEncoding());
  auto made = aten::ScaledDotProductFlashAttentionOp::create(
      d.builder, op.getLoc(), TypeRange{output, rows}, op.getQuery(), op.getKey(), op.getValue(),
      op.getAttnMask(), op.getDropoutPAttr(), op.getIsCausalAttr(), op.getScaleAttr(),
      op.getEnableGqaAttr(), op.getStaticFirstAttr(), op.getFirst(),
      /*partial=*/UnitAttr());
  d.context.replace(made);
  return made;
}

/// Key or value with a head for each head of the query.
Expr forEachQuery(Derivation &d, Expr x, OpFoldResult queryHeads) {
  int64_t dim = x.rank() - 3;
  int64_t group =
      *getConstantIntValue(queryHeads) / std::max<int64_t>(aten::shapeOf(x.value)[dim], 1);
  SmallVector<OpFoldResult> sizes = d.sizes(x.value);
  sizes.insert(sizes.begin() + dim + 1, d.builder.getIndexAttr(group));
  Expr repeated = expand(unsqueeze(x, dim + 1), sizes);
  sizes.erase(sizes.begin() + dim);
  sizes[dim] = queryHeads;
  return view(repeated, sizes);
}

/// Its adjoint: the heads of the query that share one of `like` are added.
Expr sumOfGroups(Derivation &d, Expr x, Value like) {
  int64_t dim = x.rank() - 3, heads = aten::shapeOf(like)[aten::typeOf(like).getRank() - 3];
  SmallVector<OpFoldResult> sizes = d.sizes(x.value);
  int64_t group = *getConstantIntValue(sizes[dim]) / std::max<int64_t>(heads, 1);
  sizes[dim] = d.builder.getIndexAttr(heads);
  sizes.insert(sizes.begin() + dim + 1, d.builder.getIndexAttr(group));
  return sum(view(x, sizes), dim + 1, /*keepdim=*/false);
}

/// Whether ranks have queries of a group without others of it, or keys and values differ in heads:
/// what the backward op has no form for. There, every query gets a key of its own.
bool hasSplitGroups(aten::ScaledDotProductFlashAttentionOp op) {
  auto headsOf = [](Value x) { return aten::shapeOf(x)[aten::typeOf(x).getRank() - 3]; };
  auto axesOf = [](Value x) {
    const Layout *layout = layoutOf(x);
    return layout ? layout->axesOfDim(aten::typeOf(x).getRank() - 3) : std::vector<unsigned>();
  };
  return op.getEnableGqa() && (headsOf(op.getKey()) != headsOf(op.getValue()) ||
                               axesOf(op.getKey()) != axesOf(op.getQuery()) ||
                               axesOf(op.getValue()) != axesOf(op.getQuery()));
}

template <typename OpT> void callBackward(Derivation &plain, OpT replaced) {
  aten::ScaledDotProductFlashAttentionOp op = withLogsumexp(plain, replaced);
  Derivation d(op, plain.builder, plain.context);
  Value output = op.getOutput();
  int64_t own = op.getEnableGqa() ? 3 : 2; // dims that keys do not share with queries
  Expr query = repeatOuter(d, d.of(op.getQuery()), output, 2);
  Expr key = repeatOuter(d, d.of(op.getKey()), output, own);
  Expr value = repeatOuter(d, d.of(op.getValue()), output, own);
  bool isSplit = hasSplitGroups(op);
  if (isSplit) {
    OpFoldResult heads = d.size(output, query.rank() - 3);
    key = forEachQuery(d, key, heads);
    value = forEachQuery(d, value, heads);
  }
  auto made = aten::ScaledDotProductFlashAttentionBackwardOp::create(
      d.builder, d.emit.getLoc(), d.grad().value, query.value, key.value, value.value, output,
      op.getLogsumexp(), op.getAttnMask(), op.getDropoutPAttr(), op.getIsCausalAttr(),
      op.getScaleAttr(), isSplit ? UnitAttr() : op.getEnableGqaAttr(), op.getStaticFirstAttr(),
      op.getFirst(), /*partial=*/UnitAttr());
  auto ofKey = [&](Expr x, Value like) { return isSplit ? sumOfGroups(d, x, like) : x; };
  if (d.needs(0))
    d.add(0, d.of(made.getGradQuery()));
  if (d.needs(1))
    d.add(1, ofKey(d.of(made.getGradKey()), op.getKey()));
  if (d.needs(2))
    d.add(2, ofKey(d.of(made.getGradValue()), op.getValue()));
}

bool isPartial(aten::ScaledDotProductAttentionOp) { return false; }
bool isPartial(aten::ScaledDotProductFlashAttentionOp op) { return op.getPartial(); }

template <typename OpT> struct AttentionGradient : GradientModel<AttentionGradient<OpT>, OpT> {
  static LogicalResult run(Derivation &d, OpT op) {
    if (op->getNumResults() == 2 && d.grad(1)) {
      d.refuse() << "has a logsumexp that the loss depends on, which has no derivative: detach it";
      return failure();
    }
    if (!d.grad())
      return success();
    if (isPartial(op)) {
      d.refuse() << "is over some of the keys of an attention: differentiate the whole";
      return failure();
    }
    if (!op.getDropoutP().isZero()) {
      d.refuse() << "has dropout: export the model in eval mode";
      return failure();
    }
    if (op.getEnableGqa() && !Heads<OpT>::areKnown(op)) {
      d.refuse()
          << "has grouped queries of an unknown number of heads: export the model with fixed "
             "numbers of heads";
      return failure();
    }
    hasBackward(d, op) ? callBackward(d, op) : writeOut(d, op);
    return success();
  }
};

} // namespace

void shardc::attachAttentionGradients(MLIRContext *context) {
  using Plain = aten::ScaledDotProductAttentionOp;
  using WithSums = aten::ScaledDotProductFlashAttentionOp;
  Plain::attachInterface<AttentionGradient<Plain>>(*context);
  WithSums::attachInterface<AttentionGradient<WithSums>>(*context);
}
