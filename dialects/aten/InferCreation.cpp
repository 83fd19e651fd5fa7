// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/aten/Aten.h"

using namespace mlir;

namespace shardc::aten {

LogicalResult ConstantOp::infer(Inference &inference, Adaptor op) {
  ArrayRef<int64_t> shape = op.getValue().getShapedType().getShape();
  return inference.result(Shape(shape.begin(), shape.end()), op.getValue().getElementType());
}

OpFoldResult ConstantOp::fold(FoldAdaptor) { return getValue(); }

LogicalResult ArangeOp::infer(Inference &inference, Adaptor op) {
  int64_t start = op.getStaticStart(), end = op.getStaticEnd(), step = op.getStep();
  if (failed(inference.checkDynamic(start, op.getStart(), "start")) ||
      failed(inference.checkDynamic(end, op.getEnd(), "end")))
    return failure();
  if (step == 0)
    return inference.error("step is 0");
  Dim first = inference.given(start, op.getStart()), last = inference.given(end, op.getEnd());
  if (first.number() && last.number()) {
    int64_t span;
    if (llvm::SubOverflow(*last.number(), *first.number(), span))
      return inference.error("is too long");
    if (span != 0 && (span < 0) != (step < 0))
      return inference.error("leads from ", *first.number(), " to ", *last.number(),
                             " by steps of ", step);
    return inference.result({Dim(span / step + (span % step != 0))}, op.getDtype());
  }
  SizeAlgebra &sizes = inference.sizes;
  Dim span = step > 0 ? sizes.sub(last, first) : sizes.sub(first, last);
  // The largest step has no opposite; one less reaches as far.
  int64_t stride = step > 0 ? step : -std::max(step, -std::numeric_limits<int64_t>::max());
  return inference.result({sizes.asSize(sizes.ceilDiv(span, stride))}, op.getDtype());
}

LogicalResult SymSizeOp::infer(Inference &inference, Adaptor op) {
  int64_t rank = typeOf(op.getSelf()).getRank();
  if (op.getDim() < 0 || static_cast<int64_t>(op.getDim()) >= rank)
    return inference.error("dim is ", op.getDim(), ", out of range for a tensor of ", rank,
                           " dims");
  inference.result(IndexType::get(inference.getContext()));
  return success();
}

OpFoldResult SymSizeOp::fold(FoldAdaptor) {
  // On placed types too: the size is the global one.
  int64_t size = typeOf(getSelf()).getDimSize(getDim());
  return ShapedType::isDynamic(size) ? OpFoldResult()
                                     : IntegerAttr::get(IndexType::get(getContext()), size);
}

} // namespace shardc::aten
