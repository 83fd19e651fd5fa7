// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/cuda/backend/KernelFacts.h"

#include "dialects/exec/FunctionAttributes.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;

namespace shardc::cuda {

std::vector<KernelFacts> readKernelFacts(gpu::GPUModuleOp kernels) {
  std::vector<KernelFacts> list;
  for (auto function : kernels.getOps<FunctionOpInterface>()) {
    if (!function->hasAttr(gpu::GPUDialect::getKernelFuncAttrName()))
      continue;
    KernelFacts &facts = list.emplace_back();
    facts.name = function.getName().str();
    facts.params = std::max(function.getNumArguments(), kRunParams) - kRunParams;
    if (auto messages = function->getAttrOfType<ArrayAttr>(exec::kMessagesAttr))
      for (auto message : messages.getAsRange<StringAttr>())
        facts.messages.push_back(message.str());
    if (auto bytes = function->getAttrOfType<IntegerAttr>(exec::kSharedBytesAttr))
      facts.sharedBytes = static_cast<uint32_t>(bytes.getInt());
    auto block =
        function->getAttrOfType<DenseI32ArrayAttr>(NVVM::NVVMDialect::getMaxntidAttrName());
    if (auto before = dyn_cast<gpu::GPUFuncOp>(function.getOperation()))
      block = before.getKnownBlockSizeAttr();
    if (block)
      llvm::copy(block.asArrayRef(), facts.block);
  }
  return list;
}

unsigned addMessage(Operation *kernel, StringRef message) {
  SmallVector<Attribute> list;
  if (auto known = kernel->getAttrOfType<ArrayAttr>(exec::kMessagesAttr))
    llvm::append_range(list, known);
  auto text = StringAttr::get(kernel->getContext(), message);
  auto found = llvm::find(list, text);
  if (found != list.end())
    return static_cast<unsigned>(found - list.begin());
  list.push_back(text);
  kernel->setAttr(exec::kMessagesAttr, ArrayAttr::get(kernel->getContext(), list));
  return static_cast<unsigned>(list.size() - 1);
}

} // namespace shardc::cuda
