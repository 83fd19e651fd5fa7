// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Positions at which kernels read memory are checked where an element is computed from them
// (Elements.h). This is for those from which nothing is computed.

#ifndef SHARDC_LOWERING_CUDA_KERNELS_RANGECHECKS_H
#define SHARDC_LOWERING_CUDA_KERNELS_RANGECHECKS_H

#include "lowering/cuda/kernels/FusedKernel.h"

namespace shardc::cuda {

/// Makes a launch at `host` for each check of whose positions it is not known that all of them are
/// read: because results may have no elements, or nobody uses them. It has no blocks where the
/// sizes show, when the kernel runs, that all are read. Fails with a diagnostic.
mlir::LogicalResult emitRangeChecks(FusedKernel &kernel, mlir::OpBuilder &host);

} // namespace shardc::cuda

#endif // SHARDC_LOWERING_CUDA_KERNELS_RANGECHECKS_H
