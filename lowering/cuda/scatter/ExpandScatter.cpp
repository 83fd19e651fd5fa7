// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Adding at computed positions: updates are sorted by the row that they go to, and each element of
// the result then adds its own in order (ScatterKernel.h). Sorts along a dim (SortKernel.h), and
// products of rows with the matrices that they name (GroupedKernel.h).

#include "lowering/cuda/scatter/GroupedKernel.h"
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
    replaceAll<exec::ScatterOp>(shared, cuda::buildScatterKernel);
    replaceAll<exec::SortOp>(shared, cuda::buildSortKernel);
    replaceAll<exec::GroupedGemmOp>(shared, cuda::buildGroupedKernel);
  }

  template <typename Op>
  void replaceAll(host::SharedKernels &shared, func::FuncOp (*build)(Op, ArrayRef<Type>)) {
    SmallVector<Op> ops;
    getOperation().walk([&](Op op) { ops.push_back(op); });
    for (Op op : ops) {
      shared.replace(op, [&](ArrayRef<Type> types) { return build(op, types); });
      ++expanded;
    }
  }
};

} // namespace
