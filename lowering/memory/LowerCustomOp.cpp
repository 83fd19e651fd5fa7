// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operators that users have registered: operands and results are dense.

#include "lowering/memory/HostProgram.h"

#include "dialects/aten/Custom.h"
#include "dialects/exec/CustomOps.h"
#include "dialects/exec/ElementTypes.h"

using namespace mlir;

namespace shardc::memory {

/// Each type that functions in C cannot have, by the tensor that has it.
static LogicalResult checkTypes(aten::CustomOp op) {
  LogicalResult result = success();
  auto check = [&](StringRef kind, auto values) {
    for (auto [number, value] : llvm::enumerate(values))
      if (Type type = aten::elementTypeOf(value); exec::runtimeType(type) == 0)
        result = op.emitOpError() << "'" << op.getTarget() << "' has " << kind << " " << number
                                  << " of element type " << type
                                  << ", which functions in C cannot have";
  };
  check("operand", op.getOperands());
  check("result", op.getResults());
  return result;
}

LogicalResult lowerCustomOp(HostProgram &program, Operation *op) {
  auto custom = cast<aten::CustomOp>(op);
  if (failed(checkTypes(custom)))
    return failure();
  Location loc = op->getLoc();
  IndexMath math = program.math(loc);
  OpBuilder &b = program.builder;
  SmallVector<Value> inputs, outputs;
  SmallVector<Type> types;
  for (Value operand : custom.getOperands()) {
    inputs.push_back(toMemref(math, program.dense(loc, program.view(operand))));
    types.push_back(aten::elementTypeOf(operand));
  }
  for (OpResult result : custom.getResults()) {
    FailureOr<Sizes> sizes = program.resultSizes(op, result.getResultNumber());
    if (failed(sizes))
      return failure();
    StridedView target = program.destination(result, *sizes, /*mustBeDense=*/true);
    program.views[result] = target;
    outputs.push_back(toMemref(math, target));
    types.push_back(aten::elementTypeOf(result));
  }
  if (llvm::all_of(custom.getResults(),
                   [&](Value result) { return hasNoElements(program.sizesOf(result)); }))
    return success();
  exec::CallSymbolOp::create(b, loc, custom.getSymbolAttr(), inputs, outputs,
                             b.getTypeArrayAttr(types), custom.getLibraryAttr(),
                             custom.getArgumentsAttr(), custom.getTargetAttr());
  return success();
}

} // namespace shardc::memory
