// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/aten/Aten.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

using namespace mlir;

#include "dialects/aten/Dialect.cpp.inc"
#include "dialects/aten/SchemaInterface.cpp.inc"

// The result's type is printed only where it is not the value's.
static ParseResult parseConstantValue(OpAsmParser &parser, ElementsAttr &value, Type &type) {
  if (parser.parseAttribute(value))
    return failure();
  type = value.getType();
  return failure(succeeded(parser.parseOptionalArrow()) && parser.parseType(type));
}

static void printConstantValue(OpAsmPrinter &printer, Operation *, ElementsAttr value, Type type) {
  printer << value;
  if (value.getType() != type)
    printer << " -> " << type;
}

#define GET_OP_CLASSES
#include "dialects/aten/Ops.cpp.inc"

namespace shardc::aten {

void AtenDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "dialects/aten/Ops.cpp.inc"
      >();
}

Operation *AtenDialect::materializeConstant(OpBuilder &builder, Attribute value, Type type,
                                            Location loc) {
  if (isa<IndexType>(type))
    return arith::ConstantOp::materialize(builder, value, type, loc);
  auto elements = dyn_cast<ElementsAttr>(value);
  if (!elements || !isa<RankedTensorType>(type))
    return nullptr;
  return ConstantOp::create(builder, loc, type, elements);
}

} // namespace shardc::aten
