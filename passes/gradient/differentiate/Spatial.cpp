// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Convolutions and pools. Windows are taken apart by the position in the window: all elements that
// stand first in their windows are a strided slice of the padded image, and so on.

#include "passes/gradient/differentiate/Models.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace shardc;

namespace {

using Windows = std::array<aten::Window, 2>;

/// Dims of `aten.windows`: [batch, channels, kernel height and width, positions], last two of both.
constexpr int64_t kKernel = 2, kPositions = 4;

Expr windowsOf(Derivation &d, Expr image, const Windows &windows) {
  auto pair = [&](int64_t aten::Window::*entry) {
    return d.builder.getDenseI64ArrayAttr({windows[0].*entry, windows[1].*entry});
  };
  return d.of(aten::WindowsOp::create(d.builder, d.emit.getLoc(), image.value,
                                      pair(&aten::Window::kernel), pair(&aten::Window::stride),
                                      pair(&aten::Window::padding), pair(&aten::Window::dilation)));
}

/// The adjoint of windowsOf: each element back to where it was in the image of these sizes, added
/// up. First along the height, then along the width.
Expr imageOf(Derivation &d, Expr columns, const Windows &windows, ArrayRef<int64_t> image) {
  for (unsigned axis = 0; axis < 2; ++axis) {
    const aten::Window &window = windows[axis];
    int64_t size = image[2 + axis];
    Expr total;
    constexpr int64_t dim = kPositions - 1;
    for (int64_t i = 0; i < window.kernel; ++i) {
      int64_t start = i * window.dilation - window.padding;
      int64_t length = aten::shapeOf(columns.value)[kPositions] * window.stride;
      // All in the padding.
      if (start >= size || start + length <= 0)
        continue;
      // The kernel's height is gone when its width is taken apart.
      Expr part = d.of(
          aten::SelectOp::create(d.builder, d.emit.getLoc(), columns.value, kKernel, i, Value()));
      part = d.spread(part, dim, window.stride);
      part = pad(part, dim, start, size - start - length);
      total = total ? total + part : part;
    }
    if (!total) {
      SmallVector<OpFoldResult> sizes = d.sizes(columns.value);
      sizes.erase(sizes.begin() + kKernel);
      sizes[dim] = d.builder.getIndexAttr(size);
      total = d.zeros(sizes, columns.elementType());
    }
    columns = total;
  }
  return columns;
}

/// Sizes that the kernels here are written for.
LogicalResult checkImage(Derivation &d, Value image, int64_t first) {
  for (int64_t size : aten::shapeOf(image).drop_front(first))
    if (ShapedType::isDynamic(size)) {
      d.refuse() << "is differentiated for images of known size only";
      return failure();
    }
  return success();
}

struct Conv2dGradient : GradientModel<Conv2dGradient, aten::Conv2dOp> {
  static LogicalResult run(Derivation &d, aten::Conv2dOp op) {
    Expr grad = d.grad(), input = d.of(op.getInput()), weight = d.of(op.getWeight());
    if (!grad)
      return success();
    if (failed(checkImage(d, op.getInput(), 1)) || failed(checkImage(d, op.getWeight(), 0)))
      return failure();
    if (grad.rank() != 4) {
      d.refuse() << "is differentiated for batches of images only";
      return failure();
    }
    Windows windows = op.getWindows();
    auto groups = static_cast<int64_t>(op.getGroups());
    if (d.needs(0)) {
      Expr columns =
          groups == 1 ? columnsOf(d, grad, weight) : groupedColumnsOf(d, grad, weight, groups);
      d.add(0, imageOf(d, columns, windows, aten::shapeOf(op.getInput())));
    }
    if (d.needs(1)) {
      Expr columns = windowsOf(d, input, windows);
      d.add(1, groups == 1 ? tensordot(grad, columns, {0, 2, 3}, {0, 4, 5})
                           : groupedWeight(d, grad, columns, groups, op.getWeight()));
    }
    if (op.getBias() && d.needs(2))
      d.add(2, sum(grad, {0, 2, 3}, /*keepdim=*/false));
    return success();
  }

  static Expr permute(Derivation &d, Expr x, ArrayRef<int64_t> dims) {
    return d.of(aten::PermuteOp::create(d.builder, d.emit.getLoc(), x.value, dims));
  }

  static Expr columnsOf(Derivation &d, Expr grad, Expr weight) {
    // [channels, kernel, kernel, batch, positions, positions]
    Expr columns = tensordot(weight, grad, 0, 1);
    return permute(d, columns, {3, 0, 1, 2, 4, 5});
  }

  /// The groups are a batch of products.
  static Expr groupedColumnsOf(Derivation &d, Expr grad, Expr weight, int64_t groups) {
    SmallVector<OpFoldResult> of = d.sizes(grad.value);
    ArrayRef<int64_t> kernel = aten::shapeOf(weight.value);
    auto number = [&](int64_t x) -> OpFoldResult { return d.builder.getIndexAttr(x); };
    int64_t out = kernel[0] / groups, column = kernel[1] * kernel[2] * kernel[3];
    int64_t positions = aten::shapeOf(grad.value)[2] * aten::shapeOf(grad.value)[3];
    Expr g = view(grad, {of[0], number(groups), number(out), number(positions)});
    Expr w = view(weight, {number(groups), number(out), number(column)});
    Expr columns = matmul(transpose(w, 1, 2), g); // [batch, groups, column, positions]
    return view(columns, {of[0], number(groups * kernel[1]), number(kernel[2]), number(kernel[3]),
                          of[2], of[3]});
  }

  static Expr groupedWeight(Derivation &d, Expr grad, Expr columns, int64_t groups, Value weight) {
    SmallVector<OpFoldResult> of = d.sizes(grad.value);
    ArrayRef<int64_t> kernel = aten::shapeOf(weight);
    auto number = [&](int64_t x) -> OpFoldResult { return d.builder.getIndexAttr(x); };
    int64_t out = kernel[0] / groups, column = kernel[1] * kernel[2] * kernel[3];
    int64_t positions = aten::shapeOf(grad.value)[2] * aten::shapeOf(grad.value)[3];
    Expr g = view(grad, {of[0], number(groups), number(out), number(positions)});
    Expr c = view(columns, {of[0], number(groups), number(column), number(positions)});
    Expr each = sum(matmul(g, transpose(c, 2, 3)), 0, /*keepdim=*/false);
    return view(each, d.sizes(weight));
  }
};

struct WindowsGradient : GradientModel<WindowsGradient, aten::WindowsOp> {
  static LogicalResult run(Derivation &d, aten::WindowsOp op) {
    if (!d.grad())
      return success();
    if (failed(checkImage(d, op.getSelf(), 1)))
      return failure();
    d.add(0, imageOf(d, d.grad(), op.getWindows(), aten::shapeOf(op.getSelf())));
    return success();
  }
};

/// Pools take images with and without a batch: one more dim in front.
Expr asBatch(Expr x) { return x.rank() == 3 ? unsqueeze(x, 0) : x; }
Expr asBefore(Derivation &d, Expr x, Value like) {
  return aten::typeOf(like).getRank() == 3 ? view(x, d.sizes(like)) : x;
}

/// With `ceil`, a last window may reach beyond the padding: as if there were more of the image.
std::array<int64_t, 2> missingElements(const Windows &windows, ArrayRef<int64_t> image,
                                       ArrayRef<int64_t> positions) {
  std::array<int64_t, 2> missing;
  for (unsigned axis = 0; axis < 2; ++axis) {
    const aten::Window &window = windows[axis];
    int64_t reach = (positions[axis] - 1) * window.stride + window.extent();
    missing[axis] = std::max<int64_t>(0, reach - image[axis] - 2 * window.padding);
  }
  return missing;
}

/// To the first of the elements that are the largest, as in PyTorch.
struct MaxPoolGradient : GradientModel<MaxPoolGradient, aten::MaxPool2dOp> {
  static LogicalResult run(Derivation &d, aten::MaxPool2dOp op) {
    if (!d.grad())
      return success();
    if (failed(checkImage(d, op.getSelf(), 0)))
      return failure();
    Windows windows = op.getWindows();
    Expr self = asBatch(d.of(op.getSelf())), result = asBatch(d.result());
    ArrayRef<int64_t> image = aten::shapeOf(self.value);
    ArrayRef<int64_t> positions = aten::shapeOf(result.value).drop_front(2);
    auto missing = missingElements(windows, image.drop_front(2), positions);
    auto padded = [&](Expr x) { return pad(pad(x, 2, 0, missing[0]), 3, 0, missing[1]); };
    SmallVector<OpFoldResult> one(4, d.builder.getIndexAttr(1));
    one[2] = d.builder.getIndexAttr(image[2]);
    one[3] = d.builder.getIndexAttr(image[3]);
    Expr inside = windowsOf(d, padded(d.of(d.emit.full(one, self.number(1).value))), windows);
    Expr elements = windowsOf(d, padded(self), windows);
    Expr largest = unsqueeze(unsqueeze(result, kKernel), kKernel);
    // What is not a number is the largest.
    Expr isNan = logicalNot(eq(elements, elements)),
         largestIsNan = logicalNot(eq(largest, largest));
    Expr isIt = logicalAnd(gt(inside, 0),
                           logicalOr(eq(elements, largest), logicalAnd(isNan, largestIsNan)));
    // The first one along the window.
    SmallVector<OpFoldResult> whole = d.sizes(isIt.value), flat = whole;
    flat.erase(flat.begin() + kKernel);
    flat[kKernel] = d.builder.getIndexAttr(windows[0].kernel * windows[1].kernel);
    Expr row = view(isIt, flat);
    Type i64 = d.builder.getI64Type();
    Expr seen = d.of(
        aten::CumsumOp::create(d.builder, d.emit.getLoc(), row.value, kKernel, TypeAttr::get(i64)));
    Expr first =
        logicalAnd(row, d.of(d.emit.binary<aten::EqOp>(seen.value, d.emit.integer(1, i64))));
    Expr grad = unsqueeze(asBatch(d.grad()), kKernel);
    Expr columns = view(where(first, grad, 0), whole);
    d.add(0, asBefore(d, imageOf(d, columns, windows, image), op.getSelf()));
    return success();
  }
};

Expr constantOf(Derivation &d, ArrayRef<double> numbers, ArrayRef<int64_t> shape, Type element) {
  SmallVector<Attribute> values;
  for (double number : numbers)
    values.push_back(d.builder.getFloatAttr(element, number));
  auto type = RankedTensorType::get(shape, element);
  return d.of(aten::ConstantOp::create(d.builder, d.emit.getLoc(), type,
                                       DenseElementsAttr::get(type, values)));
}

struct AvgPoolGradient : GradientModel<AvgPoolGradient, aten::AvgPool2dOp> {
  static LogicalResult run(Derivation &d, aten::AvgPool2dOp op) {
    if (!d.grad())
      return success();
    if (failed(checkImage(d, op.getSelf(), 0)))
      return failure();
    Windows windows = op.getWindows();
    Expr self = asBatch(d.of(op.getSelf())), grad = asBatch(d.grad());
    ArrayRef<int64_t> image = aten::shapeOf(self.value);
    grad = divided(d, op, grad, windows, image);
    // All elements under a window get the same.
    SmallVector<OpFoldResult> sizes = d.sizes(grad.value);
    for (unsigned axis = 0; axis < 2; ++axis)
      sizes.insert(sizes.begin() + kKernel + axis, d.builder.getIndexAttr(windows[axis].kernel));
    Expr columns = d.of(d.emit.full(sizes, unsqueeze(unsqueeze(grad, kKernel), kKernel).value));
    d.add(0, asBefore(d, imageOf(d, columns, windows, image), op.getSelf()));
    return success();
  }

  static Expr divided(Derivation &d, aten::AvgPool2dOp op, Expr grad, const Windows &windows,
                      ArrayRef<int64_t> image) {
    if (std::optional<int64_t> divisor = op.getDivisorOverride())
      return grad / static_cast<double>(*divisor);
    ArrayRef<int64_t> positions = aten::shapeOf(grad.value).drop_front(2);
    for (unsigned axis = 0; axis < 2; ++axis) {
      const aten::Window &window = windows[axis];
      int64_t size = image[2 + axis];
      SmallVector<double> counts;
      for (int64_t p = 0; p < positions[axis]; ++p) {
        int64_t begin = p * window.stride - window.padding;
        int64_t end = std::min(begin + window.kernel, size + window.padding);
        if (!op.getCountIncludePad()) {
          begin = std::max<int64_t>(begin, 0);
          end = std::min(end, size);
        }
        counts.push_back(static_cast<double>(end - begin));
      }
      SmallVector<int64_t> shape{positions[axis]};
      if (axis == 0)
        shape.push_back(1);
      grad = grad / constantOf(d, counts, shape, grad.elementType());
    }
    return grad;
  }
};

/// A product with a matrix that says which elements belong to which part, in each dim.
struct AdaptivePoolGradient : GradientModel<AdaptivePoolGradient, aten::AdaptiveAvgPool2dOp> {
  static LogicalResult run(Derivation &d, aten::AdaptiveAvgPool2dOp op) {
    Expr grad = d.grad();
    if (!grad)
      return success();
    if (failed(checkImage(d, op.getSelf(), 1)))
      return failure();
    ArrayRef<int64_t> image = aten::shapeOf(op.getSelf()).take_back(2),
                      parts = aten::shapeOf(op.getResult()).take_back(2);
    Type type = grad.elementType();
    // grad of [..., parts of height, parts of width]
    grad = matmul(grad, membership(d, parts[1], image[1], type));
    d.add(0, matmul(transpose(membership(d, parts[0], image[0], type), 0, 1), grad));
    return success();
  }

  /// [parts, elements]: 1 / the size of the part where the element is in it.
  static Expr membership(Derivation &d, int64_t parts, int64_t elements, Type type) {
    SmallVector<double> entries;
    for (int64_t part = 0; part < parts; ++part) {
      int64_t begin = part * elements / parts;
      int64_t end = llvm::divideCeil((part + 1) * elements, parts);
      for (int64_t i = 0; i < elements; ++i)
        entries.push_back(i >= begin && i < end ? 1 / static_cast<double>(end - begin) : 0);
    }
    return constantOf(d, entries, {parts, elements}, type);
  }
};

} // namespace

void shardc::attachSpatialGradients(MLIRContext *context) {
  aten::Conv2dOp::attachInterface<Conv2dGradient>(*context);
  aten::WindowsOp::attachInterface<WindowsGradient>(*context);
  aten::MaxPool2dOp::attachInterface<MaxPoolGradient>(*context);
  aten::AvgPool2dOp::attachInterface<AvgPoolGradient>(*context);
  aten::AdaptiveAvgPool2dOp::attachInterface<AdaptivePoolGradient>(*context);
}
