// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pools: maxima, their positions and means of what a window or a part covers. Each reads the image
// in memory.

#include "dialects/aten/Spatial.h"
#include "lowering/linalg/Patterns.h"
#include "lowering/linalg/ScalarBuilder.h"
#include "lowering/linalg/SpatialLoops.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace shardc;

namespace {

using Spans = SmallVector<Span, 3>;

/// Where one element of a pool comes from: the image's other indices, and in each spatial dim the
/// position and the size of the image.
struct Place {
  IndexBuilder index;
  Value source;
  Type element;
  SmallVector<Value> outer, position, size;

  /// What `window` covers of each spatial dim.
  Spans covered(ArrayRef<aten::Window> windows) const {
    Spans spans;
    for (auto [window, at, of] : llvm::zip_equal(windows, position, size))
      spans.push_back(clip(index, window, at, of));
    return spans;
  }
  /// Part `position` of so many in each spatial dim: [floor(i * size / parts), ceil((i + 1) * size
  /// / parts)).
  Spans partOf(ArrayRef<int64_t> parts) const {
    Spans spans;
    for (auto [part, at, of] : llvm::zip_equal(parts, position, size)) {
      Value number = index.constant(part), next = index.add(at, index.constant(1));
      spans.push_back(
          {arith::DivUIOp::create(index.b, index.loc, index.mul(at, of), number),
           arith::CeilDivUIOp::create(index.b, index.loc, index.mul(next, of), number)});
    }
    return spans;
  }
  /// How many elements the spans of steps of 1 have.
  Value count(ArrayRef<Span> spans) const {
    Value product = index.constant(1);
    for (const Span &span : spans)
      product = index.mul(product, index.sub(span.end, span.begin));
    return product;
  }

  Value load(OpBuilder &b, ArrayRef<Value> at) const {
    SmallVector<Value> all(outer);
    llvm::append_range(all, at);
    return ScalarBuilder(b, index.loc, element)
        .load(tensor::ExtractOp::create(b, index.loc, source, all));
  }

  Value largest(ArrayRef<Span> spans) const {
    ScalarBuilder s(index.b, index.loc, element);
    auto body = [&](OpBuilder &b, ArrayRef<Value> at, ValueRange state) {
      ScalarBuilder t(b, index.loc, element);
      return SmallVector<Value>{t.max(state[0], load(b, at))};
    };
    return s.store(overSpans(index.b, index.loc, spans, s.lowest(), body).front());
  }

  /// In the flattened image. Of equal elements the first, of NaNs the last, as in PyTorch.
  Value positionOfLargest(ArrayRef<Span> spans) const {
    ScalarBuilder s(index.b, index.loc, element);
    SmallVector<Value> first;
    for (const Span &span : spans)
      first.push_back(span.begin);
    auto body = [&](OpBuilder &b, ArrayRef<Value> at, ValueRange state) {
      ScalarBuilder t(b, index.loc, element);
      Value x = load(b, at);
      Value isLarger = t.compare(ScalarBuilder::Predicate::gt, x, state[0]);
      if (t.isFloat())
        isLarger = t.make<arith::OrIOp>(isLarger, t.compare(ScalarBuilder::Predicate::ne, x, x));
      return SmallVector<Value>{
          t.make<arith::SelectOp>(isLarger, x, state[0]),
          t.make<arith::SelectOp>(isLarger, flat({b, index.loc}, at), state[1])};
    };
    Value found =
        overSpans(index.b, index.loc, spans, {s.lowest(), flat(index, first)}, body).back();
    return arith::IndexCastOp::create(index.b, index.loc, index.b.getI64Type(), found);
  }

  Value flat(const IndexBuilder &at, ArrayRef<Value> indices) const {
    Value sum = indices.front();
    for (auto [i, of] : llvm::drop_begin(llvm::zip_equal(indices, size)))
      sum = at.add(at.mul(sum, of), i);
    return sum;
  }

  /// The sum over the spans, divided by `divisor`, in the compute type.
  Value mean(ArrayRef<Span> spans, Value divisor) const {
    ScalarBuilder s(index.b, index.loc, element);
    auto body = [&](OpBuilder &b, ArrayRef<Value> at, ValueRange state) {
      ScalarBuilder t(b, index.loc, element);
      return SmallVector<Value>{t.add(state[0], load(b, at))};
    };
    Value sum = overSpans(index.b, index.loc, spans, s.constant(0), body).front();
    return s.store(s.div(sum, s.fromIndex(divisor)));
  }
};

/// Base of the patterns. `count` is the number of positions in a spatial dim of a size; `reduce`
/// makes one element.
template <typename Op> struct PoolPattern : OpConversionPattern<Op> {
  using OpConversionPattern<Op>::OpConversionPattern;
  using Adaptor = typename Op::Adaptor;

  static LogicalResult replace(Op op, Adaptor adaptor, ConversionPatternRewriter &rewriter,
                               size_t spatial,
                               llvm::function_ref<Value(const IndexBuilder &, size_t, Value)> count,
                               llvm::function_ref<Value(const Place &)> reduce) {
    Location loc = op.getLoc();
    TensorBuilder tensor(rewriter, loc);
    Value source = adaptor.getSelf();
    TensorBuilder::Sizes sizes = tensor.sizesOf(source);
    size_t outer = sizes.size() - spatial;
    TensorBuilder::Sizes domain =
        spatialSizes(tensor, op.getResult(), source, spatial, [&](size_t dim) -> OpFoldResult {
          IndexBuilder index{rewriter, loc};
          return count(index, dim, index.of(sizes[outer + dim]));
        });
    auto body = [&](OpBuilder &b, ValueRange) -> Value {
      Place place{{b, loc}, source, aten::elementTypeOf(op.getSelf()), {}, {}, {}};
      for (size_t dim = 0; dim < sizes.size(); ++dim) {
        (dim < outer ? place.outer : place.position).push_back(currentIndex(b, loc, dim));
        if (dim >= outer)
          place.size.push_back(place.index.of(sizes[dim]));
      }
      return reduce(place);
    };
    rewriter.replaceOp(op, tensor.map(domain, storageType(aten::elementTypeOf(op.getResult())),
                                      ValueRange(), body));
    return success();
  }
};

template <typename Op, Value (Place::*reduce)(ArrayRef<Span>) const>
struct ConvertMaxPool : PoolPattern<Op> {
  using PoolPattern<Op>::PoolPattern;

  LogicalResult matchAndRewrite(Op op, typename Op::Adaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    aten::Windows windows = op.getWindows();
    return this->replace(
        op, adaptor, rewriter, windows.size(),
        [&](const IndexBuilder &index, size_t dim, Value size) {
          return index.positions(windows[dim], size, op.getCeilMode());
        },
        [&](const Place &place) { return (place.*reduce)(place.covered(windows)); });
  }
};

struct ConvertAvgPool : PoolPattern<aten::AvgPoolOp> {
  using PoolPattern::PoolPattern;

  LogicalResult matchAndRewrite(aten::AvgPoolOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    aten::Windows windows = op.getWindows();
    return replace(
        op, adaptor, rewriter, windows.size(),
        [&](const IndexBuilder &index, size_t dim, Value size) {
          return index.positions(windows[dim], size, op.getCeilMode());
        },
        [&](const Place &place) {
          Spans spans = place.covered(windows);
          return place.mean(spans, divisorOf(op, place, windows, spans));
        });
  }

  static Value divisorOf(aten::AvgPoolOp op, const Place &place, ArrayRef<aten::Window> windows,
                         ArrayRef<Span> spans) {
    const IndexBuilder &index = place.index;
    if (std::optional<uint64_t> fixed = op.getDivisorOverride())
      return index.constant(static_cast<int64_t>(*fixed));
    if (!op.getCountIncludePad())
      return place.count(spans);
    Value divisor = index.constant(1);
    for (auto [window, at, size] : llvm::zip_equal(windows, place.position, place.size)) {
      // Up to the end of the padding: a last position may reach beyond it.
      Value start = index.start(window, at);
      Value end = index.min(index.add(start, index.constant(window.kernel)),
                            index.add(size, index.constant(window.padding)));
      divisor = index.mul(divisor, index.sub(end, start));
    }
    return divisor;
  }
};

template <typename Op> struct AdaptivePattern : PoolPattern<Op> {
  using PoolPattern<Op>::PoolPattern;

  LogicalResult matchAndRewrite(Op op, typename Op::Adaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ArrayRef<int64_t> parts = op.getOutputSize();
    return this->replace(
        op, adaptor, rewriter, parts.size(),
        [&](const IndexBuilder &index, size_t dim, Value) { return index.constant(parts[dim]); },
        [&](const Place &place) {
          Spans spans = place.partOf(parts);
          if constexpr (std::is_same_v<Op, aten::AdaptiveAvgPoolOp>)
            return place.mean(spans, place.count(spans));
          else if constexpr (std::is_same_v<Op, aten::AdaptiveMaxPoolOp>)
            return place.largest(spans);
          else
            return place.positionOfLargest(spans);
        });
  }
};

} // namespace

void shardc::populatePoolsToLinalg(TypeConverter &converter, RewritePatternSet &patterns) {
  patterns.add<ConvertMaxPool<aten::MaxPoolOp, &Place::largest>,
               ConvertMaxPool<aten::MaxPoolPositionsOp, &Place::positionOfLargest>, ConvertAvgPool,
               AdaptivePattern<aten::AdaptiveAvgPoolOp>, AdaptivePattern<aten::AdaptiveMaxPoolOp>,
               AdaptivePattern<aten::AdaptiveMaxPoolPositionsOp>>(converter, patterns.getContext());
}
