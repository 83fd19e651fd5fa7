// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/cuda/backend/Passes.h"
#include "lowering/target/EqualFunctions.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace shardc::cuda {
#define GEN_PASS_DEF_CUDAMERGEFUNCTIONS
#include "lowering/cuda/backend/Passes.h.inc"
} // namespace shardc::cuda

using namespace mlir;
using namespace shardc;

namespace {

struct MergeFunctions : cuda::impl::CudaMergeFunctionsBase<MergeFunctions> {
  void runOnOperation() override {
    for (auto device : getOperation().getOps<gpu::GPUModuleOp>()) {
      target::EqualFunctions equal;
      DenseMap<SymbolRefAttr, SymbolRefAttr> replacement;
      auto reference = [&](StringAttr name) {
        return SymbolRefAttr::get(device.getNameAttr(), FlatSymbolRefAttr::get(name));
      };
      for (auto function : llvm::make_early_inc_range(device.getOps<gpu::GPUFuncOp>())) {
        FunctionOpInterface first = equal.firstOf(function);
        if (first.getOperation() == function)
          continue;
        replacement[reference(function.getNameAttr())] = reference(first.getNameAttr());
        function.erase();
        ++merged;
      }
      getOperation().walk([&](gpu::LaunchFuncOp launch) {
        auto found = replacement.find(launch.getKernel());
        if (found != replacement.end())
          launch.setKernelAttr(found->second);
      });
    }
  }
};

} // namespace
