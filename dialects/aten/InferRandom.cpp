// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/aten/Random.h"
#include "dialects/aten/Rules.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

using namespace mlir;

#define GET_OP_CLASSES
#include "dialects/aten/Random.cpp.inc"

namespace shardc::aten {

LogicalResult RandomOp::infer(Inference &inference, Adaptor op) {
  if (failed(inference.checkDynamicList(op.getStaticSize(), op.getSize(), "size")))
    return failure();
  return inference.result(inference.given(op.getStaticSize(), op.getSize()), op.getDtype());
}

LogicalResult RandomOp::verify() {
  StringRef distribution = getDistribution();
  bool isBits = distribution == "bits";
  if (!isBits && distribution != "uniform" && distribution != "normal")
    return emitOpError() << "has no distribution \"" << distribution
                         << "\"; it must be one of \"uniform\", \"normal\", \"bits\"";
  if (isBits ? !getDtype().isInteger(64) : !isa<FloatType>(getDtype()))
    return emitOpError() << "makes " << (isBits ? "i64" : "floats") << ", not " << getDtype();
  for (Value state : {getSeed(), getOffset()})
    if (!shapeOf(state).empty())
      return emitOpError() << "needs a seed and an offset of 0 dims";
  return success();
}

LogicalResult DropoutOp::infer(Inference &inference, Adaptor op) {
  double p = op.getP().convertToDouble();
  if (!(p >= 0 && p <= 1))
    return inference.error("drops with a probability between 0 and 1, not ", p);
  FailureOr<Shape> shape = inference.broadcast({op.getSelf(), op.getMask()});
  if (failed(shape))
    return failure();
  return inference.result(*shape, elementTypeOf(op.getSelf()));
}

} // namespace shardc::aten
