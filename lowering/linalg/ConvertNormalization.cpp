// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Softmax and norms: a few reductions over a row and maps between them, which tiling puts into one
// loop over rows. All statistics are in the compute type (f32 for 16-bit floats); the result is
// rounded once.

#include "dialects/aten/Aten.h"
#include "lowering/linalg/Patterns.h"
#include "lowering/linalg/ScalarBuilder.h"
#include "lowering/linalg/TensorBuilder.h"

#include "mlir/Dialect/Math/IR/Math.h"

#include <limits>

using namespace mlir;
using namespace shardc;

namespace {

/// One normalisation: a domain, the dims it reduces, and the type that it computes in.
struct Rows {
  Rows(ConversionPatternRewriter &rewriter, Operation *op, Value source)
      : tensor(rewriter, op->getLoc()), loc(op->getLoc()), source(source),
        sourceType(aten::elementTypeOf(op->getOperand(0))),
        resultType(aten::elementTypeOf(op->getResult(0))), wide(computeType(resultType)) {
    domain = tensor.sizesOf(source);
    reduced.assign(domain.size(), false);
  }

  TensorBuilder tensor;
  Location loc;
  Value source;
  Type sourceType, resultType, wide;
  TensorBuilder::Sizes domain;
  SmallVector<bool> reduced;

  ScalarBuilder scalar(OpBuilder &b) const { return {b, loc, wide}; }
  /// An element of the source, in the wide type.
  Value load(OpBuilder &b, Value stored) const {
    ScalarBuilder from(b, loc, sourceType);
    // A cast that the op asks for rounds like a cast; computing in a wider type does not.
    ScalarBuilder cast(b, loc, sourceType == resultType ? wide : resultType);
    return cast.convert(from.load(stored), sourceType == resultType ? wide : sourceType);
  }
  Value store(OpBuilder &b, Value value) const {
    return ScalarBuilder(b, loc, resultType).store(value);
  }
  /// Sum or maximum over a row of a function of the operands; keeps the dims with size 1.
  template <typename Term> Value sum(ValueRange operands, Term term) const {
    Value zero = scalar(tensor.builder).constant(0);
    return tensor.reduce(domain, reduced, /*keepdim=*/true, zero, operands,
                         [&](OpBuilder &b, ValueRange args, Value a) {
                           return scalar(b).add(a, term(scalar(b), args));
                         });
  }
  Value largest() const {
    Value lowest = scalar(tensor.builder).lowest();
    return tensor.reduce(
        domain, reduced, /*keepdim=*/true, lowest, source,
        [&](OpBuilder &b, ValueRange args, Value a) { return scalar(b).max(a, load(b, args[0])); });
  }
  /// Elementwise on a row's statistics.
  template <typename Body> Value finish(Value statistic, Body body) const {
    return tensor.map(tensor.sizesOf(statistic), wide, statistic,
                      [&](OpBuilder &b, ValueRange args) { return body(scalar(b), args[0]); });
  }
  Value mean(Value sum) const {
    Value count =
        ScalarBuilder(tensor.builder, loc, wide).fromIndex(tensor.countReduced(domain, reduced));
    return finish(sum, [&](const ScalarBuilder &s, Value x) { return s.div(x, count); });
  }
  Value sumOf() const {
    return sum(source,
               [&](const ScalarBuilder &s, ValueRange args) { return load(s.builder, args[0]); });
  }
  /// 1 / sqrt(mean of (x - center)^2 + eps); without a center, of x^2.
  Value inverseDeviation(Value center, double eps) const {
    SmallVector<Value> operands{source};
    if (center)
      operands.push_back(center);
    Value squares = sum(operands, [&](const ScalarBuilder &s, ValueRange args) {
      Value x = load(s.builder, args[0]);
      if (center)
        x = s.sub(x, args[1]);
      return s.mul(x, x);
    });
    Value count =
        ScalarBuilder(tensor.builder, loc, wide).fromIndex(tensor.countReduced(domain, reduced));
    return finish(squares, [&](const ScalarBuilder &s, Value x) {
      Value variance = s.add(s.div(x, count), s.constant(eps));
      return s.div(s.constant(1), s.make<math::SqrtOp>(variance));
    });
  }
};

template <typename Op, bool logarithm> struct ConvertSoftmax : OpConversionPattern<Op> {
  using OpConversionPattern<Op>::OpConversionPattern;

  LogicalResult matchAndRewrite(Op op, typename Op::Adaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Rows rows(rewriter, op, adaptor.getSelf());
    if (!rows.domain.empty())
      rows.reduced[op.getDim()] = true;
    Value largest = rows.largest();
    auto shifted = [&](OpBuilder &b, ValueRange args) {
      return rows.scalar(b).sub(rows.load(b, args[0]), args[1]);
    };
    auto exp = [&](OpBuilder &b, ValueRange args) {
      return rows.scalar(b).template make<math::ExpOp>(shifted(b, args));
    };
    SmallVector<Value> operands{rows.source, largest};
    Value result;
    if (logarithm) {
      Value sum = rows.sum(
          operands, [&](const ScalarBuilder &s, ValueRange args) { return exp(s.builder, args); });
      Value log =
          rows.finish(sum, [](const ScalarBuilder &s, Value x) { return s.make<math::LogOp>(x); });
      operands.push_back(log);
      result = rows.tensor.map(
          rows.domain, storageType(rows.resultType), operands, [&](OpBuilder &b, ValueRange args) {
            return rows.store(b, rows.scalar(b).sub(shifted(b, args), args[2]));
          });
    } else {
      // Exponentials are kept: one row of them is cheaper than computing them twice.
      Value powers = rows.tensor.map(rows.domain, rows.wide, operands, exp);
      Value sum =
          rows.sum(powers, [](const ScalarBuilder &, ValueRange args) -> Value { return args[0]; });
      Value inverse =
          rows.finish(sum, [](const ScalarBuilder &s, Value x) { return s.div(s.constant(1), x); });
      result = rows.tensor.map(rows.domain, storageType(rows.resultType), {powers, inverse},
                               [&](OpBuilder &b, ValueRange args) {
                                 return rows.store(b, rows.scalar(b).mul(args[0], args[1]));
                               });
    }
    rewriter.replaceOp(op, result);
    return success();
  }
};

/// (x - mean) * inverse [* weight] [+ bias], rounded once. Absent operands are null.
Value normalize(const Rows &rows, Value mean, Value inverse, Value weight, Type weightType,
                Value bias, Type biasType) {
  SmallVector<Value> operands{rows.source, inverse};
  for (Value value : {mean, weight, bias})
    if (value)
      operands.push_back(value);
  return rows.tensor.map(rows.domain, storageType(rows.resultType), operands,
                         [&](OpBuilder &b, ValueRange args) {
                           ScalarBuilder s = rows.scalar(b);
                           Value x = rows.load(b, args[0]);
                           ValueRange rest = args.drop_front(2);
                           auto next = [&] {
                             Value value = rest.front();
                             rest = rest.drop_front();
                             return value;
                           };
                           if (mean)
                             x = s.sub(x, next());
                           x = s.mul(x, args[1]);
                           if (weight)
                             x = s.mul(x, s.as(weightType).load(next()));
                           if (bias)
                             x = s.add(x, s.as(biasType).load(next()));
                           return rows.store(b, x);
                         });
}

Type elementTypeOrNull(Value value) { return value ? aten::elementTypeOf(value) : Type(); }

struct ConvertLayerNorm : OpConversionPattern<aten::LayerNormOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult matchAndRewrite(aten::LayerNormOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Rows rows(rewriter, op, adaptor.getInput());
    size_t outer = rows.domain.size() - op.getNormalizedShape().size();
    std::fill(rows.reduced.begin() + outer, rows.reduced.end(), true);
    Value mean = rows.mean(rows.sumOf());
    Value inverse = rows.inverseDeviation(mean, op.getEps().convertToDouble());
    rewriter.replaceOp(op, normalize(rows, mean, inverse, adaptor.getWeight(),
                                     elementTypeOrNull(op.getWeight()), adaptor.getBias(),
                                     elementTypeOrNull(op.getBias())));
    return success();
  }
};

struct ConvertRmsNorm : OpConversionPattern<aten::RmsNormOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult matchAndRewrite(aten::RmsNormOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Rows rows(rewriter, op, adaptor.getInput());
    size_t outer = rows.domain.size() - op.getNormalizedShape().size();
    std::fill(rows.reduced.begin() + outer, rows.reduced.end(), true);
    // PyTorch's default is the epsilon of the type that it computes in.
    double eps = op.getEps()         ? op.getEps()->convertToDouble()
                 : rows.wide.isF64() ? std::numeric_limits<double>::epsilon()
                                     : std::numeric_limits<float>::epsilon();
    Value inverse = rows.inverseDeviation(Value(), eps);
    rewriter.replaceOp(op, normalize(rows, Value(), inverse, adaptor.getWeight(),
                                     elementTypeOrNull(op.getWeight()), Value(), Type()));
    return success();
  }
};

} // namespace

void shardc::populateNormalizationToLinalg(TypeConverter &converter, RewritePatternSet &patterns) {
  patterns.add<ConvertSoftmax<aten::SoftmaxOp, false>, ConvertSoftmax<aten::LogSoftmaxOp, true>,
               ConvertLayerNorm, ConvertRmsNorm>(converter, patterns.getContext());
}
