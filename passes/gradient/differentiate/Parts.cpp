// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Parts and wholes: the cotangent of a part is that of the whole, with zeros around it.

#include "passes/gradient/differentiate/Models.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"

using namespace mlir;
using namespace shardc;

namespace {

/// Index arithmetic, folded where it can be.
struct IndexBuilder {
  OpBuilder &builder;
  Location loc;

  Value value(OpFoldResult x) { return getValueOrCreateConstantIndexOp(builder, loc, x); }
  template <typename Op> OpFoldResult make(OpFoldResult a, OpFoldResult b) {
    return getAsOpFoldResult(builder.createOrFold<Op>(loc, value(a), value(b)));
  }
  OpFoldResult constant(int64_t x) { return builder.getIndexAttr(x); }
  OpFoldResult sub(OpFoldResult a, OpFoldResult b) { return make<arith::SubIOp>(a, b); }
  OpFoldResult mul(OpFoldResult a, OpFoldResult b) { return make<arith::MulIOp>(a, b); }
  OpFoldResult max(OpFoldResult a, OpFoldResult b) { return make<arith::MaxSIOp>(a, b); }
  OpFoldResult min(OpFoldResult a, OpFoldResult b) { return make<arith::MinSIOp>(a, b); }
  /// A bound as Python takes it: from the end where negative, clipped to [0, size].
  OpFoldResult bound(OpFoldResult x, OpFoldResult size) {
    Value negative = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, value(x),
                                           value(constant(0)));
    Value wrapped = builder.createOrFold<arith::AddIOp>(loc, value(x), value(size));
    OpFoldResult position =
        getAsOpFoldResult(builder.createOrFold<arith::SelectOp>(loc, negative, wrapped, value(x)));
    return min(max(position, constant(0)), size);
  }
};

struct SliceGradient : GradientModel<SliceGradient, aten::SliceOp> {
  static LogicalResult run(Derivation &d, aten::SliceOp op) {
    if (!d.grad())
      return success();
    auto dim = static_cast<int64_t>(op.getDim()), step = static_cast<int64_t>(op.getStep());
    int64_t size = aten::shapeOf(op.getSelf())[dim];
    bool isStatic = !ShapedType::isDynamic(size) && !op.getStart() && !op.getEnd();
    Expr grad = d.spread(d.grad(), dim, step);
    if (isStatic) {
      auto bound = [&](int64_t x) { return std::clamp<int64_t>(x < 0 ? x + size : x, 0, size); };
      int64_t start = bound(op.getStaticStart());
      // Behind the last element there may be more zeros than there is room for, or fewer.
      int64_t length = aten::shapeOf(op.getResult())[dim] * step;
      d.add(0, pad(grad, dim, start, size - start - length));
      return success();
    }
    IndexBuilder index{d.builder, d.emit.getLoc()};
    OpFoldResult whole = d.size(op.getSelf(), dim);
    OpFoldResult given =
        op.getStart() ? OpFoldResult(op.getStart()) : index.constant(op.getStaticStart());
    OpFoldResult start = index.bound(given, whole);
    OpFoldResult length = index.mul(d.size(op.getResult(), dim), index.constant(step));
    OpFoldResult room = index.sub(whole, start);
    // The zeros behind the last element that there is no room for.
    OpFoldResult kept = index.min(length, room);
    if (step > 1)
      grad = d.of(d.emit.slice(grad.value, dim, index.constant(0), kept));
    SmallVector<OpFoldResult> before = d.sizes(op.getSelf()), after = before;
    before[dim] = start;
    after[dim] = index.sub(room, kept);
    Type type = grad.elementType();
    d.add(0, d.of(d.emit.cat({d.zeros(before, type).value, grad.value, d.zeros(after, type).value},
                             dim)));
    return success();
  }
};

/// By comparing positions, so that the dim may be sharded.
struct SelectGradient : GradientModel<SelectGradient, aten::SelectOp> {
  static LogicalResult run(Derivation &d, aten::SelectOp op) {
    if (!d.grad())
      return success();
    auto dim = static_cast<int64_t>(op.getDim());
    OpFoldResult size = d.size(op.getSelf(), dim);
    Type i64 = d.builder.getI64Type();
    OpFoldResult at =
        op.getIndex() ? OpFoldResult(op.getIndex()) : d.builder.getIndexAttr(op.getStaticIndex());
    Expr selected = d.scalar(at, i64);
    std::optional<int64_t> fixed = getConstantIntValue(at);
    if (!fixed)
      selected = where(lt(selected, 0), selected + d.scalar(size, i64), selected);
    else if (*fixed < 0)
      selected = selected + d.scalar(size, i64);
    Expr positions = d.positions(size, dim, aten::typeOf(op.getSelf()).getRank(), i64);
    d.add(0, where(eq(positions, selected), unsqueeze(d.grad(), dim), 0));
    return success();
  }
};

struct SplitGradient : GradientModel<SplitGradient, aten::SplitWithSizesOp> {
  static LogicalResult run(Derivation &d, aten::SplitWithSizesOp op) {
    SmallVector<Value> parts;
    bool any = false;
    for (auto [i, part] : llvm::enumerate(op.getParts())) {
      Expr grad = d.grad(i);
      any |= static_cast<bool>(grad);
      parts.push_back(grad ? grad.value : d.zerosLike(part).value);
    }
    if (any)
      d.add(0, d.of(d.emit.cat(parts, op.getDim())));
    return success();
  }
};

struct CatGradient : GradientModel<CatGradient, aten::CatOp> {
  static LogicalResult run(Derivation &d, aten::CatOp op) {
    if (!d.grad())
      return success();
    auto dim = static_cast<int64_t>(op.getDim());
    int64_t rank = d.grad().rank();
    // Vectors of no elements are left out of a concatenation of tensors with more dims.
    SmallVector<unsigned> operands;
    SmallVector<OpFoldResult> sizes;
    for (auto [i, part] : llvm::enumerate(op.getTensors()))
      if (aten::typeOf(part).getRank() == rank) {
        operands.push_back(i);
        sizes.push_back(d.size(part, dim));
      }
    SmallVector<int64_t> fixed;
    SmallVector<Value> dynamic;
    splitMixed(sizes, fixed, dynamic);
    auto split = aten::SplitWithSizesOp::create(d.builder, d.emit.getLoc(), d.grad().value, fixed,
                                                dynamic, dim);
    for (auto [operand, part] : llvm::zip_equal(operands, split.getParts()))
      if (d.needs(operand))
        d.add(operand, d.of(part));
    return success();
  }
};

struct StackGradient : GradientModel<StackGradient, aten::StackOp> {
  static LogicalResult run(Derivation &d, aten::StackOp op) {
    if (!d.grad())
      return success();
    for (auto [i, part] : llvm::enumerate(op.getTensors()))
      if (d.needs(i))
        d.add(i, d.of(aten::SelectOp::create(d.builder, d.emit.getLoc(), d.grad().value,
                                             op.getDim(), static_cast<int64_t>(i), Value())));
    return success();
  }
};

struct PadGradient : GradientModel<PadGradient, aten::ConstantPadNdOp> {
  static LogicalResult run(Derivation &d, aten::ConstantPadNdOp op) {
    if (!d.grad())
      return success();
    SmallVector<int64_t> widths =
        llvm::map_to_vector(op.getPad(), [](int64_t width) { return -width; });
    d.add(0, d.of(aten::ConstantPadNdOp::create(d.builder, d.emit.getLoc(), d.grad().value, widths,
                                                APFloat(0.0))));
    return success();
  }
};

} // namespace

void shardc::attachPartGradients(MLIRContext *context) {
  aten::SliceOp::attachInterface<SliceGradient>(*context);
  aten::SelectOp::attachInterface<SelectGradient>(*context);
  aten::SplitWithSizesOp::attachInterface<SplitGradient>(*context);
  aten::CatOp::attachInterface<CatGradient>(*context);
  aten::StackOp::attachInterface<StackGradient>(*context);
  aten::ConstantPadNdOp::attachInterface<PadGradient>(*context);
}
