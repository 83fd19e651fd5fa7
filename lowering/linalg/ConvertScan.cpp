// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Scans: an op with two results, the running value of each row and every value that it had.

#include "dialects/aten/Scans.h"
#include "lowering/linalg/Patterns.h"
#include "lowering/linalg/ScalarBuilder.h"
#include "lowering/linalg/TensorBuilder.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace shardc;

namespace {

// What a scan begins with, and how an element goes into it.
struct SumOfAll {
  static Value start(const ScalarBuilder &s) { return s.constant(0); }
  static Value next(const ScalarBuilder &s, Value all, Value x) { return s.add(all, x); }
};
struct ProductOfAll {
  static Value start(const ScalarBuilder &s) { return s.constant(1); }
  static Value next(const ScalarBuilder &s, Value all, Value x) { return s.mul(all, x); }
};
struct LargestOfAll {
  static Value start(const ScalarBuilder &s) { return s.lowest(); }
  static Value next(const ScalarBuilder &s, Value all, Value x) { return s.max(all, x); }
};
struct SmallestOfAll {
  static Value start(const ScalarBuilder &s) { return s.highest(); }
  static Value next(const ScalarBuilder &s, Value all, Value x) { return s.min(all, x); }
};
/// max + log(1 + exp(min - max)); an infinite maximum is the result.
struct LogOfSumOfAll {
  static Value start(const ScalarBuilder &s) { return s.lowest(); }
  static Value next(const ScalarBuilder &s, Value all, Value x) {
    Value max = s.max(all, x), min = s.min(all, x);
    Value ratio = s.make<math::ExpOp>(s.sub(min, max));
    Value sum = s.add(max, s.make<math::Log1pOp>(ratio));
    using P = ScalarBuilder::Predicate;
    Value isLeast = s.compare(P::eq, max, s.lowest()), isMost = s.compare(P::eq, max, s.highest());
    return s.select(isLeast, max, s.select(isMost, max, sum));
  }
};

/// Values are kept in the compute type and rounded for each element, as in PyTorch.
template <typename Op, typename Scan> struct ConvertScan : OpConversionPattern<Op> {
  using OpConversionPattern<Op>::OpConversionPattern;

  LogicalResult matchAndRewrite(Op op, typename Op::Adaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    TensorBuilder tensor(rewriter, loc);
    Value source = adaptor.getSelf();
    Type from = aten::elementTypeOf(op.getSelf()), to = aten::elementTypeOf(op.getResult());
    auto domain = tensor.sizesOf(source);
    int64_t rank = domain.size();
    SmallVector<utils::IteratorType> iterators(rank, utils::IteratorType::parallel);
    AffineMap identity = rewriter.getMultiDimIdentityMap(rank), row = identity;
    TensorBuilder::Sizes rows = domain;
    if (rank > 0) {
      int64_t dim = op.getDim();
      iterators[dim] = utils::IteratorType::reduction;
      row = row.dropResult(dim);
      rows.erase(rows.begin() + dim);
    }
    ScalarBuilder s(rewriter, loc, to);
    Value start =
        linalg::FillOp::create(rewriter, loc, Scan::start(s), tensor.empty(rows, s.compute()))
            .getResult(0);
    Value all = tensor.empty(domain, storageType(to));
    auto generic = linalg::GenericOp::create(
        rewriter, loc, TypeRange{all.getType(), start.getType()}, source, ValueRange{all, start},
        ArrayRef<AffineMap>{identity, identity, row}, iterators,
        [&](OpBuilder &b, Location l, ValueRange args) {
          ScalarBuilder s(b, l, to);
          Value x = s.convert(s.as(from).load(args[0]), from);
          Value next = Scan::next(s, args[2], x);
          linalg::YieldOp::create(b, l, ValueRange{s.store(next), next});
        });
    rewriter.replaceOp(op, generic.getResult(0));
    return success();
  }
};

} // namespace

void shardc::populateScansToLinalg(TypeConverter &converter, RewritePatternSet &patterns) {
  patterns
      .add<ConvertScan<aten::CumsumOp, SumOfAll>, ConvertScan<aten::CumprodOp, ProductOfAll>,
           ConvertScan<aten::CummaxOp, LargestOfAll>, ConvertScan<aten::CumminOp, SmallestOfAll>,
           ConvertScan<aten::LogcumsumexpOp, LogOfSumOfAll>>(converter, patterns.getContext());
}
