// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dialects/exec/CustomOps.h"
#include "dialects/exec/Exec.h"
#include "dialects/exec/GroupedOps.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace shardc::exec;

#include "dialects/exec/Dialect.cpp.inc"

#include "dialects/exec/Enums.cpp.inc"

#include "dialects/exec/CollectiveInterface.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/exec/Attributes.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/exec/Types.cpp.inc"

void ExecDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/exec/Attributes.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/exec/Types.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/exec/Ops.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/exec/CustomOps.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/exec/GroupedOps.cpp.inc"
      >();
}

MemRefType shardc::exec::kernelArgumentType(MemRefType type) {
  auto dense = MemRefType::get(type.getShape(), type.getElementType());
  // Most are; to ask MLIR for the strides of a dense type costs much.
  // Where there are no elements, no stride matters, and which ones are called dense differs.
  if (type.getLayout().isIdentity() || llvm::is_contained(type.getShape(), 0))
    return dense;
  SmallVector<int64_t> strides;
  int64_t offset;
  if (failed(type.getStridesAndOffset(strides, offset)))
    return type;
  SmallVector<int64_t> denseStrides;
  int64_t zero;
  // A stride that is not known may be any, whatever the sizes are.
  if (succeeded(dense.getStridesAndOffset(denseStrides, zero)) && strides == denseStrides &&
      llvm::none_of(strides, ShapedType::isDynamic))
    return dense;
  return MemRefType::get(type.getShape(), type.getElementType(),
                         StridedLayoutAttr::get(type.getContext(), 0, strides));
}
