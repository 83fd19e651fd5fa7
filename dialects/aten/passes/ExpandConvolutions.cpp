// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/aten/Aten.h"
#include "dialects/aten/passes/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace shardc::aten {

#define GEN_PASS_DEF_ATENEXPANDCONVOLUTIONS
#include "dialects/aten/passes/Passes.h.inc"

namespace {

using Sizes = SmallVector<OpFoldResult>;

struct Expansion {
  Conv2dOp op;
  OpBuilder builder;
  Location loc;

  explicit Expansion(Conv2dOp op) : op(op), builder(op), loc(op.getLoc()) {}

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

  void run() {
    Value input = op.getInput(), weight = op.getWeight();
    int64_t groups = op.getGroups();
    std::array<Window, 2> windows = op.getWindows();
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
    Value result;
    if (groups == 1) {
      result = MatmulOp::create(builder, loc, view(weight, {out, column}),
                                view(columns, {batch, column, image}));
    } else {
      int64_t whole = shapeOf(weight)[0];
      OpFoldResult outOfGroup = ShapedType::isDynamic(whole)
                                    ? combine<arith::DivSIOp>(out, number(groups))
                                    : number(whole / groups);
      result = MatmulOp::create(builder, loc, view(weight, {number(groups), outOfGroup, column}),
                                view(columns, {batch, number(groups), column, image}));
    }
    result = view(result, {batch, out, height, width});
    if (Value bias = op.getBias())
      result = AddOp::create(builder, loc, result, view(bias, {out, number(1), number(1)}),
                             llvm::APFloat(1.0));
    // What the op's own type knows, the expansion may have lost.
    if (auto type = typeOf(op.getResult()); result.getType() != type)
      result.setType(type);
    op.getResult().replaceAllUsesWith(result);
    op.erase();
  }
};

struct ExpandConvolutions : impl::AtenExpandConvolutionsBase<ExpandConvolutions> {
  void runOnOperation() override {
    SmallVector<Conv2dOp> convolutions;
    getOperation().walk([&](Conv2dOp op) { convolutions.push_back(op); });
    for (Conv2dOp op : convolutions)
      if (llvm::any_of(shapeOf(op.getWeight()).take_back(2), ShapedType::isDynamic)) {
        op.emitOpError("cannot be lowered: the height and width of its kernel are not known");
        return signalPassFailure();
      }
    for (Conv2dOp op : convolutions)
      Expansion(op).run();
    expanded += convolutions.size();
  }
};

} // namespace
} // namespace shardc::aten
