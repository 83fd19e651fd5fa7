// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Windows over images: copies of what they cover, and sums back to the image; and norms of
// channels. Each reads its operand in memory, at the positions that it computes.

#include "dialects/aten/Spatial.h"
#include "lowering/linalg/Patterns.h"
#include "lowering/linalg/ScalarBuilder.h"
#include "lowering/linalg/SpatialLoops.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace shardc;

namespace {

struct ConvertWindows : OpConversionPattern<aten::WindowsOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult matchAndRewrite(aten::WindowsOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    TensorBuilder tensor(rewriter, loc);
    Value source = adaptor.getSelf();
    Type element = aten::elementTypeOf(op.getSelf());
    aten::Windows windows = op.getWindows();
    size_t spatial = windows.size();
    auto sizes = tensor.sizesOf(source);
    auto domain =
        spatialSizes(tensor, op.getResult(), source, spatial, [&](size_t dim) -> OpFoldResult {
          IndexBuilder index{rewriter, loc};
          return index.positions(windows[dim], index.of(sizes[2 + dim]), /*ceil=*/false);
        });
    auto body = [&](OpBuilder &b, ValueRange) -> Value {
      IndexBuilder index{b, loc};
      SmallVector<Value> at = {currentIndex(b, loc, 0), currentIndex(b, loc, 1)};
      Value inside;
      for (auto [dim, window] : llvm::enumerate(windows)) {
        Value offset = index.mul(currentIndex(b, loc, 2 + dim), index.constant(window.dilation));
        Value position = currentIndex(b, loc, 2 + spatial + dim);
        at.push_back(index.add(index.start(window, position), offset));
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
    };
    rewriter.replaceOp(op, tensor.map(domain, storageType(element), ValueRange(), body));
    return success();
  }
};

/// Each element of the image is the sum of what stands for it in the windows that cover it. Along
/// one dim these are elements `i` of positions `p` with `p * stride + i * dilation = element +
/// padding`.
struct ConvertFold : OpConversionPattern<aten::FoldOp> {
  using OpConversionPattern::OpConversionPattern;

  /// A loop over p where every i fits, else over i. Bounds keep both in range.
  struct Covering {
    const aten::Window &window;
    Value place; // element + padding
    bool overPositions;

    Covering(const IndexBuilder &index, const aten::Window &window, Value element)
        : window(window), place(index.add(element, index.constant(window.padding))),
          overPositions(window.dilation == 1) {}

    Span span(const IndexBuilder &index, Value kernel, Value positions) const {
      Value one = index.constant(1), zero = index.constant(0);
      Value last = index.sub(overPositions ? kernel : positions, one);
      Value step = index.constant(overPositions ? window.stride : window.dilation);
      if (!overPositions)
        last = index.mul(last, index.constant(window.stride));
      Value begin = index.max(index.ceilDiv(index.sub(place, last), step), zero);
      Value end = index.min(index.add(index.floorDiv(place, step), one),
                            overPositions ? positions : kernel);
      return {begin, end};
    }

    /// Element in the kernel and position of the window, and whether there is such a position (null
    /// where there always is).
    struct Found {
      Value element, position, exists;
    };
    Found at(const IndexBuilder &index, Value counter) const {
      if (overPositions)
        return {index.sub(place, index.mul(counter, index.constant(window.stride))), counter, {}};
      Value rest = index.sub(place, index.mul(counter, index.constant(window.dilation)));
      if (window.stride == 1)
        return {counter, rest, {}};
      Value stride = index.constant(window.stride), position = index.floorDiv(rest, stride);
      Value exists = arith::CmpIOp::create(index.b, index.loc, arith::CmpIPredicate::eq,
                                           index.mul(position, stride), rest);
      return {counter, position, exists};
    }
  };

  LogicalResult matchAndRewrite(aten::FoldOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    TensorBuilder tensor(rewriter, loc);
    Value source = adaptor.getSelf();
    Type element = aten::elementTypeOf(op.getSelf());
    aten::Windows windows = op.getWindows();
    size_t spatial = windows.size();
    auto sizes = tensor.sizesOf(source);
    SmallVector<OpFoldResult> image =
        getMixedValues(op.getStaticSize(), adaptor.getSize(), rewriter);
    auto domain = spatialSizes(tensor, op.getResult(), source, spatial,
                               [&](size_t dim) { return image[dim]; });
    auto body = [&](OpBuilder &b, ValueRange) -> Value {
      IndexBuilder index{b, loc};
      ScalarBuilder s(b, loc, element);
      SmallVector<Covering> coverings;
      SmallVector<Span> spans;
      for (auto [dim, window] : llvm::enumerate(windows)) {
        coverings.emplace_back(index, window, currentIndex(b, loc, 2 + dim));
        spans.push_back(coverings.back().span(index, index.of(sizes[2 + dim]),
                                              index.of(sizes[2 + spatial + dim])));
      }
      SmallVector<Value> outer = {currentIndex(b, loc, 0), currentIndex(b, loc, 1)};
      auto add = [&](OpBuilder &inner, ArrayRef<Value> at, ValueRange state) {
        SmallVector<Value> from(outer), positions;
        Value exists;
        for (auto [covering, counter] : llvm::zip_equal(coverings, at)) {
          Covering::Found found = covering.at({inner, loc}, counter);
          from.push_back(found.element);
          positions.push_back(found.position);
          if (found.exists)
            exists = exists ? arith::AndIOp::create(inner, loc, exists, found.exists).getResult()
                            : found.exists;
        }
        llvm::append_range(from, positions);
        ScalarBuilder t(inner, loc, element);
        Value x = t.load(tensor::ExtractOp::create(inner, loc, source, from));
        Value sum = t.add(state[0], x);
        return SmallVector<Value>{exists ? t.make<arith::SelectOp>(exists, sum, state[0]) : sum};
      };
      return s.store(overSpans(b, loc, spans, s.constant(0), add).front());
    };
    rewriter.replaceOp(op, tensor.map(domain, storageType(element), ValueRange(), body));
    return success();
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
  patterns.add<ConvertWindows, ConvertFold, ConvertBatchNorm>(converter, patterns.getContext());
}
