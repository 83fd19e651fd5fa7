// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/cuda/backend/CudaTarget.h"

#include "lowering/cuda/attention/Passes.h"
#include "lowering/cuda/backend/DeviceCode.h"
#include "lowering/cuda/backend/KernelFacts.h"
#include "lowering/cuda/backend/Passes.h"
#include "lowering/cuda/backend/Toolkit.h"
#include "lowering/cuda/core/Chips.h"
#include "lowering/cuda/scatter/Passes.h"
#include "lowering/host/HostCode.h"
#include "lowering/host/KernelCalls.h"
#include "lowering/host/KernelPipeline.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/GPU/GPUToLLVMIRTranslation.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/Triple.h"

using namespace mlir;

namespace shardc::cuda {
namespace {

constexpr StringLiteral kChip = "chip";

/// Numbers of an H100; they differ little from chip to chip in what they decide.
target::Limits deviceLimits() {
  target::Limits limits;
  limits.vectorBytes = 16;
  limits.vectorRegisters = 64;
  // What cuBLAS and vector accesses like best.
  limits.bufferAlignment = 256;
  // A row of a temporary is computed by one block, from registers or shared memory, or again in
  // each of several passes; what no dim divides is work of one block.
  limits.temporaryElements = 65536;
  limits.serialElements = 4096;
  limits.taskElements = 4096;
  limits.togetherRows = int64_t{1} << 40; // a thread finds its matrix itself
  limits.launchNs = 3000;
  limits.tensorNs = 1500;
  limits.copyBytesPerNs = 2800;
  return limits;
}

class CudaBackend : public target::Backend {
public:
  StringRef kind() const override { return "cuda"; }
  std::vector<std::string> forms() const override {
    return {"cuda", "cuda:sm_80,sm_90,...", "cuda:emulated"};
  }

  llvm::Expected<target::Target> resolve(std::optional<StringRef> chip) const override {
    ChipChoice choice = chooseChips(chip.value_or("").str());
    if (!choice.problem.empty())
      return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                     "target 'cuda': " + choice.problem);
    return target::Target{kind().str(), deviceLimits(), {{kChip.str(), choice.text()}}};
  }

  llvm::Error checkTools(const target::Target &target) const override {
    if (chooseChips(target.property(kChip).str()).emulated)
      return llvm::Error::success();
    return findPtxas().takeError();
  }

  /// The host program computes sizes and asks for launches: it needs nothing that some machines of
  /// its architecture lack.
  llvm::Expected<target::Processor> hostProcessor(const target::Target &) const override {
    llvm::Triple triple(llvm::sys::getDefaultTargetTriple());
    return target::resolveProcessor(triple.isX86() ? "x86-64" : "generic");
  }

  void buildKernelTail(OpPassManager &pm) const override {
    pm.addPass(createCudaEmbedConstants());
    pm.addPass(createCudaExpandAttention());
    pm.addPass(createCudaExpandScatter());
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
    // The host's part leaves the kernels out.
    registerGPUDialectTranslation(*lowered.getContext());
    llvm::Expected<target::ObjectCode> host = host::emitObject(lowered, *processor, name);
    if (!host)
      return host.takeError();
    target::TargetCode code;
    code.objects.push_back(std::move(*host));
    auto kernels = lowered.lookupSymbol<gpu::GPUModuleOp>(kKernelModule);
    if (!kernels)
      return code;
    code.kernels = static_cast<uint32_t>(readKernelFacts(kernels).size());
    if (code.kernels == 0)
      return code;
    ChipChoice choice = chooseChips(target.property(kChip).str());
    if (!choice.problem.empty())
      return llvm::createStringError(llvm::inconvertibleErrorCode(), choice.problem);
    llvm::Expected<std::vector<Image>> images = compileKernels(kernels, choice);
    if (!images)
      return images.takeError();
    code.images = static_cast<uint32_t>(images->size());
    llvm::Expected<target::ObjectCode> tables = emitTables(kernels, *images, *processor);
    if (!tables)
      return tables.takeError();
    code.objects.push_back(std::move(*tables));
    return code;
  }

  llvm::Expected<llvm::json::Object> describe(const target::Target &target) const override {
    llvm::Expected<target::Processor> processor = hostProcessor(target);
    if (!processor)
      return processor.takeError();
    ChipChoice choice = chooseChips(target.property(kChip).str());
    if (!choice.problem.empty())
      return llvm::createStringError(llvm::inconvertibleErrorCode(), choice.problem);
    llvm::json::Array chips;
    for (const Chip &chip : choice.chips)
      chips.push_back(chip.name());
    return llvm::json::Object{{"triple", processor->triple},
                              {"cpu", processor->name},
                              {"features", llvm::json::Array(processor->required)},
                              {"chips", std::move(chips)},
                              {"emulated", choice.emulated}};
  }
};

} // namespace

std::unique_ptr<target::Backend> createBackend() { return std::make_unique<CudaBackend>(); }

} // namespace shardc::cuda
