// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dialects/aten/Aten.h"
#include "lowering/linalg/Patterns.h"
#include "lowering/linalg/ScalarBuilder.h"
#include "lowering/linalg/TensorBuilder.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include <cmath>

using namespace mlir;
using namespace shardc;

namespace {

using Predicate = ScalarBuilder::Predicate;

/// What all reductions have: where they read, what they reduce.
struct Reduction {
  Reduction(ConversionPatternRewriter &rewriter, Operation *op, Value source,
            std::optional<ArrayRef<int64_t>> dims, bool keepdim)
      : tensor(rewriter, op->getLoc()), loc(op->getLoc()), source(source),
        sourceType(aten::elementTypeOf(op->getOperand(0))),
        resultType(aten::elementTypeOf(op->getResult(0))), keepdim(keepdim) {
    domain = tensor.sizesOf(source);
    // No list, and an empty one, are all dims.
    reduced.assign(domain.size(), !dims || dims->empty());
    if (dims)
      for (int64_t dim : *dims)
        if (dim < static_cast<int64_t>(domain.size()))
          reduced[dim] = true;
  }

  TensorBuilder tensor;
  Location loc;
  Value source;
  Type sourceType, resultType;
  bool keepdim;
  TensorBuilder::Sizes domain;
  SmallVector<bool> reduced;

  ScalarBuilder scalar(Type type) const { return {tensor.builder, loc, type}; }

  /// Combines `element(x)` of every x. Accumulates in the compute type of `type`, and bools as
  /// bytes.
  template <typename Element, typename Combine>
  Value run(Type type, TypedAttr initial, Element element, Combine combine) const {
    Value start = arith::ConstantOp::create(tensor.builder, loc, initial);
    return tensor.reduce(domain, reduced, keepdim, start, source,
                         [&](OpBuilder &b, ValueRange args, Value accumulator) {
                           ScalarBuilder from(b, loc, sourceType);
                           ScalarBuilder to(b, loc, type);
                           return combine(to, accumulator, element(to, from.load(args[0])));
                         });
  }

  /// Elementwise on a reduced tensor that holds compute types of `type`; the result is stored as
  /// `to`.
  template <typename Body> Value finish(Value reducedTensor, Type type, Type to, Body body) const {
    return tensor.map(tensor.sizesOf(reducedTensor), storageType(to), reducedTensor,
                      [&](OpBuilder &b, ValueRange args) {
                        ScalarBuilder s(b, loc, type);
                        return s.as(to).store(s.as(to).convert(body(s, args[0]), type));
                      });
  }

  /// The reduced tensor itself, rounded to the result's element type where that is narrower.
  Value finish(Value reducedTensor, Type type) const {
    if (storageType(resultType) == cast<RankedTensorType>(reducedTensor.getType()).getElementType())
      return reducedTensor;
    return finish(reducedTensor, type, resultType,
                  [](const ScalarBuilder &, Value x) { return x; });
  }

  TypedAttr number(Type type, double value) const {
    Type compute = computeType(type);
    if (isa<FloatType>(compute))
      return FloatAttr::get(compute, value);
    return IntegerAttr::get(compute, static_cast<int64_t>(value));
  }
  TypedAttr attribute(Value constant) const {
    return cast<TypedAttr>(constant.getDefiningOp<arith::ConstantOp>().getValue());
  }

  Value count() const { return tensor.countReduced(domain, reduced); }

  Value sum(Type type) const {
    return run(
        type, number(type, 0),
        [&](const ScalarBuilder &to, Value x) { return to.convert(x, sourceType); },
        [](const ScalarBuilder &to, Value a, Value x) { return to.add(a, x); });
  }
  /// Whether any element, or all, are not 0: as bytes.
  Value anyOrAll(bool any) const {
    Type byte = tensor.builder.getI8Type();
    return run(
        byte, IntegerAttr::get(byte, any ? 0 : 1),
        [&](const ScalarBuilder &to, Value x) {
          return to.make<arith::ExtUIOp>(byte, to.as(sourceType).isNonZero(x));
        },
        [&](const ScalarBuilder &to, Value a, Value x) {
          return any ? to.make<arith::OrIOp>(a, x) : to.make<arith::AndIOp>(a, x);
        });
  }
  Value extremum(Type type, bool largest) const {
    ScalarBuilder s = scalar(type);
    TypedAttr start = attribute(largest ? s.lowest() : s.highest());
    return run(
        type, start, [&](const ScalarBuilder &to, Value x) { return to.convert(x, sourceType); },
        [&](const ScalarBuilder &to, Value a, Value x) {
          return largest ? to.max(a, x) : to.min(a, x);
        });
  }
};

template <typename Op> struct ReductionPattern : OpConversionPattern<Op> {
  using OpConversionPattern<Op>::OpConversionPattern;
  using Adaptor = typename Op::Adaptor;

  virtual FailureOr<Value> reduce(Op op, Reduction &r) const = 0;

  LogicalResult matchAndRewrite(Op op, Adaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Reduction reduction(rewriter, op, adaptor.getSelf(), op.getDim(), op.getKeepdim());
    FailureOr<Value> result = reduce(op, reduction);
    if (failed(result))
      return failure();
    rewriter.replaceOp(op, *result);
    return success();
  }
};

struct ConvertSum : ReductionPattern<aten::SumOp> {
  using ReductionPattern::ReductionPattern;
  FailureOr<Value> reduce(aten::SumOp op, Reduction &r) const override {
    if (r.resultType.isInteger(1))
      return r.anyOrAll(true);
    return r.finish(r.sum(r.resultType), r.resultType);
  }
};

struct ConvertProd : ReductionPattern<aten::ProdOp> {
  using ReductionPattern::ReductionPattern;
  FailureOr<Value> reduce(aten::ProdOp op, Reduction &r) const override {
    Type type = r.resultType;
    Value product = r.run(
        type, r.number(type, 1),
        [&](const ScalarBuilder &to, Value x) { return to.convert(x, r.sourceType); },
        [](const ScalarBuilder &to, Value a, Value x) { return to.mul(a, x); });
    return r.finish(product, type);
  }
};

struct ConvertMean : ReductionPattern<aten::MeanOp> {
  using ReductionPattern::ReductionPattern;
  FailureOr<Value> reduce(aten::MeanOp op, Reduction &r) const override {
    Type wide = computeType(r.resultType);
    Value count = r.scalar(wide).fromIndex(r.count());
    return r.finish(r.sum(wide), wide, r.resultType,
                    [&](const ScalarBuilder &s, Value sum) { return s.div(sum, count); });
  }
};

template <typename Op, bool largest> struct ConvertExtremum : ReductionPattern<Op> {
  using ReductionPattern<Op>::ReductionPattern;
  FailureOr<Value> reduce(Op op, Reduction &r) const override {
    if (r.sourceType.isInteger(1)) { // as bytes
      Type byte = IntegerType::get(op.getContext(), 8, IntegerType::Unsigned);
      return r.extremum(byte, largest);
    }
    return r.finish(r.extremum(r.sourceType, largest), r.sourceType);
  }
};

template <typename Op, bool any> struct ConvertAnyAll : ReductionPattern<Op> {
  using ReductionPattern<Op>::ReductionPattern;
  FailureOr<Value> reduce(Op op, Reduction &r) const override { return r.anyOrAll(any); }
};

struct ConvertLogsumexp : ReductionPattern<aten::LogsumexpOp> {
  using ReductionPattern::ReductionPattern;
  FailureOr<Value> reduce(aten::LogsumexpOp op, Reduction &r) const override {
    Type wide = computeType(r.resultType);
    bool keepdim = r.keepdim;
    r.keepdim = true;
    Value largest = r.extremum(wide, true);
    r.keepdim = keepdim;
    // Infinite maxima (all elements -inf, or one inf) are not subtracted.
    auto shift = [](const ScalarBuilder &s, Value m) {
      Value infinite = s.compare(Predicate::eq, s.make<math::AbsFOp>(m), s.highest());
      return s.select(infinite, s.constant(0), m);
    };
    Value zero = r.scalar(wide).constant(0);
    Value sum = r.tensor.reduce(r.domain, r.reduced, keepdim, zero, {r.source, largest},
                                [&](OpBuilder &b, ValueRange args, Value a) {
                                  ScalarBuilder from(b, r.loc, r.sourceType), s(b, r.loc, wide);
                                  Value x = s.convert(from.load(args[0]), r.sourceType);
                                  Value e = s.make<math::ExpOp>(s.sub(x, shift(s, args[1])));
                                  return s.add(a, e);
                                });
    Value shape = keepdim ? largest : r.extremum(wide, true);
    return r.tensor.map(r.tensor.sizesOf(sum), storageType(r.resultType), {sum, shape},
                        [&](OpBuilder &b, ValueRange args) {
                          ScalarBuilder s(b, r.loc, wide), to(b, r.loc, r.resultType);
                          Value log = s.make<math::LogOp>(args[0]);
                          return to.store(s.add(log, shift(s, args[1])));
                        });
  }
};

struct ConvertVar : ReductionPattern<aten::VarOp> {
  using ReductionPattern::ReductionPattern;
  FailureOr<Value> reduce(aten::VarOp op, Reduction &r) const override {
    Type wide = computeType(r.resultType);
    Value count = r.scalar(wide).fromIndex(r.count());
    bool keepdim = r.keepdim;
    r.keepdim = true;
    Value mean = r.finish(r.sum(wide), wide, wide,
                          [&](const ScalarBuilder &s, Value sum) { return s.div(sum, count); });
    Value zero = r.scalar(wide).constant(0);
    Value squares = r.tensor.reduce(r.domain, r.reduced, keepdim, zero, {r.source, mean},
                                    [&](OpBuilder &b, ValueRange args, Value a) {
                                      ScalarBuilder from(b, r.loc, r.sourceType), s(b, r.loc, wide);
                                      Value difference = s.sub(
                                          s.convert(from.load(args[0]), r.sourceType), args[1]);
                                      return s.add(a, s.mul(difference, difference));
                                    });
    double correction = op.getCorrection().convertToDouble();
    return r.finish(squares, wide, r.resultType, [&](const ScalarBuilder &s, Value sum) {
      Value divisor = s.max(s.sub(count, s.constant(correction)), s.constant(0));
      return s.div(sum, divisor);
    });
  }
};

struct ConvertVectorNorm : ReductionPattern<aten::VectorNormOp> {
  using ReductionPattern::ReductionPattern;
  FailureOr<Value> reduce(aten::VectorNormOp op, Reduction &r) const override {
    double order = op.getOrd().convertToDouble();
    Type wide = computeType(r.resultType);
    auto magnitude = [&](const ScalarBuilder &to, Value x) {
      return to.make<math::AbsFOp>(to.convert(x, r.sourceType));
    };
    auto add = [](const ScalarBuilder &to, Value a, Value x) { return to.add(a, x); };
    if (std::isinf(order)) {
      bool largest = order > 0;
      double start = largest ? 0 : std::numeric_limits<double>::infinity();
      Value result = r.run(wide, r.number(wide, start), magnitude,
                           [&](const ScalarBuilder &to, Value a, Value x) {
                             return largest ? to.max(a, x) : to.min(a, x);
                           });
      return r.finish(result, wide);
    }
    auto power = [&](const ScalarBuilder &to, Value x) {
      Value m = magnitude(to, x);
      if (order == 1)
        return m;
      if (order == 2)
        return to.mul(m, m);
      if (order == 0)
        return to.select(to.isNonZero(m), to.constant(1), to.constant(0));
      return to.make<math::PowFOp>(m, to.constant(order));
    };
    Value sum = r.run(wide, r.number(wide, 0), power, add);
    if (order == 0 || order == 1)
      return r.finish(sum, wide);
    return r.finish(sum, wide, r.resultType, [&](const ScalarBuilder &s, Value x) {
      if (order == 2)
        return s.make<math::SqrtOp>(x);
      return s.make<math::PowFOp>(x, s.constant(1 / order));
    });
  }
};

/// Keeps the best value and its position; NaN beats all, the first of equals wins.
template <typename Op, bool largest> struct ConvertArg : OpConversionPattern<Op> {
  using OpConversionPattern<Op>::OpConversionPattern;

  LogicalResult matchAndRewrite(Op op, typename Op::Adaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    std::optional<int64_t> dim = op.getDim();
    SmallVector<int64_t> dims;
    if (dim)
      dims.push_back(*dim);
    Reduction r(rewriter, op, adaptor.getSelf(),
                dim ? std::optional<ArrayRef<int64_t>>(dims) : std::nullopt, op.getKeepdim());
    Location loc = op.getLoc();
    MLIRContext *context = op.getContext();
    int64_t rank = r.domain.size();
    SmallVector<AffineExpr> exprs;
    TensorBuilder::Sizes sizes;
    SmallVector<utils::IteratorType> iterators;
    for (int64_t i = 0; i < rank; ++i) {
      iterators.push_back(r.reduced[i] ? utils::IteratorType::reduction
                                       : utils::IteratorType::parallel);
      if (!r.reduced[i]) {
        exprs.push_back(rewriter.getAffineDimExpr(i));
        sizes.push_back(r.domain[i]);
      } else if (r.keepdim) {
        exprs.push_back(rewriter.getAffineConstantExpr(0));
        sizes.push_back(rewriter.getIndexAttr(1));
      }
    }
    AffineMap out = AffineMap::get(rank, 0, exprs, context);
    SmallVector<AffineMap> maps{rewriter.getMultiDimIdentityMap(rank), out, out};
    ScalarBuilder s = r.scalar(r.sourceType);
    Type i64 = rewriter.getI64Type();
    auto fill = [&](Value start) {
      Value empty = r.tensor.empty(sizes, start.getType());
      return linalg::FillOp::create(rewriter, loc, start, empty).getResult(0);
    };
    Value best = fill(largest ? s.lowest() : s.highest());
    Value at = fill(arith::ConstantIntOp::create(rewriter, loc, i64, 0));
    auto generic = linalg::GenericOp::create(
        rewriter, loc, TypeRange{best.getType(), at.getType()}, r.source, ValueRange{best, at},
        maps, iterators, [&](OpBuilder &b, Location l, ValueRange args) {
          ScalarBuilder inner(b, l, r.sourceType);
          Value x = inner.load(args[0]);
          Value better = inner.compare(largest ? Predicate::gt : Predicate::lt, x, args[1]);
          if (inner.isFloat()) {
            Value isNan = inner.make<arith::CmpFOp>(arith::CmpFPredicate::UNO, x, x);
            Value wasNumber =
                inner.make<arith::CmpFOp>(arith::CmpFPredicate::ORD, args[1], args[1]);
            better = inner.make<arith::OrIOp>(better, inner.make<arith::AndIOp>(isNan, wasNumber));
          }
          Value position = linearPosition(b, l, r);
          Value index = arith::IndexCastOp::create(b, l, i64, position);
          linalg::YieldOp::create(
              b, l,
              ValueRange{inner.select(better, x, args[1]), inner.select(better, index, args[2])});
        });
    rewriter.replaceOp(op, generic.getResult(1));
    return success();
  }

  static Value linearPosition(OpBuilder &b, Location loc, const Reduction &r) {
    Value position;
    for (auto [dim, isReduced] : llvm::enumerate(r.reduced)) {
      if (!isReduced)
        continue;
      Value index = currentIndex(b, loc, dim);
      if (position) {
        Value size = getValueOrCreateConstantIndexOp(b, loc, r.domain[dim]);
        index = arith::AddIOp::create(b, loc, arith::MulIOp::create(b, loc, position, size), index);
      }
      position = index;
    }
    return position ? position : arith::ConstantIndexOp::create(b, loc, 0).getResult();
  }
};

} // namespace

void shardc::populateReductionsToLinalg(TypeConverter &converter, RewritePatternSet &patterns) {
  patterns.add<ConvertSum, ConvertProd, ConvertMean, ConvertExtremum<aten::AmaxOp, true>,
               ConvertExtremum<aten::AminOp, false>, ConvertAnyAll<aten::AnyOp, true>,
               ConvertAnyAll<aten::AllOp, false>, ConvertLogsumexp, ConvertVar, ConvertVectorNorm,
               ConvertArg<aten::ArgmaxOp, true>, ConvertArg<aten::ArgminOp, false>>(
      converter, patterns.getContext());
}
