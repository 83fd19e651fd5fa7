// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The tables of runtime/abi/shardrt_program.h, as constants of an LLVM module.

#ifndef SHARDC_LOWERING_ARTIFACT_TABLES_H
#define SHARDC_LOWERING_ARTIFACT_TABLES_H

#include "lowering/artifact/Description.h"

namespace llvm {
class LLVMContext;
class Module;
} // namespace llvm

namespace shardc::artifact {

/// By entry function: what `exec-emit-program` left as attributes of functions.
struct VariantFacts {
  std::string plan; // empty: none
  int64_t arenaBytes = 0;
  int64_t slots = 0;
};

/// What the target says about the artifact.
struct TargetFacts {
  /// Constants begin at multiples of it, in bytes.
  int64_t alignment = 64;
  /// Entries of the tables that the target's objects define (lowering/target/Backend.h).
  uint32_t images = 0, kernels = 0;
};

/// A module that defines `shardrt_query` and the tables behind it; functions of the program are
/// declared. `lowered` has the attributes of `exec-emit-program`.
std::unique_ptr<llvm::Module> buildTables(llvm::LLVMContext &context, mlir::ModuleOp lowered,
                                          const ProgramDescription &program,
                                          const llvm::StringMap<VariantFacts> &variants,
                                          const TargetFacts &target, llvm::StringRef manifest);

} // namespace shardc::artifact

#endif // SHARDC_LOWERING_ARTIFACT_TABLES_H
