// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/cuda/backend/DeviceCode.h"

#include "lowering/cuda/backend/KernelFacts.h"
#include "lowering/cuda/backend/Residency.h"
#include "lowering/cuda/backend/Toolkit.h"
#include "runtime/abi/shardrt_program.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/GPU/GPUToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/Bitcode/BitcodeWriter.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Linker/Linker.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Target/TargetOptions.h"
#include "llvm/Transforms/IPO/Internalize.h"

#include <map>

using namespace llvm;

namespace shardc::cuda {
namespace {

constexpr StringLiteral kTriple = "nvptx64-nvidia-cuda";
/// The emulated device is compiled for as the oldest chip is.
const Chip &emulatedChip() { return knownChips().front(); }

Error makeError(const Twine &message) {
  return createStringError(inconvertibleErrorCode(), message);
}

Expected<std::unique_ptr<TargetMachine>> createMachine(const Chip &chip) {
  static bool initialized = [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    return true;
  }();
  (void)initialized;
  std::string message;
  Triple triple(kTriple);
  const llvm::Target *target = TargetRegistry::lookupTarget(triple, message);
  if (!target)
    return makeError("this build of LLVM cannot generate code for " + kTriple + ": " + message);
  TargetOptions options;
  // A product and a sum become one instruction that rounds once, as nvcc does it. Nothing else of
  // IEEE 754 is given up: quotients and roots are rounded correctly, and denormals are kept.
  options.AllowFPOpFusion = FPOpFusion::Fast;
  std::unique_ptr<TargetMachine> machine(
      target->createTargetMachine(triple, chip.name(), "+ptx" + std::to_string(chip.ptx), options,
                                  std::nullopt, std::nullopt, CodeGenOptLevel::Aggressive));
  if (!machine)
    return makeError("cannot make a code generator for " + chip.name());
  return machine;
}

/// The functions of libdevice that the module calls, each with the kernels that do.
std::map<std::string, std::vector<std::string>> missingFunctions(const Module &module) {
  std::map<std::string, std::vector<std::string>> missing;
  for (const Function &function : module)
    if (function.isDeclaration() && function.getName().starts_with("__nv_"))
      for (const User *user : function.users())
        if (auto *call = dyn_cast<CallBase>(user)) {
          std::vector<std::string> &callers = missing[function.getName().str()];
          std::string caller = call->getFunction()->getName().str();
          if (callers.empty() || callers.back() != caller)
            callers.push_back(caller);
        }
  return missing;
}

Error noLibdevice(const std::map<std::string, std::vector<std::string>> &missing,
                  const std::string &why) {
  std::map<std::string, std::vector<std::string>> byKernel;
  for (const auto &[function, callers] : missing)
    for (const std::string &caller : callers)
      byKernel[caller].push_back(function);
  std::string list;
  for (const auto &[kernel, functions] : byKernel)
    list += (list.empty() ? "" : "; ") + ("kernel '" + kernel + "': ") + join(functions, ", ");
  return makeError("these kernels need functions of NVIDIA's libdevice, but " + why + ": " + list +
                   ". " + libdeviceAdvice());
}

/// Takes from libdevice what the module calls.
Error linkLibdevice(Module &module) {
  std::map<std::string, std::vector<std::string>> missing = missingFunctions(module);
  if (missing.empty())
    return Error::success();
  Expected<std::string> path = findLibdevice();
  if (!path)
    return noLibdevice(missing, toString(path.takeError()));
  if (path->empty())
    return noLibdevice(missing, "it was not found");
  auto buffer = MemoryBuffer::getFile(*path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!buffer)
    return makeError("cannot read " + *path + ": " + buffer.getError().message());
  Expected<std::unique_ptr<Module>> library =
      getOwningLazyBitcodeModule(std::move(*buffer), module.getContext());
  if (!library)
    return makeError("cannot read " + *path + ": " + toString(library.takeError()));
  (*library)->setTargetTriple(module.getTargetTriple());
  (*library)->setDataLayout(module.getDataLayout());
  if (Linker::linkModules(module, std::move(*library), Linker::Flags::LinkOnlyNeeded,
                          [](Module &linked, const StringSet<> &names) {
                            internalizeModule(linked, [&](const GlobalValue &value) {
                              return !value.hasName() || !names.contains(value.getName());
                            });
                          }))
    return makeError("cannot link " + *path);
  missing = missingFunctions(module);
  if (!missing.empty())
    return makeError(*path + " lacks " + missing.begin()->first);
  // libdevice asks: denormals are kept.
  module.setModuleFlag(Module::Override, "nvvm-reflect-ftz", 0u);
  return Error::success();
}

/// LLVM's -O3. One pass is left out, which replaces a vector that is read by its elements: what is
/// left of an aligned access is the same as the scalar one beside it then, the two become one, and
/// that one is not aligned.
void optimize(Module &module, TargetMachine &machine) {
  PassInstrumentationCallbacks callbacks;
  callbacks.registerShouldRunOptionalPassCallback(
      [](StringRef pass, Any) { return pass != "VectorCombinePass"; });
  LoopAnalysisManager loops;
  FunctionAnalysisManager functions;
  CGSCCAnalysisManager components;
  ModuleAnalysisManager modules;
  PassBuilder builder(&machine, PipelineTuningOptions(), std::nullopt, &callbacks);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  builder.buildPerModuleDefaultPipeline(OptimizationLevel::O3).run(module, modules);
}

/// Kernels read vectors of shared memory, also where its elements are smaller. An array without
/// elements is the dynamic shared memory, which the launch defines: one for all kernels.
void prepareShared(Module &module) {
  SmallVector<GlobalVariable *> dynamic;
  for (GlobalVariable &shared : module.globals()) {
    if (shared.getAddressSpace() != mlir::NVVM::NVVMMemorySpace::Shared)
      continue;
    shared.setAlignment(Align(kSharedAlignment));
    auto *array = dyn_cast<ArrayType>(shared.getValueType());
    if (array && array->getNumElements() == 0)
      dynamic.push_back(&shared);
  }
  if (dynamic.empty())
    return;
  GlobalVariable *first = dynamic.front();
  first->setInitializer(nullptr);
  first->setLinkage(GlobalValue::ExternalLinkage);
  first->setName(kDynamicSharedSymbol);
  for (GlobalVariable *other : ArrayRef(dynamic).drop_front()) {
    other->replaceAllUsesWith(first);
    other->eraseFromParent();
  }
}

/// The kernels as LLVM IR that is optimised for a chip.
Expected<std::unique_ptr<Module>> optimizedModule(mlir::gpu::GPUModuleOp kernels,
                                                  LLVMContext &context, TargetMachine &machine,
                                                  bool withLibdevice) {
  mlir::registerBuiltinDialectTranslation(*kernels.getContext());
  mlir::registerLLVMDialectTranslation(*kernels.getContext());
  mlir::registerGPUDialectTranslation(*kernels.getContext());
  mlir::registerNVVMDialectTranslation(*kernels.getContext());
  // Loads and stores get the alignment of their types when they are translated.
  kernels->setAttr(mlir::LLVM::LLVMDialect::getDataLayoutAttrName(),
                   mlir::StringAttr::get(kernels->getContext(),
                                         machine.createDataLayout().getStringRepresentation()));
  std::unique_ptr<Module> module = mlir::translateModuleToLLVMIR(kernels, context, "kernels");
  if (!module)
    return makeError("the kernels could not be translated to LLVM IR");
  module->setTargetTriple(machine.getTargetTriple());
  module->setDataLayout(machine.createDataLayout());
  prepareShared(*module);
  std::string message;
  raw_string_ostream stream(message);
  if (verifyModule(*module, &stream))
    return makeError("shardc made LLVM IR for a device that is invalid, which is a mistake of its "
                     "own, please report it: " +
                     message);
  for (Function &function : *module)
    if (!function.isDeclaration()) {
      function.addFnAttr("target-cpu", machine.getTargetCPU());
      function.addFnAttr("target-features", machine.getTargetFeatureString());
      function.addFnAttr(Attribute::NoUnwind);
    }
  if (withLibdevice)
    if (Error error = linkLibdevice(*module))
      return std::move(error);
  optimize(*module, machine);
  return module;
}

Expected<target::ObjectCode> emitPtx(Module &module, TargetMachine &machine) {
  target::ObjectCode text;
  raw_svector_ostream stream(text);
  legacy::PassManager emission;
  if (machine.addPassesToEmitFile(emission, stream, nullptr, CodeGenFileType::AssemblyFile))
    return makeError("this build of LLVM cannot emit PTX");
  emission.run(module);
  return text;
}

/// Kernels that would need local memory to have several blocks on a multiprocessor get as many
/// registers as one block has; `ptx` is what was assembled in the end.
Expected<target::ObjectCode> assembleInRegisters(target::ObjectCode &ptx, const Chip &chip,
                                                 StringRef ptxas) {
  Expected<target::ObjectCode> code = assemble(StringRef(ptx.data(), ptx.size()), chip, ptxas);
  if (!code)
    return code;
  Expected<std::vector<std::string>> kernels =
      kernelsWithFrames(StringRef(code->data(), code->size()));
  if (!kernels)
    return kernels.takeError();
  std::string text(ptx.data(), ptx.size());
  if (dropResidency(text, *kernels) == 0)
    return code;
  ptx.assign(text.begin(), text.end());
  return assemble(text, chip, ptxas);
}

Expected<std::vector<Image>> compileForEmulator(mlir::gpu::GPUModuleOp kernels) {
  Expected<std::unique_ptr<TargetMachine>> machine = createMachine(emulatedChip());
  if (!machine)
    return machine.takeError();
  LLVMContext context;
  Expected<std::unique_ptr<Module>> module =
      optimizedModule(kernels, context, **machine, /*withLibdevice=*/false);
  if (!module)
    return module.takeError();
  std::vector<Image> images(1);
  images[0].format = SHARDRT_IMAGE_BITCODE;
  raw_svector_ostream stream(images[0].bytes);
  WriteBitcodeToFile(**module, stream);
  return images;
}

} // namespace

Expected<std::vector<Image>> compileKernels(mlir::gpu::GPUModuleOp kernels,
                                            const ChipChoice &choice) {
  if (choice.emulated)
    return compileForEmulator(kernels);
  Expected<std::string> ptxas = findPtxas();
  if (!ptxas)
    return ptxas.takeError();
  std::vector<Image> images;
  for (auto [index, chip] : enumerate(choice.chips)) {
    Expected<std::unique_ptr<TargetMachine>> machine = createMachine(chip);
    if (!machine)
      return machine.takeError();
    LLVMContext context;
    Expected<std::unique_ptr<Module>> module =
        optimizedModule(kernels, context, **machine, /*withLibdevice=*/true);
    if (!module)
      return module.takeError();
    Expected<target::ObjectCode> ptx = emitPtx(**module, **machine);
    if (!ptx)
      return ptx.takeError();
    Expected<target::ObjectCode> code = assembleInRegisters(*ptx, chip, *ptxas);
    if (!code)
      return code.takeError();
    images.push_back({SHARDRT_IMAGE_CUBIN, chip.number, std::move(*code)});
    if (!keepsPtx(choice.chips, index))
      continue;
    ptx->push_back('\0');
    images.push_back({SHARDRT_IMAGE_PTX, chip.number, std::move(*ptx)});
  }
  return images;
}

} // namespace shardc::cuda
