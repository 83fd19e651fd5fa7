// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Attention: the scores are computed again, as products and a softmax.

#include "passes/gradient/differentiate/Models.h"

#include <cmath>

using namespace mlir;
using namespace shardc;

namespace {

struct AttentionGradient : GradientModel<AttentionGradient, aten::ScaledDotProductAttentionOp> {
  static LogicalResult run(Derivation &d, aten::ScaledDotProductAttentionOp op) {
    if (!d.grad())
      return success();
    if (!op.getDropoutP().isZero()) {
      d.refuse() << "has dropout: export the model in eval mode";
      return failure();
    }
    if (op.getEnableGqa() && !Heads::areKnown(op)) {
      d.refuse()
          << "has grouped queries of an unknown number of heads: export the model with fixed "
             "numbers of heads";
      return failure();
    }
    Heads heads(d, op);
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
    return success();
  }

  static Expr turned(Expr x) { return transpose(x, x.rank() - 2, x.rank() - 1); }

  static std::optional<double> scaleOf(aten::ScaledDotProductAttentionOp op) {
    if (std::optional<APFloat> scale = op.getScale())
      return scale->convertToDouble();
    int64_t depth = aten::shapeOf(op.getQuery()).back();
    if (ShapedType::isDynamic(depth))
      return std::nullopt;
    return depth == 0 ? 0 : 1 / std::sqrt(static_cast<double>(depth));
  }

  /// [queries, keys]: key j <= query i.
  static Expr causalMask(Derivation &d, aten::ScaledDotProductAttentionOp op) {
    Type i64 = d.builder.getI64Type();
    int64_t queryRank = aten::typeOf(op.getQuery()).getRank(),
            keyRank = aten::typeOf(op.getKey()).getRank();
    Expr rows = d.positions(d.size(op.getQuery(), queryRank - 2), 0, 2, i64);
    Expr columns = d.positions(d.size(op.getKey(), keyRank - 2), 1, 2, i64);
    return le(columns, rows);
  }

  /// With grouped queries a head is (key head, position in its group), and keys have one position.
  struct Heads {
    Derivation &d;
    aten::ScaledDotProductAttentionOp op;
    bool isGrouped;
    int64_t dim = 0; ///< of the heads

    Heads(Derivation &d, aten::ScaledDotProductAttentionOp op)
        : d(d), op(op), isGrouped(op.getEnableGqa()), dim(d.result().rank() - 3) {}

    static bool areKnown(aten::ScaledDotProductAttentionOp op) {
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
};

} // namespace

void shardc::attachAttentionGradients(MLIRContext *context) {
  aten::ScaledDotProductAttentionOp::attachInterface<AttentionGradient>(*context);
}
