// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/linalg/SpatialLoops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace shardc {

Value IndexBuilder::constant(int64_t value) const {
  return arith::ConstantIndexOp::create(b, loc, value);
}
Value IndexBuilder::of(OpFoldResult size) const {
  return getValueOrCreateConstantIndexOp(b, loc, size);
}
Value IndexBuilder::add(Value lhs, Value rhs) const {
  return arith::AddIOp::create(b, loc, lhs, rhs);
}
Value IndexBuilder::sub(Value lhs, Value rhs) const {
  return arith::SubIOp::create(b, loc, lhs, rhs);
}
Value IndexBuilder::mul(Value lhs, Value rhs) const {
  return arith::MulIOp::create(b, loc, lhs, rhs);
}
Value IndexBuilder::min(Value lhs, Value rhs) const {
  return arith::MinSIOp::create(b, loc, lhs, rhs);
}
Value IndexBuilder::max(Value lhs, Value rhs) const {
  return arith::MaxSIOp::create(b, loc, lhs, rhs);
}
Value IndexBuilder::floorDiv(Value lhs, Value rhs) const {
  return arith::FloorDivSIOp::create(b, loc, lhs, rhs);
}
Value IndexBuilder::ceilDiv(Value lhs, Value rhs) const {
  return arith::CeilDivSIOp::create(b, loc, lhs, rhs);
}

Value IndexBuilder::start(const aten::Window &window, Value position) const {
  return sub(mul(position, constant(window.stride)), constant(window.padding));
}

Value IndexBuilder::positions(const aten::Window &window, Value size, bool ceil) const {
  Value stride = constant(window.stride), one = constant(1);
  Value room = add(size, constant(2 * window.padding - window.extent()));
  if (!ceil)
    return add(floorDiv(room, stride), one);
  Value last = ceilDiv(room, stride);
  Value isInside = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, mul(last, stride),
                                         add(size, constant(window.padding)));
  return arith::SelectOp::create(b, loc, isInside, add(last, one), last);
}

Span clip(const IndexBuilder &index, const aten::Window &window, Value position, Value size) {
  Value start = index.start(window, position), zero = index.constant(0);
  Value step = index.constant(window.dilation);
  Value outside = index.max(index.sub(zero, start), zero);
  Value skipped = index.mul(index.ceilDiv(outside, step), step);
  Value end = index.min(index.add(start, index.constant(window.extent())), size);
  return {index.add(start, skipped), end, window.dilation};
}

SmallVector<Value>
overSpans(OpBuilder &b, Location loc, ArrayRef<Span> spans, ValueRange initial,
          llvm::function_ref<SmallVector<Value>(OpBuilder &, ArrayRef<Value>, ValueRange)> body) {
  SmallVector<Value> at;
  auto loop = [&](auto &self, OpBuilder &builder, ValueRange state) -> SmallVector<Value> {
    if (at.size() == spans.size())
      return body(builder, at, state);
    const Span &span = spans[at.size()];
    Value step = arith::ConstantIndexOp::create(builder, loc, span.step);
    return SmallVector<Value>(
        scf::ForOp::create(builder, loc, span.begin, span.end, step, state,
                           [&](OpBuilder &inner, Location, Value index, ValueRange before) {
                             at.push_back(index);
                             scf::YieldOp::create(inner, loc, self(self, inner, before));
                             at.pop_back();
                           })
            .getResults());
  };
  return loop(loop, b, initial);
}

TensorBuilder::Sizes spatialSizes(const TensorBuilder &tensor, Value result, Value source,
                                  size_t spatial, llvm::function_ref<OpFoldResult(size_t)> count) {
  TensorBuilder::Sizes sizes = tensor.sizesOf(source), all;
  ArrayRef<int64_t> shape = cast<RankedTensorType>(result.getType()).getShape();
  for (auto [i, size] : llvm::enumerate(shape)) {
    if (!ShapedType::isDynamic(size))
      all.push_back(tensor.builder.getIndexAttr(size));
    else if (i + spatial < shape.size())
      all.push_back(sizes[i]);
    else
      all.push_back(count(i + spatial - shape.size()));
  }
  return all;
}

} // namespace shardc
