// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/memory/Passes.h"

#include "dialects/exec/Exec.h"
#include "lowering/target/EqualFunctions.h"

namespace shardc::memory {
#define GEN_PASS_DEF_MERGEKERNELS
#include "lowering/memory/Passes.h.inc"
} // namespace shardc::memory

using namespace mlir;
using namespace shardc;

namespace {

struct MergeKernels : memory::impl::MergeKernelsBase<MergeKernels> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    target::EqualFunctions equal;
    DenseMap<StringAttr, StringAttr> replacement;
    for (auto kernel : llvm::make_early_inc_range(module.getOps<func::FuncOp>())) {
      if (!kernel->hasAttr(exec::kKernelAttr) || kernel.isDeclaration())
        continue;
      ++kernels;
      FunctionOpInterface first = equal.firstOf(kernel);
      if (first.getOperation() == kernel)
        continue;
      replacement[kernel.getSymNameAttr()] = first.getNameAttr();
      kernel.erase();
      ++merged;
    }
    module.walk([&](exec::LaunchOp launch) {
      auto it = replacement.find(launch.getKernelAttr().getAttr());
      if (it != replacement.end())
        launch.setKernelAttr(FlatSymbolRefAttr::get(it->second));
    });
  }
};

} // namespace
