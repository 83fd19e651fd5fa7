// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/cpu/CpuTarget.h"

#include "lowering/cpu/Passes.h"
#include "lowering/host/HostCode.h"
#include "lowering/linalg/Passes.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;

namespace shardc::cpu {
namespace {

/// A call of the kernel, with what `cpu-outline-parallel` gave it as arguments: the frame, the
/// location, and of each memref a pointer and what its type does not say.
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

class CpuBackend : public target::Backend {
public:
  StringRef kind() const override { return "cpu"; }
  std::vector<std::string> forms() const override { return {"cpu", "cpu:NAME"}; }

  llvm::Expected<target::Target> resolve(std::optional<StringRef> chip) const override {
    llvm::Expected<target::Processor> processor = target::resolveProcessor(chip.value_or(""));
    if (!processor)
      return processor.takeError();
    target::Target result;
    result.kind = kind();
    result.limits.vectorBytes = processor->vectorBits / 8;
    result.limits.vectorRegisters = processor->vectorRegisters;
    result.properties = {{"triple", processor->triple},
                         {"chip", processor->name},
                         {"features", processor->features}};
    return result;
  }

  llvm::Expected<target::Processor> hostProcessor(const target::Target &target) const override {
    return target::makeProcessor(target.property("triple").str(), target.property("chip").str(),
                                 target.property("features").str());
  }

  void buildKernelTail(OpPassManager &pm) const override {
    pm.addPass(createCpuExpandAttention());
    pm.addPass(createCpuExpandScatter());
    OpPassManager &kernels = pm.nest<func::FuncOp>();
    kernels.addPass(createAtenToLinalg());
    kernels.addPass(createFuseKernelOps());
    buildKernelPipeline(pm);
    buildLlvmPipeline(pm);
  }

  std::unique_ptr<target::LaunchLowering> createLaunchLowering(ModuleOp module) const override {
    return std::make_unique<Calls>(module);
  }

  llvm::Expected<std::vector<target::ObjectCode>>
  serialize(ModuleOp lowered, const target::Target &target, StringRef name) const override {
    llvm::Expected<target::Processor> processor = hostProcessor(target);
    if (!processor)
      return processor.takeError();
    llvm::Expected<target::ObjectCode> object = host::emitObject(lowered, *processor, name);
    if (!object)
      return object.takeError();
    std::vector<target::ObjectCode> objects;
    objects.push_back(std::move(*object));
    return objects;
  }

  llvm::Expected<llvm::json::Object> describe(const target::Target &target) const override {
    llvm::Expected<target::Processor> processor = hostProcessor(target);
    if (!processor)
      return processor.takeError();
    return llvm::json::Object{{"triple", processor->triple},
                              {"cpu", processor->name},
                              {"features", llvm::json::Array(processor->required)}};
  }
};

} // namespace

std::unique_ptr<target::Backend> createBackend() { return std::make_unique<CpuBackend>(); }

} // namespace shardc::cpu
