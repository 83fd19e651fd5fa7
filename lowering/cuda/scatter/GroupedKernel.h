// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef SHARDC_LOWERING_CUDA_SCATTER_GROUPEDKERNEL_H
#define SHARDC_LOWERING_CUDA_SCATTER_GROUPEDKERNEL_H

#include "dialects/exec/GroupedOps.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace shardc::cuda {

/// The function with the launches that compute `op`, in no module yet. `types` are those of its
/// operands, as kernels have them.
mlir::func::FuncOp buildGroupedKernel(exec::GroupedGemmOp op, llvm::ArrayRef<mlir::Type> types);

} // namespace shardc::cuda

#endif // SHARDC_LOWERING_CUDA_SCATTER_GROUPEDKERNEL_H
