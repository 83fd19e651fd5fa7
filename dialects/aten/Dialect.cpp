// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/aten/Aten.h"
#include "dialects/aten/Custom.h"
#include "dialects/aten/Fourier.h"
#include "dialects/aten/Grouped.h"
#include "dialects/aten/LookupLine.h"
#include "dialects/aten/Neighborhood.h"
#include "dialects/aten/Random.h"
#include "dialects/aten/Rules.h"
#include "dialects/aten/Scans.h"
#include "dialects/aten/Sorting.h"
#include "dialects/aten/Spatial.h"
#include "dialects/aten/Writing.h"
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

// A SymInt: a number, or a value of type index.
static ParseResult parseDynamicIndex(OpAsmParser &parser,
                                     std::optional<OpAsmParser::UnresolvedOperand> &operand,
                                     IntegerAttr &value) {
  OpAsmParser::UnresolvedOperand parsed;
  OptionalParseResult result = parser.parseOptionalOperand(parsed);
  int64_t number = ShapedType::kDynamic;
  if (result.has_value()) {
    if (failed(*result))
      return failure();
    operand = parsed;
  } else if (parser.parseInteger(number)) {
    return failure();
  }
  value = parser.getBuilder().getI64IntegerAttr(number);
  return success();
}

static void printDynamicIndex(OpAsmPrinter &printer, Operation *, Value operand,
                              IntegerAttr value) {
  if (operand)
    printer << operand;
  else
    printer << value.getInt();
}

// Where the first query of causal attention is, if it is not key 0: `first %i`, `first 4`.
static ParseResult parseFirstQuery(OpAsmParser &parser,
                                   std::optional<OpAsmParser::UnresolvedOperand> &operand,
                                   IntegerAttr &value) {
  if (succeeded(parser.parseOptionalKeyword("first")))
    return parseDynamicIndex(parser, operand, value);
  value = parser.getBuilder().getI64IntegerAttr(0);
  return success();
}

static void printFirstQuery(OpAsmPrinter &printer, Operation *op, Value operand,
                            IntegerAttr value) {
  if (!operand && value.getInt() == 0)
    return;
  printer << "first ";
  printDynamicIndex(printer, op, operand, value);
}

// The dims of a tensor that is indexed: `[:, %i, %j]`. Dims after the last indexed one are left
// out.
static ParseResult parseIndexedDims(OpAsmParser &parser,
                                    SmallVectorImpl<OpAsmParser::UnresolvedOperand> &indices,
                                    DenseI64ArrayAttr &at) {
  SmallVector<int64_t> dims;
  int64_t dim = 0;
  auto parseOne = [&]() -> ParseResult {
    if (failed(parser.parseOptionalColon())) {
      if (parser.parseOperand(indices.emplace_back()))
        return failure();
      dims.push_back(dim);
    }
    ++dim;
    return success();
  };
  if (parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Square, parseOne))
    return failure();
  at = parser.getBuilder().getDenseI64ArrayAttr(dims);
  return success();
}

static void printIndexedDims(OpAsmPrinter &printer, Operation *, OperandRange indices,
                             DenseI64ArrayAttr at) {
  printer << '[';
  int64_t dim = 0;
  for (auto [index, position] : llvm::zip(indices, at.asArrayRef())) {
    for (; dim < position; ++dim)
      printer << ":, ";
    printer << index;
    if (++dim <= at.asArrayRef().back())
      printer << ", ";
  }
  printer << ']';
}

#define GET_OP_CLASSES
#include "dialects/aten/Ops.cpp.inc"

namespace shardc::aten {

void AtenDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "dialects/aten/Ops.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/aten/Custom.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/aten/Fourier.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/aten/Grouped.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/aten/Neighborhood.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/aten/Random.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/aten/Scans.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/aten/Spatial.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/aten/Sorting.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/aten/Writing.cpp.inc"
      >();
}

LogicalResult AtenDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  if (attribute.getName() == kLookupLineAttr)
    return LookupLine::verify(op, attribute.getValue());
  return success();
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
