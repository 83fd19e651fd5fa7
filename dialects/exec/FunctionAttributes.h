// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Discardable attributes of functions, their arguments, calls and modules. ExecBase.td says what
// each means; FunctionAttributes.cpp verifies them, and refuses any other that begins with `exec.`.

#ifndef SHARDC_DIALECTS_EXEC_FUNCTIONATTRIBUTES_H
#define SHARDC_DIALECTS_EXEC_FUNCTIONATTRIBUTES_H

#include "llvm/ADT/StringRef.h"

namespace shardc::exec {

constexpr llvm::StringLiteral kEntryAttr = "exec.entry";
constexpr llvm::StringLiteral kKernelAttr = "exec.kernel";
/// On a kernel over memory: the numbers of the arguments that it writes, its destinations. It
/// writes all elements of each, reads none before that, and writes nothing else
/// (`exec-verify-kernels`). A destination without elements is not among them.
constexpr llvm::StringLiteral kWritesAttr = "exec.writes";
/// On a kernel: the numbers of the destinations that it reads as well, each element before it is
/// written and for elements at the same place only. On an entry, as a unit: results that are new
/// values of arguments (`exec.updates`) are in the memory of the old ones.
constexpr llvm::StringLiteral kInPlaceAttr = "exec.in_place";
/// On arguments of entries that are outputs: the number of the argument whose new value it is.
constexpr llvm::StringLiteral kUpdatesAttr = "exec.updates";
/// On a kernel that has its binary interface (`cpu-outline-parallel`).
constexpr llvm::StringLiteral kOutlinedAttr = "exec.outlined";
/// On functions of a device: the messages that it may record as the run's failure, by number, and
/// the dynamic shared memory that each of its blocks has.
constexpr llvm::StringLiteral kMessagesAttr = "exec.messages";
constexpr llvm::StringLiteral kSharedBytesAttr = "exec.shared_bytes";
/// On calls of kernels: the name that traces and messages have for it.
constexpr llvm::StringLiteral kNameAttr = "exec.name";
/// On arguments of entries: an ArgumentKindAttr, in the order of the manifest.
constexpr llvm::StringLiteral kArgumentAttr = "exec.argument";
/// On arguments of entries before and after buffers are assigned: number among those of its kind,
/// where it is not the order of the arguments (parameters of several entries).
constexpr llvm::StringLiteral kIndexAttr = "exec.index";
/// On arguments of entries with dynamic dims: a list of `dist.extents`, one for each dim.
constexpr llvm::StringLiteral kExtentsAttr = "exec.extents";
/// On entries: bytes of the arena where they are known; else the function that computes offsets
/// from symbols, and the number of offsets. A plan function has `exec.plan` itself, as a unit.
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
/// [library, symbol, op] of the functions that the program calls and that are not made here.
constexpr llvm::StringLiteral kLibrariesAttr = "exec.libraries";
/// Of modules: some entry multiplies matrices.
constexpr llvm::StringLiteral kUsesBlasAttr = "exec.uses_blas";
/// Of modules: what the manifest says about the program (`exec-describe-program`).
constexpr llvm::StringLiteral kProgramAttr = "exec.program";

} // namespace shardc::exec

#endif // SHARDC_DIALECTS_EXEC_FUNCTIONATTRIBUTES_H
