// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Windows over images: copies of what they cover, maxima, means; and norms of channels. Each reads
// the image in memory, at the positions that the window covers inside of it.

#include "dialects/aten/Aten.h"
#include "lowering/linalg/Patterns.h"
#include "lowering/linalg/ScalarBuilder.h"
#include "lowering/linalg/TensorBuilder.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace shardc;

namespace {

/// Index arithmetic.
struct Index {
  OpBuilder &b;
  Location loc;

  Value constant(int64_t value) const { return arith::ConstantIndexOp::create(b, loc, value); }
  Value of(OpFoldResult size) const { return getValueOrCreateConstantIndexOp(b, loc, size); }
  template <typename Op> Value make(Value lhs, Value rhs) const {
    return Op::create(b, loc, lhs, rhs).getResult();
  }
  Value add(Value lhs, Value rhs) const { return make<arith::AddIOp>(lhs, rhs); }
  Value sub(Value lhs, Value rhs) const { return make<arith::SubIOp>(lhs, rhs); }
  Value mul(Value lhs, Value rhs) const { return make<arith::MulIOp>(lhs, rhs); }
  Value min(Value lhs, Value rhs) const { return make<arith::MinSIOp>(lhs, rhs); }
  Value max(Value lhs, Value rhs) const { return make<arith::MaxSIOp>(lhs, rhs); }
  /// First element under a window at `position`; may be negative.
  Value start(const aten::Window &window, Value position) const {
    return sub(mul(position, constant(window.stride)), constant(window.padding));
  }
};

/// The elements `begin`, `begin + step`, ... below `end` of a dim.
struct Span {
  Value begin, end;
  int64_t step = 1;
};

/// What the window at `position` covers of a dim of `size` elements.
Span clip(const Index &index, const aten::Window &window, Value position, Value size) {
  Value start = index.start(window, position), zero = index.constant(0);
  Value step = index.constant(window.dilation);
  Value outside = index.max(index.sub(zero, start), zero);
  Value skipped = index.mul(index.make<arith::CeilDivSIOp>(outside, step), step);
  Value end = index.min(index.add(start, index.constant(window.extent())), size);
  return {index.add(start, skipped), end, window.dilation};
}

/// `combine(accumulator, element)` over all elements of `source` in the two spans of its last dims;
/// `outer` are the indices of the others.
Value accumulate(OpBuilder &b, Location loc, Value source, ArrayRef<Value> outer, const Span &rows,
                 const Span &columns, Value initial,
                 llvm::function_ref<Value(OpBuilder &, Value, Value)> combine) {
  auto loop = [&](OpBuilder &builder, const Span &span, Value from, auto body) {
    Value step = arith::ConstantIndexOp::create(builder, loc, span.step);
    return scf::ForOp::create(builder, loc, span.begin, span.end, step, from,
                              [&](OpBuilder &inner, Location, Value at, ValueRange state) {
                                scf::YieldOp::create(inner, loc, body(inner, at, state[0]));
                              })
        .getResult(0);
  };
  return loop(b, rows, initial, [&](OpBuilder &rowBuilder, Value row, Value state) {
    return loop(rowBuilder, columns, state, [&](OpBuilder &inner, Value column, Value sum) {
      SmallVector<Value> at(outer);
      at.append({row, column});
      return combine(inner, sum, tensor::ExtractOp::create(inner, loc, source, at));
    });
  });
}

template <typename Op> struct SpatialPattern : OpConversionPattern<Op> {
  using OpConversionPattern<Op>::OpConversionPattern;
  using Adaptor = typename Op::Adaptor;

  /// The result's sizes where positions of windows are counted at run time.
  static TensorBuilder::Sizes domainOf(Op op, TensorBuilder &tensor, Value source,
                                       llvm::function_ref<OpFoldResult(unsigned, Value)> count) {
    TensorBuilder::Sizes sizes = tensor.sizesOf(source), domain;
    ArrayRef<int64_t> shape = aten::shapeOf(op.getResult());
    Index index{tensor.builder, tensor.loc};
    for (auto [i, size] : llvm::enumerate(shape)) {
      if (!ShapedType::isDynamic(size))
        domain.push_back(tensor.builder.getIndexAttr(size));
      else if (i + 2 < shape.size())
        domain.push_back(sizes[i]);
      else
        domain.push_back(
            count(i + 2 - shape.size(), index.of(sizes[sizes.size() + i - shape.size()])));
    }
    return domain;
  }

  /// Of one of the last two dims: a position of the result, and the size of the image.
  struct Place {
    Value position, size;
  };
  /// Replaces a pool: `reduce` makes one element of it, of the image's other indices and the places
  /// in its last two dims. `count` as for domainOf.
  static LogicalResult
  replacePool(Op op, Adaptor adaptor, ConversionPatternRewriter &rewriter,
              llvm::function_ref<OpFoldResult(unsigned, Value)> count,
              llvm::function_ref<Value(const Index &, ArrayRef<Value>, ArrayRef<Place>)> reduce) {
    Location loc = op.getLoc();
    TensorBuilder tensor(rewriter, loc);
    auto sizes = tensor.sizesOf(adaptor.getSelf());
    unsigned outer = sizes.size() - 2;
    Value result =
        tensor.map(domainOf(op, tensor, adaptor.getSelf(), count),
                   storageType(aten::elementTypeOf(op.getSelf())), ValueRange(),
                   [&](OpBuilder &b, ValueRange) -> Value {
                     Index index{b, loc};
                     SmallVector<Value> at;
                     for (unsigned dim = 0; dim < outer; ++dim)
                       at.push_back(currentIndex(b, loc, dim));
                     SmallVector<Place, 2> places;
                     for (unsigned dim = outer; dim < outer + 2; ++dim)
                       places.push_back({currentIndex(b, loc, dim), index.of(sizes[dim])});
                     return reduce(index, at, places);
                   });
    rewriter.replaceOp(op, result);
    return success();
  }
};

/// As Window::positions, of a size that is known at run time.
Value positionsOf(const Index &index, const aten::Window &window, Value size, bool ceil) {
  Value stride = index.constant(window.stride), one = index.constant(1);
  Value room = index.add(size, index.constant(2 * window.padding - window.extent()));
  if (!ceil)
    return index.add(index.make<arith::FloorDivSIOp>(room, stride), one);
  Value last = index.make<arith::CeilDivSIOp>(room, stride);
  Value isInside =
      arith::CmpIOp::create(index.b, index.loc, arith::CmpIPredicate::slt, index.mul(last, stride),
                            index.add(size, index.constant(window.padding)));
  return arith::SelectOp::create(index.b, index.loc, isInside, index.add(last, one), last);
}

struct ConvertWindows : SpatialPattern<aten::WindowsOp> {
  using SpatialPattern::SpatialPattern;

  LogicalResult matchAndRewrite(aten::WindowsOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    TensorBuilder tensor(rewriter, loc);
    Value source = adaptor.getSelf();
    Type element = aten::elementTypeOf(op.getSelf());
    std::array<aten::Window, 2> windows = op.getWindows();
    auto sizes = tensor.sizesOf(source);
    auto domain = domainOf(op, tensor, source, [&](unsigned dim, Value size) {
      return OpFoldResult(positionsOf({rewriter, loc}, windows[dim], size, /*ceil=*/false));
    });
    Value result = tensor.map(
        domain, storageType(element), ValueRange(), [&](OpBuilder &b, ValueRange) -> Value {
          Index index{b, loc};
          SmallVector<Value> at = {currentIndex(b, loc, 0), currentIndex(b, loc, 1)};
          Value inside;
          for (unsigned dim = 0; dim < 2; ++dim) {
            const aten::Window &window = windows[dim];
            Value offset =
                index.mul(currentIndex(b, loc, 2 + dim), index.constant(window.dilation));
            at.push_back(index.add(index.start(window, currentIndex(b, loc, 4 + dim)), offset));
            if (window.padding == 0)
              continue;
            // One comparison for both ends: a negative index is a large unsigned number.
            Value valid = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, at.back(),
                                                index.of(sizes[2 + dim]));
            inside = inside ? arith::AndIOp::create(b, loc, inside, valid).getResult() : valid;
          }
          if (!inside)
            return tensor::ExtractOp::create(b, loc, source, at);
          ScalarBuilder s(b, loc, element);
          Value zero = s.store(s.constant(0));
          return scf::IfOp::create(
                     b, loc, inside,
                     [&](OpBuilder &inner, Location) {
                       Value value = tensor::ExtractOp::create(inner, loc, source, at);
                       scf::YieldOp::create(inner, loc, value);
                     },
                     [&](OpBuilder &inner, Location) { scf::YieldOp::create(inner, loc, zero); })
              .getResult(0);
        });
    rewriter.replaceOp(op, result);
    return success();
  }
};

struct ConvertMaxPool : SpatialPattern<aten::MaxPool2dOp> {
  using SpatialPattern::SpatialPattern;

  LogicalResult matchAndRewrite(aten::MaxPool2dOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Type element = aten::elementTypeOf(op.getSelf());
    std::array<aten::Window, 2> windows = op.getWindows();
    auto count = [&](unsigned dim, Value size) {
      return OpFoldResult(
          positionsOf({rewriter, op.getLoc()}, windows[dim], size, op.getCeilMode()));
    };
    auto reduce = [&](const Index &index, ArrayRef<Value> at, ArrayRef<Place> places) {
      Span spans[2];
      for (unsigned dim = 0; dim < 2; ++dim)
        spans[dim] = clip(index, windows[dim], places[dim].position, places[dim].size);
      ScalarBuilder s(index.b, index.loc, element);
      return s.store(accumulate(index.b, index.loc, adaptor.getSelf(), at, spans[0], spans[1],
                                s.lowest(), [&](OpBuilder &inner, Value a, Value x) {
                                  ScalarBuilder t(inner, index.loc, element);
                                  return t.max(a, t.load(x));
                                }));
    };
    return replacePool(op, adaptor, rewriter, count, reduce);
  }
};

/// The sum over two spans, divided by `count`, in the compute type.
Value meanOver(const Index &index, Type element, Value source, ArrayRef<Value> at,
               ArrayRef<Span> spans, Value count) {
  ScalarBuilder s(index.b, index.loc, element);
  Value sum = accumulate(index.b, index.loc, source, at, spans[0], spans[1], s.constant(0),
                         [&](OpBuilder &inner, Value a, Value x) {
                           ScalarBuilder t(inner, index.loc, element);
                           return t.add(a, t.load(x));
                         });
  return s.store(s.div(sum, s.fromIndex(count)));
}

struct ConvertAvgPool : SpatialPattern<aten::AvgPool2dOp> {
  using SpatialPattern::SpatialPattern;

  LogicalResult matchAndRewrite(aten::AvgPool2dOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    std::array<aten::Window, 2> windows = op.getWindows();
    auto count = [&](unsigned dim, Value size) {
      return OpFoldResult(
          positionsOf({rewriter, op.getLoc()}, windows[dim], size, op.getCeilMode()));
    };
    auto reduce = [&](const Index &index, ArrayRef<Value> at, ArrayRef<Place> places) {
      Span spans[2];
      Value divisor = index.constant(1);
      for (unsigned dim = 0; dim < 2; ++dim) {
        const aten::Window &window = windows[dim];
        auto [position, size] = places[dim];
        spans[dim] = clip(index, window, position, size);
        Value covered = index.sub(spans[dim].end, spans[dim].begin);
        if (op.getCountIncludePad()) {
          // Up to the end of the padding: a last position may reach beyond it.
          Value start = index.start(window, position);
          Value end = index.min(index.add(start, index.constant(window.kernel)),
                                index.add(size, index.constant(window.padding)));
          covered = index.sub(end, start);
        }
        divisor = index.mul(divisor, covered);
      }
      if (std::optional<uint64_t> fixed = op.getDivisorOverride())
        divisor = index.constant(static_cast<int64_t>(*fixed));
      return meanOver(index, aten::elementTypeOf(op.getSelf()), adaptor.getSelf(), at, spans,
                      divisor);
    };
    return replacePool(op, adaptor, rewriter, count, reduce);
  }
};

struct ConvertAdaptiveAvgPool : SpatialPattern<aten::AdaptiveAvgPool2dOp> {
  using SpatialPattern::SpatialPattern;

  LogicalResult matchAndRewrite(aten::AdaptiveAvgPool2dOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ArrayRef<int64_t> parts = aten::shapeOf(op.getResult()).take_back(2);
    auto count = [&](unsigned dim, Value) {
      return OpFoldResult(rewriter.getIndexAttr(op.getOutputSize()[dim]));
    };
    auto reduce = [&](const Index &index, ArrayRef<Value> at, ArrayRef<Place> places) {
      Span spans[2];
      Value covered = index.constant(1);
      for (unsigned dim = 0; dim < 2; ++dim) {
        // [floor(i * size / parts), ceil((i + 1) * size / parts))
        auto [part, size] = places[dim];
        Value number = index.constant(parts[dim]);
        Value next = index.add(part, index.constant(1));
        spans[dim].begin = index.make<arith::DivUIOp>(index.mul(part, size), number);
        spans[dim].end = index.make<arith::CeilDivUIOp>(index.mul(next, size), number);
        covered = index.mul(covered, index.sub(spans[dim].end, spans[dim].begin));
      }
      return meanOver(index, aten::elementTypeOf(op.getSelf()), adaptor.getSelf(), at, spans,
                      covered);
    };
    return replacePool(op, adaptor, rewriter, count, reduce);
  }
};

/// (x - mean) / sqrt(variance + eps) * weight + bias, rounded once.
struct ConvertBatchNorm : OpConversionPattern<aten::BatchNormOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult matchAndRewrite(aten::BatchNormOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    TensorBuilder tensor(rewriter, loc);
    Type type = aten::elementTypeOf(op.getInput());
    Type wide = computeType(type);
    auto domain = tensor.sizesOf(adaptor.getInput());
    SmallVector<Value> operands;
    SmallVector<Type> types;
    SmallVector<AffineMap> maps;
    auto add = [&](Value converted, Value original, AffineMap map) {
      operands.push_back(converted);
      types.push_back(aten::elementTypeOf(original));
      maps.push_back(map);
    };
    AffineMap ofChannel = AffineMap::get(domain.size(), 0, rewriter.getAffineDimExpr(1));
    add(adaptor.getInput(), op.getInput(), rewriter.getMultiDimIdentityMap(domain.size()));
    add(adaptor.getRunningMean(), op.getRunningMean(), ofChannel);
    add(adaptor.getRunningVar(), op.getRunningVar(), ofChannel);
    if (op.getWeight())
      add(adaptor.getWeight(), op.getWeight(), ofChannel);
    if (op.getBias())
      add(adaptor.getBias(), op.getBias(), ofChannel);
    Value result = tensor.map(
        domain, storageType(type), operands, maps, [&](OpBuilder &b, ValueRange args) -> Value {
          ScalarBuilder s(b, loc, wide);
          auto load = [&](unsigned i) {
            return s.convert(s.as(types[i]).load(args[i]), computeType(types[i]));
          };
          Value variance = s.add(load(2), s.constant(op.getEps().convertToDouble()));
          Value factor = s.div(s.constant(1), s.make<math::SqrtOp>(variance));
          unsigned next = 3;
          if (op.getWeight())
            factor = s.mul(factor, load(next++));
          Value x = s.mul(s.sub(load(0), load(1)), factor);
          if (op.getBias())
            x = s.add(x, load(next));
          return s.as(type).store(x);
        });
    rewriter.replaceOp(op, result);
    return success();
  }
};

} // namespace

void shardc::populateSpatialToLinalg(TypeConverter &converter, RewritePatternSet &patterns) {
  patterns.add<ConvertWindows, ConvertMaxPool, ConvertAvgPool, ConvertAdaptiveAvgPool,
               ConvertBatchNorm>(converter, patterns.getContext());
}
