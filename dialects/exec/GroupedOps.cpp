// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dialects/exec/GroupedOps.h"
#include "dialects/exec/Internal.h"

#include "mlir/IR/OpImplementation.h"

using namespace mlir;
using namespace shardc::exec;

#define GET_OP_CLASSES
#include "dialects/exec/GroupedOps.cpp.inc"

/// Whether one of the last two strides may be 1. That of a dim of one element says nothing.
static bool mayBeMatrix(MemRefType type, bool inRows) {
  SmallVector<int64_t> strides;
  int64_t offset, rank = type.getRank();
  if (failed(type.getStridesAndOffset(strides, offset)))
    return false;
  auto isDense = [&](int64_t dim) { return agree(strides[dim], 1) || type.getDimSize(dim) <= 1; };
  return isDense(rank - 1) || (!inRows && isDense(rank - 2));
}

LogicalResult GroupedGemmOp::verify() {
  MemRefType a = getA().getType(), b = getB().getType(), c = getC().getType(),
             index = getIndex().getType();
  bool sums = sumsOuterProducts();
  if (a.getRank() != 2 || b.getRank() != (sums ? 2 : 3) || (!sums && c.getRank() != 2))
    return emitOpError("has operands of ")
           << a.getRank() << " and " << b.getRank() << " dims for a result of " << c.getRank();
  if (index.getRank() != 1 || !index.getElementType().isSignlessInteger(64))
    return emitOpError("has the index ") << index;
  Type element = c.getElementType();
  if (a.getElementType() != element || b.getElementType() != element)
    return emitOpError("mixes element types");
  if (!isa<FloatType>(element))
    return emitOpError("multiplies floating-point matrices, not ones of ") << element;
  auto same = [](MemRefType x, int64_t i, MemRefType y, int64_t j) {
    return agree(x.getDimSize(i), y.getDimSize(j));
  };
  bool fits =
      sums ? same(a, 0, c, 1) && same(b, 1, c, 2) && same(a, 1, b, 0) && same(index, 0, b, 0)
           : same(a, 0, c, 0) && same(b, 2, c, 1) && same(a, 1, b, 1) && same(index, 0, a, 0);
  if (!fits)
    return emitOpError("has shapes that do not multiply: ")
           << a << ", " << b << " at " << index << " -> " << c;
  for (MemRefType operand : {a, b})
    if (!mayBeMatrix(operand, false))
      return emitOpError("has the operand ") << operand << ", of which neither matrix stride is 1";
  if (!mayBeMatrix(c, true))
    return emitOpError("has the result ") << c << ", whose last stride is not 1";
  return success();
}
