// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Scans: an op with two results, the running value of each row and every value that it had.

#include "dialects/aten/Aten.h"
#include "lowering/linalg/Patterns.h"
#include "lowering/linalg/ScalarBuilder.h"
#include "lowering/linalg/TensorBuilder.h"

using namespace mlir;
using namespace shardc;

namespace {

/// Sums are kept in the compute type and rounded for each element, as in PyTorch.
struct ConvertCumsum : OpConversionPattern<aten::CumsumOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult matchAndRewrite(aten::CumsumOp op, OpAdaptor adaptor,
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
        linalg::FillOp::create(rewriter, loc, s.constant(0), tensor.empty(rows, s.compute()))
            .getResult(0);
    Value all = tensor.empty(domain, storageType(to));
    auto generic = linalg::GenericOp::create(
        rewriter, loc, TypeRange{all.getType(), start.getType()}, source, ValueRange{all, start},
        ArrayRef<AffineMap>{identity, identity, row}, iterators,
        [&](OpBuilder &b, Location l, ValueRange args) {
          ScalarBuilder s(b, l, to);
          Value x = s.convert(s.as(from).load(args[0]), from);
          Value sum = s.add(args[2], x);
          linalg::YieldOp::create(b, l, ValueRange{s.store(sum), sum});
        });
    rewriter.replaceOp(op, generic.getResult(0));
    return success();
  }
};

} // namespace

void shardc::populateScansToLinalg(TypeConverter &converter, RewritePatternSet &patterns) {
  patterns.add<ConvertCumsum>(converter, patterns.getContext());
}
