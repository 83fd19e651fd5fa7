// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/memory/Passes.h"

#include "dialects/exec/Exec.h"

#include <unordered_map>

namespace shardc::memory {
#define GEN_PASS_DEF_MERGEKERNELS
#include "lowering/memory/Passes.h.inc"
} // namespace shardc::memory

using namespace mlir;
using namespace shardc;

namespace {

/// What a kernel says about itself, but for its name.
DictionaryAttr attributesOf(func::FuncOp kernel) {
  NamedAttrList attributes(kernel->getAttrDictionary());
  attributes.erase(kernel.getSymNameAttrName());
  return attributes.getDictionary(kernel.getContext());
}

/// Equal for kernels that are equal. (Their text would do, but what is printed of a program depends
/// on options of MLIR's.)
llvm::hash_code hashOf(func::FuncOp kernel) {
  llvm::hash_code hash = llvm::hash_value(attributesOf(kernel).getAsOpaquePointer());
  kernel.getBody().walk([&](Operation *op) {
    hash = llvm::hash_combine(hash, op->getName(), op->getAttrDictionary(), op->getResultTypes());
  });
  return hash;
}

bool areEqual(func::FuncOp a, func::FuncOp b) {
  return attributesOf(a) == attributesOf(b) &&
         OperationEquivalence::isRegionEquivalentTo(&a.getBody(), &b.getBody(),
                                                    OperationEquivalence::IgnoreLocations);
}

struct MergeKernels : memory::impl::MergeKernelsBase<MergeKernels> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    std::unordered_map<size_t, SmallVector<func::FuncOp, 1>> different;
    DenseMap<StringAttr, StringAttr> replacement;
    for (auto kernel : llvm::make_early_inc_range(module.getOps<func::FuncOp>())) {
      if (!kernel->hasAttr(exec::kKernelAttr) || kernel.isDeclaration())
        continue;
      ++kernels;
      SmallVector<func::FuncOp, 1> &candidates = different[hashOf(kernel)];
      auto first =
          llvm::find_if(candidates, [&](func::FuncOp one) { return areEqual(one, kernel); });
      if (first == candidates.end()) {
        candidates.push_back(kernel);
        continue;
      }
      replacement[kernel.getSymNameAttr()] = first->getSymNameAttr();
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
