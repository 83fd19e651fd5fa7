// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dialects/exec/CustomOps.h"

#include "dialects/exec/ElementTypes.h"
#include "dialects/exec/Internal.h"

#include "mlir/IR/OpImplementation.h"

using namespace mlir;
using namespace shardc::exec;

#define GET_OP_CLASSES
#include "dialects/exec/CustomOps.cpp.inc"

LogicalResult CallSymbolOp::verify() {
  if (getSymbol().empty())
    return emitOpError("has no symbol");
  if (getTypes().size() != getInputs().size() + getOutputs().size())
    return emitOpError("has ") << getTypes().size() << " element types for "
                               << getInputs().size() + getOutputs().size() << " tensors";
  for (Attribute type : getTypes())
    if (runtimeType(cast<TypeAttr>(type).getValue()) == 0)
      return emitOpError("has a tensor of ") << type << ", which functions in C cannot have";
  for (Value memory : getOperands()) {
    auto type = cast<MemRefType>(memory.getType());
    if (!mayBeDense(type))
      return emitOpError("has the operand ") << type << ", which is not dense";
  }
  return success();
}
