// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/memory/Passes.h"

#include "dialects/exec/Exec.h"

#include "llvm/ADT/StringMap.h"

namespace shardc::memory {
#define GEN_PASS_DEF_MERGEKERNELS
#include "lowering/memory/Passes.h.inc"
} // namespace shardc::memory

using namespace mlir;
using namespace shardc;

namespace {

/// All of a kernel but its name and locations, as text: equal texts are equal kernels.
std::string textOf(func::FuncOp kernel) {
  std::string name = kernel.getName().str();
  kernel.setName("kernel");
  std::string text;
  llvm::raw_string_ostream stream(text);
  kernel->print(stream, OpPrintingFlags().printGenericOpForm().useLocalScope());
  kernel.setName(name);
  return text;
}

struct MergeKernels : memory::impl::MergeKernelsBase<MergeKernels> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    llvm::StringMap<func::FuncOp> first;
    DenseMap<StringAttr, StringAttr> replacement;
    for (auto kernel : llvm::make_early_inc_range(module.getOps<func::FuncOp>())) {
      if (!kernel->hasAttr(exec::kKernelAttr) || kernel.isDeclaration())
        continue;
      ++kernels;
      auto [it, inserted] = first.try_emplace(textOf(kernel), kernel);
      if (inserted)
        continue;
      replacement[kernel.getSymNameAttr()] = it->second.getSymNameAttr();
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
