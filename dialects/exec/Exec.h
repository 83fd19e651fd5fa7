// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The `exec` dialect: the program of one rank as calls of kernels and of the runtime.

#ifndef SHARDC_DIALECTS_EXEC_EXEC_H
#define SHARDC_DIALECTS_EXEC_EXEC_H

#include "dialects/dist/Dist.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/exec/Dialect.h.inc"

#define GET_OP_CLASSES
#include "dialects/exec/Ops.h.inc"

namespace shardc::exec {

/// Discardable attributes of functions: see the dialect's description.
constexpr llvm::StringLiteral kEntryAttr = "exec.entry";
constexpr llvm::StringLiteral kKernelAttr = "exec.kernel";
/// On a kernel that has its binary interface (`cpu-outline-parallel`).
constexpr llvm::StringLiteral kOutlinedAttr = "exec.outlined";
/// On calls of kernels: the name that traces and messages have for it.
constexpr llvm::StringLiteral kNameAttr = "exec.name";
/// On arguments of entries: "input", "parameter" or "output", in the order of the manifest.
constexpr llvm::StringLiteral kArgumentAttr = "exec.argument";

/// On arguments of entries before and after buffers are assigned: number among those of its kind,
/// where it is not the order of the arguments (parameters of several entries).
constexpr llvm::StringLiteral kIndexAttr = "exec.index";
/// On entries: bytes of the arena where they are known; else the function that computes offsets
/// from symbols, and the number of offsets. A plan function has `exec.plan` itself.
constexpr llvm::StringLiteral kArenaBytesAttr = "exec.arena_bytes";
constexpr llvm::StringLiteral kPlanAttr = "exec.plan";
constexpr llvm::StringLiteral kSlotsAttr = "exec.slots";
/// On entries: what one rank needs memory for (`exec-account-memory`).
constexpr llvm::StringLiteral kMemoryAttr = "exec.memory";

/// Of modules, for the tables of the artifact: groups and collectives by number; [name, location]
/// of what the entries run.
constexpr llvm::StringLiteral kGroupsAttr = "exec.groups";
constexpr llvm::StringLiteral kCollectivesAttr = "exec.collectives";
constexpr llvm::StringLiteral kOpsAttr = "exec.ops";
/// Of modules: some entry multiplies matrices.
constexpr llvm::StringLiteral kUsesBlasAttr = "exec.uses_blas";

/// The type that a kernel has for memory of type `type`: without its offset, which is part of the
/// pointer.
mlir::MemRefType kernelArgumentType(mlir::MemRefType type);

} // namespace shardc::exec

#endif // SHARDC_DIALECTS_EXEC_EXEC_H
