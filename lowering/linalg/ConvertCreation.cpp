// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ops that make tensors out of positions, and those views that are computed where no view of memory
// can express them.

#include "dialects/aten/Aten.h"
#include "lowering/linalg/Patterns.h"
#include "lowering/linalg/ScalarBuilder.h"
#include "lowering/linalg/TensorBuilder.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace shardc;

namespace {

Value indexValue(OpBuilder &b, Location loc, Value dynamic, int64_t fixed) {
  return dynamic ? dynamic : arith::ConstantIndexOp::create(b, loc, fixed).getResult();
}

struct ConvertConstant : OpConversionPattern<aten::ConstantOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult matchAndRewrite(aten::ConstantOp op, OpAdaptor,
                                ConversionPatternRewriter &rewriter) const override {
    auto elements = dyn_cast<DenseElementsAttr>(op.getValue());
    if (!elements || !elements.isSplat())
      return rewriter.notifyMatchFailure(op, "not one value");
    Location loc = op.getLoc();
    TensorBuilder tensor(rewriter, loc);
    auto type = cast<RankedTensorType>(op.getResult().getType());
    auto domain = getAsIndexOpFoldResult(op.getContext(), type.getShape());
    Type element = type.getElementType();
    Value result = tensor.map(
        domain, storageType(element), ValueRange(), [&](OpBuilder &b, ValueRange) -> Value {
          if (isa<FloatType>(element))
            return arith::ConstantOp::create(
                b, loc, FloatAttr::get(element, elements.getSplatValue<APFloat>()));
          Type stored = storageType(element);
          APInt value = elements.getSplatValue<APInt>();
          return arith::ConstantOp::create(
              b, loc, IntegerAttr::get(stored, value.zextOrTrunc(stored.getIntOrFloatBitWidth())));
        });
    rewriter.replaceOp(op, result);
    return success();
  }
};

struct ConvertArange : OpConversionPattern<aten::ArangeOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult matchAndRewrite(aten::ArangeOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    TensorBuilder tensor(rewriter, loc);
    auto type = cast<RankedTensorType>(op.getResult().getType());
    Value start = indexValue(rewriter, loc, adaptor.getStart(), op.getStaticStart());
    int64_t step = op.getStep();
    OpFoldResult size = rewriter.getIndexAttr(type.getDimSize(0));
    if (type.isDynamicDim(0)) {
      // max(0, ceil((end - start) / step))
      Value end = indexValue(rewriter, loc, adaptor.getEnd(), op.getStaticEnd());
      Value length = arith::SubIOp::create(rewriter, loc, end, start);
      Value by = arith::ConstantIndexOp::create(rewriter, loc, step);
      Value count = arith::CeilDivSIOp::create(rewriter, loc, length, by);
      Value zero = arith::ConstantIndexOp::create(rewriter, loc, 0);
      size = arith::MaxSIOp::create(rewriter, loc, count, zero).getResult();
    }
    Value result = tensor.map(size, storageType(type.getElementType()), ValueRange(),
                              [&](OpBuilder &b, ValueRange) -> Value {
                                Value by = arith::ConstantIndexOp::create(b, loc, step);
                                Value offset =
                                    arith::MulIOp::create(b, loc, currentIndex(b, loc, 0), by);
                                Value value = arith::AddIOp::create(b, loc, start, offset);
                                ScalarBuilder s(b, loc, type.getElementType());
                                return s.store(s.fromIndex(value));
                              });
    rewriter.replaceOp(op, result);
    return success();
  }
};

/// Views that put in, drop or repeat dims, between other ops of a kernel.
template <typename Op> struct ConvertReshapingView : OpConversionPattern<Op> {
  using OpConversionPattern<Op>::OpConversionPattern;

  LogicalResult matchAndRewrite(Op op, typename Op::Adaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    TensorBuilder tensor(rewriter, op.getLoc());
    Value source = adaptor.getSelf();
    auto type = cast<RankedTensorType>(source.getType());
    auto [domain, map] = describe(op, tensor, source, type);
    Value result = tensor.map(domain, type.getElementType(), source, map,
                              [](OpBuilder &, ValueRange args) -> Value { return args[0]; });
    rewriter.replaceOp(op, result);
    return success();
  }

  static std::pair<TensorBuilder::Sizes, AffineMap>
  describe(aten::ExpandOp op, TensorBuilder &tensor, Value source, RankedTensorType) {
    TensorBuilder::Sizes domain = op.getMixedSize();
    return {domain, tensor.broadcastMap(source, domain)};
  }
  static std::pair<TensorBuilder::Sizes, AffineMap>
  describe(aten::UnsqueezeOp op, TensorBuilder &tensor, Value source, RankedTensorType type) {
    TensorBuilder::Sizes domain = tensor.sizesOf(source);
    domain.insert(domain.begin() + op.getDim(), tensor.builder.getIndexAttr(1));
    AffineMap map = AffineMap::getMultiDimIdentityMap(type.getRank() + 1, op.getContext());
    return {domain, map.dropResult(op.getDim())};
  }
  static std::pair<TensorBuilder::Sizes, AffineMap>
  describe(aten::SqueezeOp op, TensorBuilder &tensor, Value source, RankedTensorType type) {
    TensorBuilder::Sizes domain;
    SmallVector<AffineExpr> exprs;
    for (auto [dim, size] : llvm::enumerate(tensor.sizesOf(source))) {
      if (llvm::is_contained(op.getDim(), static_cast<int64_t>(dim))) {
        exprs.push_back(tensor.builder.getAffineConstantExpr(0));
        continue;
      }
      exprs.push_back(tensor.builder.getAffineDimExpr(domain.size()));
      domain.push_back(size);
    }
    return {domain, AffineMap::get(domain.size(), 0, exprs, op.getContext())};
  }
};

/// Triangles of matrices: zero where column - row is beyond the diagonal.
template <typename Op, bool lower> struct ConvertTriangle : OpConversionPattern<Op> {
  using OpConversionPattern<Op>::OpConversionPattern;

  LogicalResult matchAndRewrite(Op op, typename Op::Adaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    TensorBuilder tensor(rewriter, loc);
    auto type = cast<RankedTensorType>(adaptor.getSelf().getType());
    Value result =
        tensor.map(tensor.sizesOf(adaptor.getSelf()), type.getElementType(), adaptor.getSelf(),
                   [&](OpBuilder &b, ValueRange args) -> Value {
                     Value row = currentIndex(b, loc, type.getRank() - 2);
                     Value column = currentIndex(b, loc, type.getRank() - 1);
                     Value diagonal = arith::ConstantIndexOp::create(b, loc, op.getDiagonal());
                     Value limit = arith::AddIOp::create(b, loc, row, diagonal);
                     auto kept = lower ? arith::CmpIPredicate::sle : arith::CmpIPredicate::sge;
                     Value keep = arith::CmpIOp::create(b, loc, kept, column, limit);
                     Value zero =
                         arith::ConstantOp::create(b, loc, b.getZeroAttr(type.getElementType()));
                     return arith::SelectOp::create(b, loc, keep, args[0], zero);
                   });
    rewriter.replaceOp(op, result);
    return success();
  }
};

struct ConvertFlip : OpConversionPattern<aten::FlipOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult matchAndRewrite(aten::FlipOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    TensorBuilder tensor(rewriter, loc);
    Value source = adaptor.getSelf();
    auto domain = tensor.sizesOf(source);
    Value result = tensor.map(domain, cast<RankedTensorType>(source.getType()).getElementType(),
                              ValueRange(), [&](OpBuilder &b, ValueRange) -> Value {
                                SmallVector<Value> at;
                                for (auto [dim, size] : llvm::enumerate(domain)) {
                                  Value index = currentIndex(b, loc, dim);
                                  if (llvm::is_contained(op.getDims(), static_cast<int64_t>(dim))) {
                                    Value extent = getValueOrCreateConstantIndexOp(b, loc, size);
                                    Value one = arith::ConstantIndexOp::create(b, loc, 1);
                                    Value last = arith::SubIOp::create(b, loc, extent, one);
                                    index = arith::SubIOp::create(b, loc, last, index);
                                  }
                                  at.push_back(index);
                                }
                                return tensor::ExtractOp::create(b, loc, source, at);
                              });
    rewriter.replaceOp(op, result);
    return success();
  }
};

struct ConvertPad : OpConversionPattern<aten::ConstantPadNdOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult matchAndRewrite(aten::ConstantPadNdOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    TensorBuilder tensor(rewriter, loc);
    Value source = adaptor.getSelf();
    auto type = cast<RankedTensorType>(source.getType());
    Type aten = aten::elementTypeOf(op.getSelf());
    auto sizes = tensor.sizesOf(source);
    int64_t rank = type.getRank();
    SmallVector<int64_t> before(rank, 0), after(rank, 0);
    for (size_t i = 0; i + 1 < op.getPad().size(); i += 2) {
      before[rank - 1 - i / 2] = op.getPad()[i];
      after[rank - 1 - i / 2] = op.getPad()[i + 1];
    }
    TensorBuilder::Sizes domain;
    for (int64_t dim = 0; dim < rank; ++dim)
      domain.push_back(affineSum(rewriter, loc, sizes[dim], before[dim] + after[dim]));
    Value result = tensor.map(
        domain, type.getElementType(), ValueRange(), [&](OpBuilder &b, ValueRange) -> Value {
          Value inside = arith::ConstantIntOp::create(b, loc, b.getI1Type(), 1);
          SmallVector<Value> at;
          Value zero = arith::ConstantIndexOp::create(b, loc, 0);
          for (int64_t dim = 0; dim < rank; ++dim) {
            Value index = currentIndex(b, loc, dim);
            if (before[dim] == 0 && after[dim] == 0) {
              at.push_back(index);
              continue;
            }
            Value shift = arith::ConstantIndexOp::create(b, loc, before[dim]);
            index = arith::SubIOp::create(b, loc, index, shift);
            // One comparison for both ends: a negative index is a large unsigned number.
            Value extent = getValueOrCreateConstantIndexOp(b, loc, sizes[dim]);
            Value valid = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, index, extent);
            inside = arith::AndIOp::create(b, loc, inside, valid);
            at.push_back(arith::SelectOp::create(b, loc, valid, index, zero));
          }
          ScalarBuilder s(b, loc, aten);
          Value fill = s.store(s.constant(op.getValue().convertToDouble()));
          return extractOr(b, loc, source, at, inside, fill);
        });
    rewriter.replaceOp(op, result);
    return success();
  }

  static OpFoldResult affineSum(OpBuilder &b, Location loc, OpFoldResult size, int64_t more) {
    if (std::optional<int64_t> constant = getConstantIntValue(size))
      return b.getIndexAttr(*constant + more);
    Value by = arith::ConstantIndexOp::create(b, loc, more);
    return arith::AddIOp::create(b, loc, cast<Value>(size), by).getResult();
  }

  /// Reads only where there is an element: the source may have none at all.
  static Value extractOr(OpBuilder &b, Location loc, Value source, ArrayRef<Value> at, Value inside,
                         Value fill) {
    auto choice = scf::IfOp::create(
        b, loc, inside,
        [&](OpBuilder &inner, Location) {
          Value element = tensor::ExtractOp::create(inner, loc, source, at);
          scf::YieldOp::create(inner, loc, element);
        },
        [&](OpBuilder &inner, Location) { scf::YieldOp::create(inner, loc, fill); });
    return choice.getResult(0);
  }
};

} // namespace

void shardc::populateCreationToLinalg(TypeConverter &converter, RewritePatternSet &patterns) {
  patterns.add<ConvertConstant, ConvertArange, ConvertReshapingView<aten::ExpandOp>,
               ConvertReshapingView<aten::UnsqueezeOp>, ConvertReshapingView<aten::SqueezeOp>,
               ConvertTriangle<aten::TrilOp, true>, ConvertTriangle<aten::TriuOp, false>,
               ConvertFlip, ConvertPad>(converter, patterns.getContext());
}
