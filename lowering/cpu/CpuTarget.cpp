// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/cpu/CpuTarget.h"

#include "lowering/cpu/Passes.h"
#include "lowering/host/HostCode.h"
#include "lowering/host/KernelCalls.h"
#include "lowering/host/KernelPipeline.h"

#include "mlir/Pass/PassManager.h"

using namespace mlir;

namespace shardc::cpu {
namespace {

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
    pm.addPass(createCpuExpandSort());
    host::addKernelsToLinalg(pm);
    buildKernelPipeline(pm);
    buildLlvmPipeline(pm);
  }

  std::unique_ptr<target::LaunchLowering> createLaunchLowering(ModuleOp module) const override {
    return host::createKernelCalls(module);
  }

  llvm::Expected<target::TargetCode> serialize(ModuleOp lowered, const target::Target &target,
                                               StringRef name) const override {
    llvm::Expected<target::Processor> processor = hostProcessor(target);
    if (!processor)
      return processor.takeError();
    llvm::Expected<target::ObjectCode> object = host::emitObject(lowered, *processor, name);
    if (!object)
      return object.takeError();
    target::TargetCode code;
    code.objects.push_back(std::move(*object));
    return code;
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
