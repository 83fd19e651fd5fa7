// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What kernels have beside arithmetic.

#include "dialects/exec/Internal.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::exec;

LogicalResult exec::verifyDenseBuffer(Operation *op, MemRefType type, OperandRange sizes) {
  if (!type.getLayout().isIdentity())
    return op->emitOpError("makes dense row-major buffers only, not ") << type;
  if (sizes.size() != static_cast<size_t>(type.getNumDynamicDims()))
    return op->emitOpError("has ") << sizes.size() << " sizes for a type with "
                                   << type.getNumDynamicDims() << " dynamic dims";
  return success();
}

/// Of an op that only kernels and their loop bodies have.
static LogicalResult verifyNotInEntry(Operation *op) {
  auto function = op->getParentOfType<FunctionOpInterface>();
  if (function && function->hasAttr(kEntryAttr))
    return op->emitOpError("belongs in a kernel, and stands in an entry");
  return success();
}

LogicalResult FrameOp::verify() {
  // Only kernels get it; a loop body takes it from its kernel as an argument.
  if (!(*this)->getParentOp()->hasAttr(kKernelAttr))
    return emitOpError("is in no kernel");
  return success();
}

LogicalResult ScratchOp::verify() {
  if (failed(verifyNotInEntry(*this)))
    return failure();
  return verifyDenseBuffer(*this, getBuffer().getType(), getSizes());
}

LogicalResult FailIfOp::verify() {
  if (getMessage().empty())
    return emitOpError("has an empty message");
  return verifyNotInEntry(*this);
}

LogicalResult CheckRangeOp::verify() {
  if (getMessage().empty())
    return emitOpError("has an empty message");
  Type element = cast<ShapedType>(getIndices().getType()).getElementType();
  if (!isa<IntegerType>(element))
    return emitOpError("checks integers, not ") << element;
  return verifyNotInEntry(*this);
}

LogicalResult ParallelCallOp::verifySymbolUses(SymbolTableCollection &tables) {
  auto body = tables.lookupNearestSymbolFrom<func::FuncOp>(*this, getBodyAttr());
  if (!body)
    return emitOpError("calls '") << getBody() << "', which is no function";
  SmallVector<Type> types(getArgs().getTypes());
  types.append(2, IndexType::get(getContext()));
  if (body.getArgumentTypes() != ArrayRef<Type>(types))
    return emitOpError("passes other types than '") << getBody() << "' takes";
  return success();
}

LogicalResult ParallelOp::verify() {
  Block &block = getBody().front();
  if (block.getNumArguments() != 1 || !block.getArgument(0).getType().isIndex())
    return emitOpError("needs a body with one argument of type index");
  return verifyNotInEntry(*this);
}

ParseResult ParallelOp::parse(OpAsmParser &parser, OperationState &result) {
  OpAsmParser::Argument variable;
  OpAsmParser::UnresolvedOperand count;
  int64_t grain;
  Region *body = result.addRegion();
  variable.type = parser.getBuilder().getIndexType();
  if (parser.parseArgument(variable) || parser.parseKeyword("to") || parser.parseOperand(count) ||
      parser.parseKeyword("grain") || parser.parseInteger(grain) ||
      parser.resolveOperand(count, variable.type, result.operands) ||
      parser.parseOptionalAttrDictWithKeyword(result.attributes) ||
      parser.parseRegion(*body, variable))
    return failure();
  result.addAttribute(getGrainAttrName(result.name), parser.getBuilder().getI64IntegerAttr(grain));
  return success();
}

void ParallelOp::print(OpAsmPrinter &printer) {
  printer << ' ' << getInductionVariable() << " to " << getCount() << " grain " << getGrain()
          << ' ';
  printer.printOptionalAttrDictWithKeyword((*this)->getAttrs(), {getGrainAttrName()});
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}
