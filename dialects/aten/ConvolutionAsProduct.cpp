// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/aten/ConvolutionAsProduct.h"

#include "dialects/aten/Aten.h"
#include "dialects/aten/BuiltSizes.h"

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
    OpFoldResult height = positions(windows[0], sizeOf(input, 2));
    OpFoldResult width = positions(windows[1], sizeOf(input, 3));
    OpFoldResult image = product(height, width);
    OpFoldResult column = product(perGroup, number(windows[0].kernel * windows[1].kernel));

    // A window of one element that visits each is the image itself.
    Value columns = input;
    if (!windows[0].isIdentity() || !windows[1].isIdentity()) {
      auto pair = [&](int64_t Window::*entry) {
        return builder.getDenseI64ArrayAttr({windows[0].*entry, windows[1].*entry});
      };
      columns = WindowsOp::create(builder, loc, input, pair(&Window::kernel), pair(&Window::stride),
                                  pair(&Window::padding), pair(&Window::dilation));
    }
    Value result = getConstantIntValue(groups) == 1
                       ? MatmulOp::create(builder, loc, view(weight, {out, column}),
                                          view(columns, {batch, column, image}))
                       : MatmulOp::create(builder, loc, view(weight, {groups, outOfGroup, column}),
                                          view(columns, {batch, groups, column, image}));
    result = view(result, {batch, out, height, width});
    if (bias)
      result = AddOp::create(builder, loc, result, view(bias, {out, number(1), number(1)}),
                             llvm::APFloat(1.0));
    return result;
  }
};

} // namespace

Value buildConvolutionAsProduct(OpBuilder &builder, Location loc, ArrayRef<Window> windows,
                                Value input, Value weight, Value bias, OpFoldResult groups,
                                OpFoldResult outOfGroup) {
  return Expansion{builder, loc, BuiltSizes(builder, loc)}.run(windows, input, weight, bias, groups,
                                                               outOfGroup);
}

} // namespace shardc::aten
