// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/aten/Aten.h"

using namespace mlir;

namespace shardc::aten {

static LogicalResult verifyChoice(Operation *op, StringRef name, StringRef value,
                                  ArrayRef<StringRef> choices) {
  if (llvm::is_contained(choices, value))
    return success();
  InFlightDiagnostic diagnostic = op->emitOpError()
                                  << name << " is \"" << value << "\"; it must be one of ";
  llvm::interleaveComma(choices, diagnostic,
                        [&](StringRef choice) { diagnostic << '"' << choice << '"'; });
  return diagnostic;
}

LogicalResult GeluOp::verify() {
  return verifyChoice(*this, "approximate", getApproximate(), {"none", "tanh"});
}

LogicalResult DivOp::verify() {
  return getRoundingMode()
             ? verifyChoice(*this, "rounding_mode", *getRoundingMode(), {"trunc", "floor"})
             : success();
}

LogicalResult DivOp::infer(Inference &inference, Adaptor op) {
  return op.getRoundingMode() ? inferElementwise(inference, op.getOperands())
                              : inferElementwiseFloat(inference, op.getOperands());
}

LogicalResult ToCopyOp::infer(Inference &inference, Adaptor op) {
  return inference.result(inference.sizesOf(op.getSelf()), op.getDtype());
}

LogicalResult BitcastOp::infer(Inference &inference, Adaptor op) {
  return inference.result(inference.sizesOf(op.getSelf()), op.getDtype());
}

LogicalResult BitcastOp::verify() {
  Type from = elementTypeOf(getSelf()), to = getDtype();
  auto width = [](Type type) { return type.isIntOrFloat() ? type.getIntOrFloatBitWidth() : 0; };
  if (width(from) < 8 || width(from) != width(to))
    return emitOpError("reads ") << from << " as " << to << ", which is of another width";
  return success();
}

LogicalResult CopyOp::infer(Inference &inference, Adaptor op) {
  FailureOr<Type> type = inference.sameElementType(op.getOperands());
  Shape shape = inference.sizesOf(op.getSelf()), source = inference.sizesOf(op.getSrc());
  if (failed(type))
    return failure();
  if (shape.size() != source.size())
    return inference.error("needs self and src of one shape: expand src first");
  for (auto [size, other] : llvm::zip_equal(shape, source)) {
    FailureOr<Dim> both = inference.same(size, other, "sizes of self and src");
    if (failed(both))
      return failure();
    size = *both;
  }
  return inference.result(shape, *type);
}

LogicalResult WhereOp::infer(Inference &inference, Adaptor op) {
  FailureOr<Shape> shape = inference.broadcast(op.getOperands());
  FailureOr<Type> type = inference.promote(op.getOperands().drop_front());
  if (failed(shape) || failed(type))
    return failure();
  return inference.result(*shape, *type);
}

LogicalResult MaskedFillOp::infer(Inference &inference, Adaptor op) {
  if (!shapeOf(op.getValue()).empty())
    return inference.error("value must be a 0-dim tensor");
  FailureOr<Shape> shape = inference.broadcast({op.getSelf(), op.getMask()});
  if (failed(shape))
    return failure();
  return inference.result(*shape, elementTypeOf(op.getSelf()));
}

} // namespace shardc::aten
