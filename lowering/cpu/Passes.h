// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Passes from outlined kernels to LLVM's dialect, for CPUs.

#ifndef SHARDC_LOWERING_CPU_PASSES_H
#define SHARDC_LOWERING_CPU_PASSES_H

#include "dialects/interfaces/PassStatistic.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

namespace shardc::cpu {

#define GEN_PASS_DECL
#include "lowering/cpu/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "lowering/cpu/Passes.h.inc"

/// Kernels on linalg to loops over memory.
void buildKernelPipeline(mlir::OpPassManager &pm);
/// A module of kernels as loops, and of entries, to LLVM's dialect.
void buildLlvmPipeline(mlir::OpPassManager &pm);
void registerPipelines();

} // namespace shardc::cpu

#endif // SHARDC_LOWERING_CPU_PASSES_H
