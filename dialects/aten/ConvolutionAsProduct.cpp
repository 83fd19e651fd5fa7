// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/aten/ConvolutionAsProduct.h"

#include "dialects/aten/BuiltSizes.h"
#include "dialects/aten/Spatial.h"

using namespace mlir;

namespace shardc::aten {

namespace {

struct Expansion {
  OpBuilder &builder;
  Location loc;
  BuiltSizes sizes;

  OpFoldResult number(int64_t value) { return builder.getIndexAttr(value); }

  OpFoldResult sizeOf(Value tensor, int64_t dim) { return sizes.get(sizes.of(tensor, dim)); }

  /// Positions of a window in a dim.
  OpFoldResult positions(const Window &window, OpFoldResult size) {
    return sizes.get(windowPositions(sizes, window, sizes.of(size)));
  }

  OpFoldResult product(OpFoldResult lhs, OpFoldResult rhs) {
    return sizes.get(sizes.mul(sizes.of(lhs), sizes.of(rhs)));
  }

  Value view(Value tensor, ArrayRef<OpFoldResult> sizes) {
    SmallVector<int64_t> shape;
    SmallVector<Value> dynamic;
    dispatchIndexOpFoldResults(sizes, dynamic, shape);
    return ViewOp::create(builder, loc, RankedTensorType::get(shape, elementTypeOf(tensor)), tensor,
                          shape, dynamic);
  }

  Value run(ArrayRef<Window> windows, Value input, Value weight, Value bias, OpFoldResult groups,
            OpFoldResult outOfGroup) {
    OpFoldResult batch = sizeOf(input, 0), out = sizeOf(weight, 0);
    OpFoldResult perGroup = sizeOf(weight, 1);
    SmallVector<OpFoldResult> places = {batch, out};
    OpFoldResult image = number(1), column = perGroup;
    for (auto [dim, window] : llvm::enumerate(windows)) {
      places.push_back(positions(window, sizeOf(input, static_cast<int64_t>(dim) + 2)));
      image = product(image, places.back());
      column = product(column, number(window.kernel));
    }

    // A window of one element that visits each is the image itself.
    Value columns = input;
    if (!llvm::all_of(windows, [](const Window &window) { return window.isIdentity(); }))
      columns = buildWindows(builder, loc, input, windows);
    Value result = getConstantIntValue(groups) == 1
                       ? MatmulOp::create(builder, loc, view(weight, {out, column}),
                                          view(columns, {batch, column, image}))
                       : MatmulOp::create(builder, loc, view(weight, {groups, outOfGroup, column}),
                                          view(columns, {batch, groups, column, image}));
    result = view(result, places);
    if (bias) {
      SmallVector<OpFoldResult> ofChannel(windows.size() + 1, number(1));
      ofChannel.front() = out;
      result = AddOp::create(builder, loc, result, view(bias, ofChannel), llvm::APFloat(1.0));
    }
    return result;
  }
};

} // namespace

Value buildWindows(OpBuilder &builder, Location loc, Value image, ArrayRef<Window> windows) {
  auto list = [&](int64_t Window::*entry) {
    return builder.getDenseI64ArrayAttr(
        llvm::map_to_vector(windows, [&](const Window &window) { return window.*entry; }));
  };
  return WindowsOp::create(builder, loc, image, list(&Window::kernel), list(&Window::stride),
                           list(&Window::padding), list(&Window::dilation));
}

Value buildFold(OpBuilder &builder, Location loc, Value columns, ArrayRef<OpFoldResult> sizes,
                ArrayRef<Window> windows) {
  auto list = [&](int64_t Window::*entry) {
    return builder.getDenseI64ArrayAttr(
        llvm::map_to_vector(windows, [&](const Window &window) { return window.*entry; }));
  };
  SmallVector<int64_t> fixed;
  SmallVector<Value> dynamic;
  dispatchIndexOpFoldResults(sizes, dynamic, fixed);
  return FoldOp::create(builder, loc, columns, builder.getDenseI64ArrayAttr(fixed), dynamic,
                        list(&Window::stride), list(&Window::padding), list(&Window::dilation));
}

Value buildConvolutionAsProduct(OpBuilder &builder, Location loc, ArrayRef<Window> windows,
                                Value input, Value weight, Value bias, OpFoldResult groups,
                                OpFoldResult outOfGroup) {
  return Expansion{builder, loc, BuiltSizes(builder, loc)}.run(windows, input, weight, bias, groups,
                                                               outOfGroup);
}

} // namespace shardc::aten
