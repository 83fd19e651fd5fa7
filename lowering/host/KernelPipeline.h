// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Steps from kernels to code that targets have in common.

#ifndef SHARDC_LOWERING_HOST_KERNELPIPELINE_H
#define SHARDC_LOWERING_HOST_KERNELPIPELINE_H

namespace mlir {
class OpPassManager;
} // namespace mlir

namespace shardc::host {

/// Kernels of aten ops to linalg, for a pass manager of modules.
void addKernelsToLinalg(mlir::OpPassManager &module);
/// Loops over views become loops over the memory behind them, with what they repeat outside, for a
/// pass manager of functions.
void addSimplifiedLoops(mlir::OpPassManager &function);
/// Strided memory and structured control flow become arithmetic and branches, likewise.
void addControlFlow(mlir::OpPassManager &function);

/// MLIR's passes among these, so that a pipeline that was printed (in a crash reproducer) is read
/// again.
void registerKernelPasses();

} // namespace shardc::host

#endif // SHARDC_LOWERING_HOST_KERNELPIPELINE_H
