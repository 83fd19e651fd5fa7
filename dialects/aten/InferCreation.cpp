// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/aten/Aten.h"

using namespace mlir;

namespace shardc::aten {

LogicalResult ConstantOp::infer(Inference &inference, Adaptor op) {
  return inference.result(op.getValue().getShapedType().getShape(), op.getValue().getElementType());
}

OpFoldResult ConstantOp::fold(FoldAdaptor) { return getValue(); }

LogicalResult ArangeOp::infer(Inference &inference, Adaptor op) {
  int64_t start = op.getStaticStart(), end = op.getStaticEnd(), step = op.getStep();
  if (failed(inference.checkDynamic(start, op.getStart(), "start")) ||
      failed(inference.checkDynamic(end, op.getEnd(), "end")))
    return failure();
  if (step == 0)
    return inference.error("step is 0");
  int64_t size = ShapedType::kDynamic, span;
  if (!ShapedType::isDynamic(start) && !ShapedType::isDynamic(end)) {
    if (llvm::SubOverflow(end, start, span))
      return inference.error("is too long");
    if (span != 0 && (span < 0) != (step < 0))
      return inference.error("leads from ", start, " to ", end, " by steps of ", step);
    size = span / step + (span % step != 0);
  }
  return inference.result({size}, op.getDtype());
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
