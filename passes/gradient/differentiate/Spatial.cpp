// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Convolutions and pools: what the windows cover, and its adjoint, which adds it back to the image
// (aten.windows and aten.fold).

#include "passes/gradient/differentiate/Models.h"

#include "dialects/aten/BuiltSizes.h"
#include "dialects/aten/ConvolutionAsProduct.h"
#include "dialects/aten/Spatial.h"

using namespace mlir;
using namespace shardc;

namespace {

/// Dims in front of the spatial ones: batch and channels.
constexpr int64_t kOuter = 2;

/// Whether each of the positions is an element of the image. (What a transposed convolution adds
/// behind the last one has none.)
bool isIdentity(ArrayRef<aten::Window> windows, Value image, Value positions) {
  return aten::shapeOf(image).drop_front(kOuter) == aten::shapeOf(positions).drop_front(kOuter) &&
         llvm::all_of(windows, [](const aten::Window &window) { return window.isIdentity(); });
}

Expr windowsOf(Derivation &d, Expr image, ArrayRef<aten::Window> windows) {
  return d.of(aten::buildWindows(d.builder, d.emit.getLoc(), image.value, windows));
}

/// The adjoint of windowsOf, for an image of the sizes of `like`.
Expr imageOf(Derivation &d, Expr columns, ArrayRef<aten::Window> windows, Value like) {
  SmallVector<OpFoldResult> sizes = d.sizes(like);
  ArrayRef<OpFoldResult> spatial = ArrayRef(sizes).take_back(windows.size());
  return d.of(aten::buildFold(d.builder, d.emit.getLoc(), columns.value, spatial, windows));
}

OpFoldResult product(Derivation &d, ArrayRef<OpFoldResult> sizes) {
  aten::BuiltSizes built(d.builder, d.emit.getLoc());
  Dim all(1);
  for (OpFoldResult size : sizes)
    all = built.mul(all, built.of(size));
  return built.get(all);
}

struct ConvolutionGradient : GradientModel<ConvolutionGradient, aten::ConvolutionOp> {
  static LogicalResult run(Derivation &d, aten::ConvolutionOp op) {
    Expr grad = d.grad(), input = d.of(op.getInput()), weight = d.of(op.getWeight());
    if (!grad)
      return success();
    if (llvm::any_of(aten::shapeOf(op.getWeight()), ShapedType::isDynamic)) {
      d.refuse() << "is differentiated for kernels of known size only";
      return failure();
    }
    aten::Windows windows = op.getWindows();
    auto groups = static_cast<int64_t>(op.getGroups()),
         spatial = static_cast<int64_t>(windows.size());
    SmallVector<int64_t> image = dimRange(kOuter, kOuter + spatial);
    SmallVector<int64_t> all = image;
    all.insert(all.begin(), 0);
    if (d.needs(0)) {
      Expr columns =
          groups == 1 ? columnsOf(d, grad, weight) : groupedColumnsOf(d, grad, weight, groups);
      d.add(0, isIdentity(windows, op.getInput(), grad.value)
                   ? view(columns, d.sizes(op.getInput()))
                   : imageOf(d, columns, windows, op.getInput()));
    }
    if (d.needs(1)) {
      bool isPlain = isIdentity(windows, op.getInput(), grad.value);
      Expr columns = isPlain ? input : windowsOf(d, input, windows);
      SmallVector<int64_t> positions = all;
      if (!isPlain)
        for (int64_t &dim : MutableArrayRef(positions).drop_front())
          dim += spatial;
      Expr ofWeight = groups == 1 ? tensordot(grad, columns, all, positions)
                                  : groupedWeight(d, grad, columns, groups, op.getWeight());
      d.add(1, view(ofWeight, d.sizes(op.getWeight())));
    }
    if (op.getBias() && d.needs(2))
      d.add(2, sum(grad, all, /*keepdim=*/false));
    return success();
  }

  /// [batch, channels, kernel..., positions...]
  static Expr columnsOf(Derivation &d, Expr grad, Expr weight) {
    // [channels, kernel..., batch, positions...]
    Expr columns = tensordot(weight, grad, 0, 1);
    int64_t spatial = grad.rank() - kOuter, batch = spatial + 1;
    SmallVector<int64_t> dims = {batch};
    llvm::append_range(dims, dimRange(0, batch));
    llvm::append_range(dims, dimRange(batch + 1, columns.rank()));
    return d.of(aten::PermuteOp::create(d.builder, d.emit.getLoc(), columns.value, dims));
  }

  /// The groups are a batch of products: channels of one are `rows`, positions are flat.
  static Expr inGroups(Derivation &d, Expr x, int64_t groups, int64_t rows, int64_t spatial) {
    SmallVector<OpFoldResult> sizes = d.sizes(x.value);
    OpFoldResult positions = product(d, ArrayRef(sizes).take_back(spatial));
    return view(
        x, {sizes[0], d.builder.getIndexAttr(groups), d.builder.getIndexAttr(rows), positions});
  }

  static int64_t columnOf(Value weight) {
    int64_t column = 1;
    for (int64_t size : aten::shapeOf(weight).drop_front())
      column *= size;
    return column;
  }

  static Expr groupedColumnsOf(Derivation &d, Expr grad, Expr weight, int64_t groups) {
    int64_t spatial = grad.rank() - kOuter, out = aten::shapeOf(weight.value)[0] / groups;
    auto number = [&](int64_t x) -> OpFoldResult { return d.builder.getIndexAttr(x); };
    Expr g = inGroups(d, grad, groups, out, spatial);
    Expr w = view(weight, {number(groups), number(out), number(columnOf(weight.value))});
    Expr columns = matmul(transpose(w, 1, 2), g); // [batch, groups, column, positions]
    ArrayRef<int64_t> kernel = aten::shapeOf(weight.value);
    SmallVector<OpFoldResult> sizes = d.sizes(grad.value),
                              whole = {sizes[0], number(groups * kernel[1])};
    for (int64_t size : kernel.drop_front(2))
      whole.push_back(number(size));
    llvm::append_range(whole, ArrayRef(sizes).drop_front(2));
    return view(columns, whole);
  }

  static Expr groupedWeight(Derivation &d, Expr grad, Expr columns, int64_t groups, Value weight) {
    int64_t spatial = grad.rank() - kOuter;
    Expr g = inGroups(d, grad, groups, aten::shapeOf(weight)[0] / groups, spatial);
    Expr c = inGroups(d, columns, groups, columnOf(weight), spatial);
    return sum(matmul(g, transpose(c, 2, 3)), 0, /*keepdim=*/false);
  }
};

struct WindowsGradient : GradientModel<WindowsGradient, aten::WindowsOp> {
  static LogicalResult run(Derivation &d, aten::WindowsOp op) {
    if (d.grad())
      d.add(0, imageOf(d, d.grad(), op.getWindows(), op.getSelf()));
    return success();
  }
};

struct FoldGradient : GradientModel<FoldGradient, aten::FoldOp> {
  static LogicalResult run(Derivation &d, aten::FoldOp op) {
    Expr grad = d.grad();
    if (!grad)
      return success();
    aten::Windows windows = op.getWindows();
    if (llvm::any_of(windows, [](auto &w) { return ShapedType::isDynamic(w.kernel); })) {
      d.refuse() << "is differentiated for kernels of known size only";
      return failure();
    }
    // The columns may have one position more than the image, or some less.
    auto spatial = static_cast<int64_t>(windows.size());
    for (int64_t dim = 0; dim < spatial; ++dim) {
      const aten::Window &window = windows[dim];
      int64_t size = aten::shapeOf(grad.value)[kOuter + dim];
      int64_t positions = aten::shapeOf(op.getSelf())[kOuter + spatial + dim];
      int64_t more = window.stride;
      if (!ShapedType::isDynamic(size) && !ShapedType::isDynamic(positions))
        more = std::max<int64_t>(0, (positions - 1) * window.stride + window.extent() - size -
                                        2 * window.padding);
      grad = pad(grad, kOuter + dim, 0, more);
    }
    Expr columns = windowsOf(d, grad, windows);
    for (int64_t dim = kOuter + spatial; dim < columns.rank(); ++dim) {
      OpFoldResult positions = d.size(op.getSelf(), dim);
      std::optional<int64_t> wanted = getConstantIntValue(positions);
      if (!wanted || *wanted != aten::shapeOf(columns.value)[dim])
        columns = d.of(d.emit.slice(columns.value, dim, d.builder.getIndexAttr(0), positions));
    }
    d.add(0, columns);
    return success();
  }
};

/// Pools take images with and without a batch: one more dim in front.
Expr asBatch(Expr x, int64_t spatial) { return x.rank() == spatial + kOuter ? x : unsqueeze(x, 0); }
Expr asBefore(Derivation &d, Expr x, Value like) {
  return x.rank() == aten::typeOf(like).getRank() ? x : view(x, d.sizes(like));
}

/// [batch, channels, positions...] with dims of size 1 for the kernel.
Expr besideKernel(Expr x) {
  for (int64_t dim = 0, spatial = x.rank() - kOuter; dim < spatial; ++dim)
    x = unsqueeze(x, kOuter);
  return x;
}

Expr least(Expr x, Expr y) { return x.with(x.emit->binary<aten::MinimumOp>(x.value, y.value)); }
Expr most(Expr x, Expr y) { return x.with(x.emit->binary<aten::MaximumOp>(x.value, y.value)); }
/// `x * by + more` of integers.
Expr scaled(Expr x, int64_t by, int64_t more) {
  auto number = [&](int64_t n) { return x.with(x.emit->integer(n, x.elementType())); };
  if (by != 1)
    x = x * number(by);
  return more == 0 ? x : x + number(more);
}

/// A wide float, divided by an integer, in its own type again.
Expr dividedBy(Expr x, Expr count) {
  Type type = x.elementType(), wide = Emitter::accumulator(type);
  return cast(cast(x, wide) / cast(count, wide), type);
}

/// To where PyTorch's position of the largest element is.
struct MaxPoolGradient : GradientModel<MaxPoolGradient, aten::MaxPoolOp> {
  static LogicalResult run(Derivation &d, aten::MaxPoolOp op) {
    if (!d.grad())
      return success();
    aten::Windows windows = op.getWindows();
    auto spatial = static_cast<int64_t>(windows.size());
    Expr positions = d.of(aten::MaxPoolPositionsOp::create(
        d.builder, d.emit.getLoc(), op.getSelf(), op.getKernelSize(), op.getStride(),
        op.getPadding(), op.getDilation(), op.getCeilMode()));
    Expr largest = besideKernel(asBatch(positions, spatial));
    Expr grad = besideKernel(asBatch(d.grad(), spatial));
    // Elements outside of the image have positions of others, but are dropped.
    Expr flat = flatPositions(d, windows, op.getSelf(), grad);
    Expr columns = where(eq(largest, flat), grad, 0);
    d.add(0, asBefore(d, imageOf(d, columns, windows, op.getSelf()), op.getSelf()));
    return success();
  }

  /// In the flattened image, of the elements under the windows: [1, 1, kernel..., positions...].
  static Expr flatPositions(Derivation &d, ArrayRef<aten::Window> windows, Value image,
                            Expr columns) {
    Type i64 = d.builder.getI64Type();
    auto spatial = static_cast<int64_t>(windows.size());
    int64_t first = aten::typeOf(image).getRank() - spatial;
    Expr flat;
    for (auto [i, window] : llvm::enumerate(windows)) {
      auto dim = static_cast<int64_t>(i);
      Expr element =
          d.positions(d.builder.getIndexAttr(window.kernel), kOuter + dim, columns.rank(), i64);
      Expr position = d.positions(d.size(columns.value, kOuter + spatial + dim),
                                  kOuter + spatial + dim, columns.rank(), i64);
      Expr at =
          scaled(element, window.dilation, 0) + scaled(position, window.stride, -window.padding);
      flat = flat ? flat * d.scalar(d.size(image, first + dim), i64) + at : at;
    }
    return flat;
  }
};

struct AvgPoolGradient : GradientModel<AvgPoolGradient, aten::AvgPoolOp> {
  static LogicalResult run(Derivation &d, aten::AvgPoolOp op) {
    if (!d.grad())
      return success();
    aten::Windows windows = op.getWindows();
    Expr grad = asBatch(divided(d, op, windows), static_cast<int64_t>(windows.size()));
    // All elements under a window get the same.
    SmallVector<OpFoldResult> sizes = d.sizes(grad.value);
    for (auto [dim, window] : llvm::enumerate(windows))
      sizes.insert(sizes.begin() + kOuter + static_cast<int64_t>(dim),
                   d.builder.getIndexAttr(window.kernel));
    Expr columns = expand(besideKernel(grad), sizes);
    d.add(0, asBefore(d, imageOf(d, columns, windows, op.getSelf()), op.getSelf()));
    return success();
  }

  /// The cotangent divided by how many elements each window counts.
  static Expr divided(Derivation &d, aten::AvgPoolOp op, ArrayRef<aten::Window> windows) {
    Expr grad = d.grad(), count;
    if (std::optional<int64_t> divisor = op.getDivisorOverride())
      return grad / static_cast<double>(*divisor);
    Type i64 = d.builder.getI64Type();
    int64_t first = grad.rank() - static_cast<int64_t>(windows.size());
    for (auto [i, window] : llvm::enumerate(windows)) {
      int64_t dim = first + static_cast<int64_t>(i);
      Expr begin = scaled(d.positions(d.size(grad.value, dim), dim, grad.rank(), i64),
                          window.stride, -window.padding);
      Expr size = d.scalar(d.size(op.getSelf(), dim), i64);
      Expr end = least(scaled(begin, 1, window.kernel), scaled(size, 1, window.padding));
      if (!op.getCountIncludePad()) {
        begin = most(begin, d.of(d.emit.integer(0, i64)));
        end = least(end, size);
      }
      count = count ? count * (end - begin) : end - begin;
    }
    return dividedBy(grad, count);
  }
};

/// The parts of an adaptive pool along one dim: their first elements, and those behind their last.
struct Parts {
  Expr begin, end;

  Parts(Derivation &d, int64_t parts, OpFoldResult size, int64_t dim, int64_t rank) {
    Type i64 = d.builder.getI64Type();
    Expr part = d.positions(d.builder.getIndexAttr(parts), dim, rank, i64);
    Expr number = d.of(d.emit.integer(parts, i64)), elements = d.scalar(size, i64);
    begin = roundedQuotient(part * elements, number, "floor");
    end = roundedQuotient(scaled(scaled(part, 1, 1) * elements, 1, parts - 1), number, "floor");
  }
};

/// A product with a matrix that says which elements belong to which part, in each dim.
struct AdaptiveAvgPoolGradient : GradientModel<AdaptiveAvgPoolGradient, aten::AdaptiveAvgPoolOp> {
  static LogicalResult run(Derivation &d, aten::AdaptiveAvgPoolOp op) {
    Expr grad = d.grad();
    if (!grad)
      return success();
    ArrayRef<int64_t> parts = op.getOutputSize();
    int64_t first = grad.rank() - static_cast<int64_t>(parts.size());
    SmallVector<OpFoldResult> sizes = d.sizes(op.getSelf());
    if (llvm::all_of(parts, [](int64_t part) { return part == 1; })) {
      SmallVector<int64_t> spatial = dimRange(first, grad.rank());
      grad = dividedBy(grad, d.count(op.getSelf(), spatial, d.builder.getI64Type()));
      d.add(0, expand(grad, sizes));
      return success();
    }
    // The first of the spatial dims becomes the last one, time after time.
    for (auto [i, part] : llvm::enumerate(parts)) {
      OpFoldResult size = sizes[first + static_cast<int64_t>(i)];
      Parts of(d, part, size, /*dim=*/0, /*rank=*/2);
      Expr element = d.positions(size, /*dim=*/1, /*rank=*/2, d.builder.getI64Type());
      Expr isIn = logicalAnd(ge(element, of.begin), lt(element, of.end));
      Expr share = 1.0 / cast(of.end - of.begin, grad.elementType());
      grad = tensordot(grad, where(isIn, share, 0), first, 0);
    }
    d.add(0, grad);
    return success();
  }
};

struct AdaptiveMaxPoolGradient : GradientModel<AdaptiveMaxPoolGradient, aten::AdaptiveMaxPoolOp> {
  static LogicalResult run(Derivation &d, aten::AdaptiveMaxPoolOp op) {
    Expr grad = d.grad();
    if (!grad)
      return success();
    auto spatial = static_cast<int64_t>(op.getOutputSize().size());
    int64_t first = grad.rank() - spatial;
    Expr positions = d.of(aten::AdaptiveMaxPoolPositionsOp::create(
        d.builder, d.emit.getLoc(), op.getSelf(), op.getOutputSize()));
    auto flat = [&](Value of) {
      SmallVector<OpFoldResult> sizes = d.sizes(of);
      OpFoldResult all = product(d, ArrayRef(sizes).take_back(spatial));
      sizes.truncate(first);
      sizes.push_back(all);
      return sizes;
    };
    // A part may share its largest element with the next.
    Expr zeros = d.zeros(flat(op.getSelf()), grad.elementType());
    SmallVector<OpFoldResult> sizes = flat(grad.value);
    Expr sum =
        d.of(aten::ScatterAddOp::create(d.builder, d.emit.getLoc(), zeros.value, first,
                                        view(positions, sizes).value, view(grad, sizes).value));
    d.add(0, view(sum, d.sizes(op.getSelf())));
    return success();
  }
};

} // namespace

void shardc::attachSpatialGradients(MLIRContext *context) {
  aten::ConvolutionOp::attachInterface<ConvolutionGradient>(*context);
  aten::WindowsOp::attachInterface<WindowsGradient>(*context);
  aten::FoldOp::attachInterface<FoldGradient>(*context);
  aten::MaxPoolOp::attachInterface<MaxPoolGradient>(*context);
  aten::AvgPoolOp::attachInterface<AvgPoolGradient>(*context);
  aten::AdaptiveAvgPoolOp::attachInterface<AdaptiveAvgPoolGradient>(*context);
  aten::AdaptiveMaxPoolOp::attachInterface<AdaptiveMaxPoolGradient>(*context);
}
