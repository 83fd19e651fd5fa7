// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/host/HostCode.h"

#include "dialects/exec/Exec.h"
#include "lowering/host/Emission.h"
#include "lowering/host/MaskedStores.h"

#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"

#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/Scalar/LoopUnrollPass.h"

using namespace llvm;

namespace shardc::host {
namespace {

/// For the processor, and without what only programs need that throw or trap.
void setTargetAttributes(Module &code, const target::Processor &processor) {
  for (Function &function : code) {
    if (function.isDeclaration())
      continue;
    function.addFnAttr("target-cpu", processor.name);
    function.addFnAttr("target-features", processor.features);
    function.addFnAttr("prefer-vector-width", std::to_string(processor.vectorBits));
    function.addFnAttr("frame-pointer", "none");
    function.addFnAttr(Attribute::NoUnwind);
  }
}

/// Unrolls less than LLVM would, which unrolls a loop of up to 300 instructions wholly, or by what
/// the processor's loop buffer holds. Loops of kernels are vectorised and interleaved by then; more
/// of the same makes code that is up to five times as large, takes as much longer to compile, and
/// runs no faster.
void unrollModestly(PassBuilder &builder) {
  builder.registerVectorizerEndEPCallback([](FunctionPassManager &passes, OptimizationLevel) {
    passes.addPass(LoopUnrollPass(
        LoopUnrollOptions(/*OptLevel=*/2).setFullUnrollMaxCount(4).setRuntime(false)));
  });
}

} // namespace

Expected<target::ObjectCode> emitObject(Module &module, const target::Processor &processor) {
  Expected<std::unique_ptr<TargetMachine>> created = target::createTargetMachine(processor);
  if (!created)
    return created.takeError();
  TargetMachine &machine = **created;
  setTargetAttributes(module, processor);
  module.setTargetTriple(machine.getTargetTriple());
  module.setDataLayout(machine.createDataLayout());
  std::string message;
  raw_string_ostream messageStream(message);
  if (verifyModule(module, &messageStream))
    return createStringError(
        inconvertibleErrorCode(),
        "shardc made LLVM IR that is invalid, which is a mistake of its own, please report it: " +
            message);

  PipelineTuningOptions tuning;
  tuning.LoopVectorization = true;
  tuning.SLPVectorization = true;
  tuning.LoopInterleaving = true;
  tuning.LoopUnrolling = false;
  PassBuilder builder(&machine, tuning);
  LoopAnalysisManager loops;
  FunctionAnalysisManager functions;
  CGSCCAnalysisManager components;
  ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  unrollModestly(builder);
  builder.registerOptimizerLastEPCallback(
      [](ModulePassManager &passes, OptimizationLevel, ThinOrFullLTOPhase) {
        passes.addPass(createModuleToFunctionPassAdaptor(ScalariseMaskedStores()));
      });
  builder.buildPerModuleDefaultPipeline(OptimizationLevel::O3).run(module, modules);

  target::ObjectCode object;
  raw_svector_ostream stream(object);
  legacy::PassManager emission;
  if (machine.addPassesToEmitFile(emission, stream, nullptr, CodeGenFileType::ObjectFile))
    return createStringError(inconvertibleErrorCode(),
                             "this target of LLVM cannot emit object files");
  emission.run(module);
  return object;
}

/// Processors without instructions for bf16 round to it by a call of the compiler's runtime
/// library, which not every system's has (GCC's since version 13): an object that may do so brings
/// the function along. To the nearest, ties to even.
static void addRoundingToBf16(Module &module) {
  bool isUsed = false;
  for (Function &function : module)
    for (Instruction &instruction : instructions(function))
      isUsed |= instruction.getType()->getScalarType()->isBFloatTy();
  if (!isUsed || module.getFunction("__truncsfbf2"))
    return;
  LLVMContext &context = module.getContext();
  IRBuilder<> builder(context);
  auto *type = FunctionType::get(builder.getBFloatTy(), {builder.getFloatTy()}, /*isVarArg=*/false);
  auto *function = Function::Create(type, GlobalValue::WeakAnyLinkage, "__truncsfbf2", module);
  function->setVisibility(GlobalValue::HiddenVisibility);
  builder.SetInsertPoint(BasicBlock::Create(context, "", function));
  Value *x = function->getArg(0), *bits = builder.CreateBitCast(x, builder.getInt32Ty());
  Value *high = builder.CreateLShr(bits, 16);
  Value *half = builder.CreateAdd(builder.CreateAnd(high, 1), builder.getInt32(0x7fff));
  Value *rounded = builder.CreateLShr(builder.CreateAdd(bits, half), 16);
  Value *quiet = builder.CreateOr(high, 0x40);
  Value *chosen = builder.CreateSelect(builder.CreateFCmpUNO(x, x), quiet, rounded);
  builder.CreateRet(builder.CreateBitCast(builder.CreateTrunc(chosen, builder.getInt16Ty()),
                                          builder.getBFloatTy()));
}

Expected<target::ObjectCode> emitObject(mlir::ModuleOp lowered, const target::Processor &processor,
                                        StringRef name) {
  mlir::registerBuiltinDialectTranslation(*lowered.getContext());
  mlir::registerLLVMDialectTranslation(*lowered.getContext());
  LLVMContext context;
  std::unique_ptr<Module> code = mlir::translateModuleToLLVMIR(lowered, context, name);
  if (!code)
    return createStringError(inconvertibleErrorCode(),
                             "the lowered program could not be translated to LLVM IR");
  mlir::SymbolTable symbols(lowered);
  for (Function &function : code->functions()) {
    if (function.isDeclaration())
      continue;
    mlir::Operation *symbol = symbols.lookup(function.getName());
    bool called = symbol && (symbol->hasAttr(exec::kEntryAttr) || symbol->hasAttr(exec::kPlanAttr));
    if (!called) {
      function.setLinkage(GlobalValue::InternalLinkage);
      continue;
    }
    function.setVisibility(GlobalValue::HiddenVisibility);
    // Thousands of calls in a row, in which there is nothing to optimise.
    function.addFnAttr(Attribute::OptimizeNone);
    function.addFnAttr(Attribute::NoInline);
  }
  if (GlobalVariable *table = code->getGlobalVariable(kCollectivesSymbol))
    table->setVisibility(GlobalValue::HiddenVisibility);
  addRoundingToBf16(*code);
  return emitObject(*code, processor);
}

} // namespace shardc::host
