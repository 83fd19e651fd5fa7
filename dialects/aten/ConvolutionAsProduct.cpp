// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/aten/ConvolutionAsProduct.h"

#include "dialects/aten/Aten.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace shardc::aten {

namespace {

struct Expansion {
  OpBuilder &builder;
  Location loc;

  OpFoldResult number(int64_t value) { return builder.getIndexAttr(value); }

  OpFoldResult sizeOf(Value tensor, int64_t dim) {
    int64_t size = shapeOf(tensor)[dim];
    if (!ShapedType::isDynamic(size))
      return number(size);
    return SymSizeOp::create(builder, loc, builder.getIndexType(), tensor, dim).getResult();
  }

  template <typename Op> OpFoldResult combine(OpFoldResult lhs, OpFoldResult rhs) {
    auto value = [&](OpFoldResult size) -> Value {
      if (std::optional<int64_t> constant = getConstantIntValue(size))
        return arith::ConstantIndexOp::create(builder, loc, *constant);
      return cast<Value>(size);
    };
    return Op::create(builder, loc, value(lhs), value(rhs)).getResult();
  }

  /// Positions of a window in a dim, as index arithmetic where its size is not known.
  OpFoldResult positions(const Window &window, OpFoldResult size) {
    if (std::optional<int64_t> constant = getConstantIntValue(size))
      return number(window.positions(*constant));
    OpFoldResult room =
        combine<arith::AddIOp>(size, number(2 * window.padding - window.extent() + window.stride));
    return combine<arith::DivSIOp>(room, number(window.stride));
  }

  OpFoldResult product(OpFoldResult lhs, OpFoldResult rhs) {
    std::optional<int64_t> a = getConstantIntValue(lhs), b = getConstantIntValue(rhs);
    if (a && b)
      return number(*a * *b);
    if (a == 1)
      return rhs;
    if (b == 1)
      return lhs;
    return combine<arith::MulIOp>(lhs, rhs);
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
  return Expansion{builder, loc}.run(windows, input, weight, bias, groups, outOfGroup);
}

} // namespace shardc::aten
