// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/host/KernelCalls.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Transforms/DialectConversion.h"

using namespace mlir;

namespace shardc::host {
namespace {

class Calls : public target::LaunchLowering {
public:
  explicit Calls(ModuleOp module) {
    for (auto function : module.getOps<LLVM::LLVMFuncOp>())
      kernels[function.getName()] = function;
  }

  LogicalResult emit(const target::LaunchSite &site, ConversionPatternRewriter &b) override {
    exec::LaunchOp op = site.op;
    LLVM::LLVMFuncOp kernel = kernels.lookup(op.getKernel());
    if (!kernel)
      return b.notifyMatchFailure(op, "launches a kernel that has not been converted");
    SmallVector<Value> operands{site.frame, site.location};
    for (const target::LaunchArgument &argument : site.arguments) {
      operands.push_back(argument.value);
      llvm::append_range(operands, argument.sizes);
      llvm::append_range(operands, argument.strides);
    }
    LLVM::CallOp::create(b, op.getLoc(), kernel, operands);
    return success();
  }

private:
  llvm::StringMap<LLVM::LLVMFuncOp> kernels;
};

} // namespace

std::unique_ptr<target::LaunchLowering> createKernelCalls(ModuleOp module) {
  return std::make_unique<Calls>(module);
}

} // namespace shardc::host
