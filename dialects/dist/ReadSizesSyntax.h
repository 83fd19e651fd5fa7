// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Syntax and checks of `dist.read_sizes` and `exec.read_sizes`, which read a tensor and memory.
#ifndef SHARDC_DIALECTS_DIST_READSIZESSYNTAX_H
#define SHARDC_DIALECTS_DIST_READSIZESSYNTAX_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"

namespace shardc::dist {

/// `%n:3 = <op> %x at_most 100 : <type>`: as many results as the type has elements.
inline mlir::ParseResult parseReadSizes(mlir::OpAsmParser &parser, mlir::OperationState &state) {
  mlir::OpAsmParser::UnresolvedOperand operand;
  int64_t atMost = 0;
  mlir::Type type;
  llvm::SMLoc place = parser.getCurrentLocation();
  if (parser.parseOperand(operand) || parser.parseKeyword("at_most") ||
      parser.parseInteger(atMost) || parser.parseOptionalAttrDict(state.attributes) ||
      parser.parseColonType(type) || parser.resolveOperand(operand, type, state.operands))
    return mlir::failure();
  auto shaped = llvm::dyn_cast<mlir::ShapedType>(type);
  if (!shaped || !shaped.hasStaticShape() || shaped.getRank() != 1)
    return parser.emitError(place, "reads a list of known length, not ") << type;
  mlir::Builder &builder = parser.getBuilder();
  state.addAttribute("at_most", builder.getI64IntegerAttr(atMost));
  state.types.append(shaped.getDimSize(0), builder.getIndexType());
  return mlir::success();
}

template <typename Op> void printReadSizes(Op op, mlir::OpAsmPrinter &printer) {
  mlir::Value operand = op->getOperand(0);
  printer << ' ' << operand << " at_most " << op.getAtMost();
  printer.printOptionalAttrDict(op->getAttrs(), {"at_most"});
  printer << " : " << operand.getType();
}

template <typename Op> llvm::LogicalResult verifyReadSizes(Op op) {
  auto type = llvm::cast<mlir::ShapedType>(op->getOperand(0).getType());
  if (type.getDimSize(0) != static_cast<int64_t>(op->getNumResults()))
    return op.emitOpError("reads ") << op->getNumResults() << " numbers of " << type;
  return mlir::success();
}

} // namespace shardc::dist

#endif // SHARDC_DIALECTS_DIST_READSIZESSYNTAX_H
