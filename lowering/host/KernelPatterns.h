// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Conversion to LLVM's dialect of what kernels that have their binary interface ask of the runtime.

#ifndef SHARDC_LOWERING_HOST_KERNELPATTERNS_H
#define SHARDC_LOWERING_HOST_KERNELPATTERNS_H

#include "lowering/host/GlobalPool.h"

#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/IR/PatternMatch.h"

namespace shardc::host {

/// The frame: first argument of the function around `op`, which has been converted.
mlir::Value kernelFrame(mlir::Operation *op);
/// The location of the launch: the second argument.
mlir::Value kernelLocation(mlir::Operation *op);

/// `exec.fail_if`, `exec.frame` and `exec.scratch` become calls of services. Strings go to `pool`,
/// which outlives the conversion.
void populateKernelPatterns(const mlir::LLVMTypeConverter &converter, GlobalPool &pool,
                            mlir::RewritePatternSet &patterns);

} // namespace shardc::host

#endif // SHARDC_LOWERING_HOST_KERNELPATTERNS_H
