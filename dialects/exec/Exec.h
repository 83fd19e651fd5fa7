// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The `exec` dialect: the program of one rank as calls of kernels and of the runtime.

#ifndef SHARDC_DIALECTS_EXEC_EXEC_H
#define SHARDC_DIALECTS_EXEC_EXEC_H

#include "dialects/dist/Dist.h"
#include "dialects/exec/FunctionAttributes.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/exec/Dialect.h.inc"

#include "dialects/exec/Enums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/exec/Attributes.h.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/exec/Types.h.inc"

#include "dialects/exec/CollectiveInterface.h.inc"

#define GET_OP_CLASSES
#include "dialects/exec/Ops.h.inc"

namespace shardc::exec {

/// The type that a kernel has for memory of type `type`: without its offset, which is part of the
/// pointer.
mlir::MemRefType kernelArgumentType(mlir::MemRefType type);

} // namespace shardc::exec

#endif // SHARDC_DIALECTS_EXEC_EXEC_H
