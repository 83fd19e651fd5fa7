// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/cuda-emulator/Compile.h"
#include "tools/cuda-emulator/ObjectFiles.h"
#include "tools/cuda-emulator/Retarget.h"
#include "tools/cuda-emulator/Settings.h"

#include <llvm/Bitcode/BitcodeReader.h>
#include <llvm/ExecutionEngine/Orc/AbsoluteSymbols.h>
#include <llvm/ExecutionEngine/Orc/CompileUtils.h>
#include <llvm/ExecutionEngine/Orc/JITTargetMachineBuilder.h>
#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/IR/DebugInfo.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Transforms/IPO/AlwaysInliner.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>

#include <algorithm>
#include <set>

namespace shardc::emulator {
namespace {

class Compiler {
public:
  static Compiler &instance() {
    static auto *compiler = new Compiler; // code runs until the process ends
    return *compiler;
  }

  llvm::Error error = llvm::Error::success();
  std::unique_ptr<ObjectFiles> objects; ///< null: code is not kept
  std::unique_ptr<llvm::orc::LLJIT> jit;
  std::unique_ptr<llvm::TargetMachine> target;
  std::set<std::string> known; ///< names of functions that code may call
  unsigned number = 0;

private:
  Compiler() {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    llvm::consumeError(std::move(error));
    error = create();
  }

  llvm::Error create() {
    auto builder = llvm::orc::JITTargetMachineBuilder::detectHost();
    if (!builder)
      return builder.takeError();
    builder->setCodeGenOptLevel(llvm::CodeGenOptLevel::Less);
    auto machine = builder->createTargetMachine();
    if (!machine)
      return machine.takeError();
    target = std::move(*machine);
    if (!settings().codeFolder.empty())
      objects = std::make_unique<ObjectFiles>(
          settings().codeFolder, builder->getCPU() + builder->getFeatures().getString());
    auto makeCompiler = [this](llvm::orc::JITTargetMachineBuilder builder)
        -> llvm::Expected<std::unique_ptr<llvm::orc::IRCompileLayer::IRCompiler>> {
      auto machine = builder.createTargetMachine();
      if (!machine)
        return machine.takeError();
      return std::make_unique<llvm::orc::TMOwningSimpleCompiler>(std::move(*machine),
                                                                 objects.get());
    };
    auto made = llvm::orc::LLJITBuilder()
                    .setJITTargetMachineBuilder(*builder)
                    .setPlatformSetUp(llvm::orc::setUpInactivePlatform)
                    .setCompileFunctionCreator(makeCompiler)
                    .create();
    if (!made)
      return made.takeError();
    jit = std::move(*made);
    llvm::orc::SymbolMap symbols;
    for (const auto &functions : {supportFunctions(), mathFunctions()})
      for (auto [name, address] : functions) {
        known.insert(name);
        symbols[jit->mangleAndIntern(name)] = llvm::orc::ExecutorSymbolDef(
            llvm::orc::ExecutorAddr::fromPtr(address),
            llvm::JITSymbolFlags::Exported | llvm::JITSymbolFlags::Callable);
      }
    return jit->getMainJITDylib().define(llvm::orc::absoluteSymbols(std::move(symbols)));
  }
};

/// Reads the kernel and what it calls, and removes all other functions.
llvm::Error readFunctions(llvm::Module &module, llvm::Function &kernel) {
  std::vector<llvm::Function *> work = {&kernel};
  std::set<llvm::Function *> needed = {&kernel};
  while (!work.empty()) {
    llvm::Function *function = work.back();
    work.pop_back();
    if (llvm::Error error = function->materialize())
      return error;
    for (llvm::Instruction &instruction : llvm::instructions(function))
      for (llvm::Value *operand : instruction.operands())
        if (auto *callee = llvm::dyn_cast<llvm::Function>(operand->stripPointerCasts()))
          if (needed.insert(callee).second)
            work.push_back(callee);
  }
  if (llvm::Error error = module.materializeMetadata())
    return error;
  for (llvm::Function &function : llvm::make_early_inc_range(module))
    if (!needed.count(&function)) {
      function.deleteBody();
      function.replaceAllUsesWith(llvm::PoisonValue::get(function.getType()));
      function.eraseFromParent();
    }
  return llvm::Error::success();
}

/// Code of another processor becomes code of this one.
void retarget(llvm::Module &module, const llvm::TargetMachine &target) {
  module.setTargetTriple(target.getTargetTriple());
  module.setDataLayout(target.createDataLayout());
  for (const char *name : {"llvm.used", "llvm.compiler.used"})
    if (llvm::GlobalVariable *used = module.getNamedGlobal(name))
      used->eraseFromParent();
  for (llvm::Function &function : module) {
    function.setCallingConv(llvm::CallingConv::C);
    for (const char *name : {"target-cpu", "target-features", "denormal-fp-math",
                             "denormal-fp-math-f32", "nvvm.maxntid", "nvvm.reqntid"})
      function.removeFnAttr(name);
    function.setComdat(nullptr);
    if (function.isDeclaration())
      continue;
    function.removeFnAttr(llvm::Attribute::NoInline);
    function.removeFnAttr(llvm::Attribute::OptimizeNone);
    for (llvm::Instruction &instruction : llvm::instructions(function))
      if (auto *call = llvm::dyn_cast<llvm::CallBase>(&instruction)) {
        call->setCallingConv(llvm::CallingConv::C);
        call->removeFnAttr(llvm::Attribute::NoInline);
      }
  }
}

class Passes {
public:
  explicit Passes(llvm::TargetMachine &target) {
    llvm::PassBuilder builder(&target);
    builder.registerModuleAnalyses(modules);
    builder.registerCGSCCAnalyses(components);
    builder.registerFunctionAnalyses(functions);
    builder.registerLoopAnalyses(loops);
    builder.crossRegisterProxies(loops, functions, components, modules);
  }
  void run(llvm::ModulePassManager passes, llvm::Module &module) { passes.run(module, modules); }

private:
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
};

/// Into the kernel goes all that it calls: thread numbers are its arguments then.
void inlineAll(llvm::Module &module, llvm::Function &kernel, llvm::TargetMachine &target) {
  for (llvm::Function &function : module)
    if (!function.isDeclaration() && &function != &kernel) {
      function.setLinkage(llvm::GlobalValue::InternalLinkage);
      function.addFnAttr(llvm::Attribute::AlwaysInline);
    }
  llvm::ModulePassManager passes;
  passes.addPass(llvm::AlwaysInlinerPass(false));
  Passes(target).run(std::move(passes), module);
}

void simplify(llvm::Module &module, llvm::TargetMachine &target) {
  llvm::ModulePassManager passes;
  passes.addPass(llvm::AlwaysInlinerPass(false));
  llvm::FunctionPassManager functions;
  functions.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
  functions.addPass(llvm::EarlyCSEPass(true));
  functions.addPass(llvm::SimplifyCFGPass());
  passes.addPass(llvm::createModuleToFunctionPassAdaptor(std::move(functions)));
  Passes(target).run(std::move(passes), module);
}

void findUnknown(llvm::Module &module, const std::set<std::string> &known, Problems &problems) {
  for (llvm::Function &function : module)
    if (function.isDeclaration() && !function.use_empty() && !function.isIntrinsic() &&
        !known.count(function.getName().str()))
      problems.push_back("the function " + function.getName().str());
}

/// Global variables become visible under names of their own, so that their addresses can be found.
std::vector<std::pair<std::string, uint64_t>> exportVariables(llvm::Module &module) {
  std::vector<std::pair<std::string, uint64_t>> out;
  for (llvm::GlobalVariable &variable : llvm::make_early_inc_range(module.globals())) {
    variable.removeDeadConstantUsers();
    if (variable.use_empty()) {
      variable.eraseFromParent();
      continue;
    }
    if (variable.isDeclaration())
      continue;
    variable.setName("variable" + std::to_string(out.size()));
    variable.setLinkage(llvm::GlobalValue::ExternalLinkage);
    variable.setVisibility(llvm::GlobalValue::DefaultVisibility);
    out.push_back({variable.getName().str(),
                   module.getDataLayout().getTypeAllocSize(variable.getValueType())});
  }
  return out;
}

std::string joined(const std::string &name, Problems problems) {
  std::sort(problems.begin(), problems.end());
  problems.erase(std::unique(problems.begin(), problems.end()), problems.end());
  std::string out = "kernel " + name + " uses what the emulated device does not have: ";
  for (size_t i = 0; i < problems.size(); ++i)
    out += (i ? ", " : "") + problems[i];
  return out;
}

llvm::Expected<std::shared_ptr<const CompiledKernel>> compile(const std::string &bitcode,
                                                              const std::string &name) {
  auto text = [](const std::string &message) {
    return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
  };
  Compiler &compiler = Compiler::instance();
  if (!compiler.jit)
    return text(compiler.error ? llvm::toString(std::move(compiler.error))
                               : "there is no compiler for the host");
  auto context = std::make_unique<llvm::LLVMContext>();
  auto parsed = llvm::getLazyBitcodeModule(llvm::MemoryBufferRef(bitcode, name), *context);
  if (!parsed)
    return parsed.takeError();
  std::unique_ptr<llvm::Module> module = std::move(*parsed);
  llvm::Function *function = module->getFunction(name);
  if (!function)
    return text("there is no kernel " + name);
  if (llvm::Error error = readFunctions(*module, *function))
    return error;
  retarget(*module, *compiler.target);
  inlineAll(*module, *function, *compiler.target);

  auto kernel = std::make_shared<CompiledKernel>();
  kernel->name = name;
  Problems problems;
  findUnknown(*module, compiler.known, problems);
  for (llvm::Function &other : *module)
    if (!other.isDeclaration() && &other != function && !other.use_empty())
      problems.push_back("the recursive function " + other.getName().str());
  llvm::Function *thread = lowerKernel(function, *kernel, problems);
  if (!problems.empty())
    return text(joined(name, problems));
  llvm::StripDebugInfo(*module);
  makeEntry(thread, *kernel);
  std::string broken;
  llvm::raw_string_ostream stream(broken);
  if (llvm::verifyModule(*module, &stream))
    return text("kernel " + name + ", rewritten for the host, is not valid: " + broken);
  simplify(*module, *compiler.target);
  auto variables = exportVariables(*module);

  auto library = compiler.jit->createJITDylib("kernel" + std::to_string(compiler.number++));
  if (!library)
    return library.takeError();
  library->addToLinkOrder(compiler.jit->getMainJITDylib());
  if (llvm::Error error = compiler.jit->addIRModule(
          *library, llvm::orc::ThreadSafeModule(std::move(module), std::move(context))))
    return error;
  auto entry = compiler.jit->lookup(*library, "entry");
  if (!entry)
    return entry.takeError();
  kernel->entry = entry->toPtr<void (*)(void *, uint32_t)>();
  for (auto &[variable, bytes] : variables) {
    auto address = compiler.jit->lookup(*library, variable);
    if (!address)
      return address.takeError();
    kernel->constants.push_back({address->getValue(), address->getValue() + bytes});
  }
  return kernel;
}

} // namespace

std::shared_ptr<const CompiledKernel> compileKernel(const std::string &bitcode,
                                                    const std::string &name, std::string &error) {
  auto kernel = compile(bitcode, name);
  if (kernel)
    return *kernel;
  error = llvm::toString(kernel.takeError());
  return nullptr;
}

} // namespace shardc::emulator
