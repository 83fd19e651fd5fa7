// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef SHARDC_LOWERING_CUDA_SCATTER_SCATTERKERNEL_H
#define SHARDC_LOWERING_CUDA_SCATTER_SCATTERKERNEL_H

#include "dialects/exec/Exec.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace shardc::cuda {

/// The function with the launches that compute `op`, in no module yet; its arguments are the op's
/// operands.
mlir::func::FuncOp buildScatterKernel(exec::ScatterAddOp op);

} // namespace shardc::cuda

#endif // SHARDC_LOWERING_CUDA_SCATTER_SCATTERKERNEL_H
