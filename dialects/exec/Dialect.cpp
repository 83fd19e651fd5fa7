// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dialects/exec/Exec.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace shardc::exec;

#include "dialects/exec/Dialect.cpp.inc"

/// How a collective combines values: a keyword, or nothing for those that do not.
static ParseResult parseCombineKind(OpAsmParser &parser, shardc::dist::ReductionAttr &reduction) {
  StringRef name;
  if (succeeded(parser.parseOptionalKeyword(&name, {"sum", "avg", "min", "max", "prod"})))
    reduction =
        shardc::dist::ReductionAttr::get(parser.getContext(), *shardc::parseReduction(name));
  return success();
}

static void printCombineKind(OpAsmPrinter &printer, Operation *,
                             shardc::dist::ReductionAttr reduction) {
  if (reduction)
    printer << shardc::reductionName(reduction.getValue());
}

#define GET_OP_CLASSES
#include "dialects/exec/Ops.cpp.inc"

void ExecDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "dialects/exec/Ops.cpp.inc"
      >();
}

MemRefType shardc::exec::kernelArgumentType(MemRefType type) {
  SmallVector<int64_t> strides;
  int64_t offset;
  if (failed(type.getStridesAndOffset(strides, offset)))
    return type;
  auto dense = MemRefType::get(type.getShape(), type.getElementType());
  SmallVector<int64_t> denseStrides;
  int64_t zero;
  if (succeeded(dense.getStridesAndOffset(denseStrides, zero)) && strides == denseStrides)
    return dense;
  return MemRefType::get(type.getShape(), type.getElementType(),
                         StridedLayoutAttr::get(type.getContext(), 0, strides));
}

/// Of an op that makes a dense buffer of its type with these sizes.
static LogicalResult verifyDense(Operation *op, MemRefType type, OperandRange sizes) {
  if (!type.getLayout().isIdentity())
    return op->emitOpError("makes dense row-major buffers only, not ") << type;
  if (sizes.size() != static_cast<size_t>(type.getNumDynamicDims()))
    return op->emitOpError("has ") << sizes.size() << " sizes for a type with "
                                   << type.getNumDynamicDims() << " dynamic dims";
  return success();
}

LogicalResult FrameOp::verify() {
  // Only kernels get it; a loop body takes it from its kernel as an argument.
  if (!(*this)->getParentOp()->hasAttr(kKernelAttr))
    return emitOpError("is in no kernel");
  return success();
}

LogicalResult ScratchOp::verify() { return verifyDense(*this, getBuffer().getType(), getSizes()); }

LogicalResult AllocOp::verify() {
  if (failed(verifyDense(*this, getBuffer().getType(), getSizes())))
    return failure();
  if (getOffset() && getSlot())
    return emitOpError("has both an offset and a slot");
  return success();
}

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

LogicalResult GemmOp::verify() {
  MemRefType a = getA().getType(), b = getB().getType(), c = getC().getType();
  int64_t rank = c.getRank();
  if (rank != 2 && rank != 3)
    return emitOpError("has a result of ") << rank << " dims, not 2 or 3";
  if (a.getRank() != rank || b.getRank() != rank)
    return emitOpError("has operands of ")
           << a.getRank() << " and " << b.getRank() << " dims for a result of " << rank;
  Type element = c.getElementType();
  if (a.getElementType() != element || b.getElementType() != element)
    return emitOpError("mixes element types");
  auto agree = [](int64_t x, int64_t y) {
    return ShapedType::isDynamic(x) || ShapedType::isDynamic(y) || x == y;
  };
  if (!agree(a.getDimSize(rank - 2), c.getDimSize(rank - 2)) ||
      !agree(b.getDimSize(rank - 1), c.getDimSize(rank - 1)) ||
      !agree(a.getDimSize(rank - 1), b.getDimSize(rank - 2)))
    return emitOpError("has shapes that do not multiply: ") << a << ", " << b << " -> " << c;
  if (rank == 3 &&
      (!agree(a.getDimSize(0), c.getDimSize(0)) || !agree(b.getDimSize(0), c.getDimSize(0))))
    return emitOpError("has different batch sizes: ") << a << ", " << b << " -> " << c;
  if (getBias()) {
    MemRefType bias = getBias().getType();
    if (bias.getRank() != 1 || bias.getElementType() != element ||
        !agree(bias.getDimSize(0), c.getDimSize(rank - 1)))
      return emitOpError("has a bias of type ") << bias << " for " << c;
  }
  return success();
}

LogicalResult ParallelOp::verify() {
  Block &block = getBody().front();
  if (block.getNumArguments() != 1 || !block.getArgument(0).getType().isIndex())
    return emitOpError("needs a body with one argument of type index");
  return success();
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
