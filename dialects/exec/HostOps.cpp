// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Memory, launches, and the ops of plan functions.

#include "dialects/dist/ReadSizesSyntax.h"
#include "dialects/exec/Internal.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace shardc::exec;

#define GET_OP_CLASSES
#include "dialects/exec/Ops.cpp.inc"

LogicalResult AllocOp::verify() {
  MemRefType type = getBuffer().getType();
  if (failed(verifyDenseBuffer(*this, type, getSizes())))
    return failure();
  if (!type.getElementType().isIntOrFloat())
    return emitOpError("holds numbers, not elements of ") << type.getElementType();
  if (getOffset() && getSlot())
    return emitOpError("has both an offset and a slot");
  if (getSlot() && static_cast<int64_t>(*getSlot()) < 0)
    return emitOpError("has the negative slot ") << static_cast<int64_t>(*getSlot());
  if (!getOffset())
    return success();
  int64_t offset = *getOffset();
  if (offset < 0)
    return emitOpError("has the negative offset ") << offset;
  int64_t bytes = llvm::divideCeil(type.getElementTypeBitWidth(), 8);
  if (offset % bytes)
    return emitOpError("has the offset ")
           << offset << ", which is no multiple of the " << bytes << " bytes of an element";
  return success();
}

ParseResult ReadSizesOp::parse(OpAsmParser &parser, OperationState &state) {
  return shardc::dist::parseReadSizes(parser, state);
}
void ReadSizesOp::print(OpAsmPrinter &printer) { shardc::dist::printReadSizes(*this, printer); }
LogicalResult ReadSizesOp::verify() { return shardc::dist::verifyReadSizes(*this); }

LogicalResult LaunchOp::verifySymbolUses(SymbolTableCollection &tables) {
  Operation *callee = tables.lookupNearestSymbolFrom(*this, getKernelAttr());
  if (!callee || !callee->hasAttr(kKernelAttr))
    return emitOpError("launches '") << getKernel() << "', which is no kernel";
  // A kernel with its binary interface takes what its arguments consist of.
  auto kernel = dyn_cast<func::FuncOp>(callee);
  if (!kernel || kernel->hasAttr(kOutlinedAttr))
    return success();
  SmallVector<Type> types;
  for (Type type : getArgs().getTypes()) {
    auto memref = dyn_cast<MemRefType>(type);
    types.push_back(memref ? kernelArgumentType(memref) : type);
  }
  if (kernel.getArgumentTypes() != ArrayRef<Type>(types))
    return emitOpError("passes other types than '") << getKernel() << "' takes";
  return success();
}

static LogicalResult verifyInPlan(Operation *op) {
  auto function = op->getParentOfType<FunctionOpInterface>();
  if (!function || !function->hasAttrOfType<UnitAttr>(kPlanAttr))
    return op->emitOpError("is in no plan function");
  return success();
}

LogicalResult SetOffsetOp::verify() { return verifyInPlan(*this); }

LogicalResult SetArenaBytesOp::verify() { return verifyInPlan(*this); }
