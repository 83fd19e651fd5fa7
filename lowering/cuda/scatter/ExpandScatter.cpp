// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Adding at computed positions: updates are sorted by the row that they go to, and each element of
// the result then adds its own in order (ScatterKernel.h). Sorts along a dim (SortKernel.h).

#include "dialects/exec/GroupedOps.h"
#include "lowering/cuda/scatter/Passes.h"
#include "lowering/cuda/scatter/ScatterKernel.h"
#include "lowering/cuda/scatter/SortKernel.h"
#include "lowering/host/SharedKernels.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace shardc::cuda {
#define GEN_PASS_DEF_CUDAEXPANDSCATTER
#include "lowering/cuda/scatter/Passes.h.inc"
} // namespace shardc::cuda

using namespace mlir;
using namespace shardc;

namespace {

struct CudaExpandScatter : cuda::impl::CudaExpandScatterBase<CudaExpandScatter> {
  void runOnOperation() override {
    host::SharedKernels shared(getOperation());
    SmallVector<exec::ScatterOp> ops;
    getOperation().walk([&](exec::ScatterOp op) { ops.push_back(op); });
    for (exec::ScatterOp op : ops) {
      shared.replace(op, [&](ArrayRef<Type> types) { return cuda::buildScatterKernel(op, types); });
      ++expanded;
    }
    SmallVector<exec::SortOp> sorts;
    getOperation().walk([&](exec::SortOp op) { sorts.push_back(op); });
    for (exec::SortOp op : sorts) {
      shared.replace(op, [&](ArrayRef<Type> types) { return cuda::buildSortKernel(op, types); });
      ++expanded;
    }
    getOperation().walk([&](exec::GroupedGemmOp op) {
      op.emitError("products of rows with the matrices that they name (grouped_mm, experts that "
                   "are looked up) have no kernel for CUDA devices yet; compile for \"cpu\"");
      signalPassFailure();
    });
  }
};

} // namespace
