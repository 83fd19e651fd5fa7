// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/artifact/Object.h"

#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"

using namespace llvm;

namespace shardc::artifact {

Expected<SmallVector<char, 0>> emitObject(Module &module, TargetMachine &machine) {
  module.setTargetTriple(machine.getTargetTriple());
  module.setDataLayout(machine.createDataLayout());
  std::string message;
  raw_string_ostream messageStream(message);
  if (verifyModule(module, &messageStream))
    return createStringError(inconvertibleErrorCode(), "invalid LLVM IR generated: " + message);

  PipelineTuningOptions tuning;
  tuning.LoopVectorization = true;
  tuning.SLPVectorization = true;
  tuning.LoopInterleaving = true;
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
  builder.buildPerModuleDefaultPipeline(OptimizationLevel::O3).run(module, modules);

  SmallVector<char, 0> object;
  raw_svector_ostream stream(object);
  legacy::PassManager emission;
  if (machine.addPassesToEmitFile(emission, stream, nullptr, CodeGenFileType::ObjectFile))
    return createStringError(inconvertibleErrorCode(),
                             "this target of LLVM cannot emit object files");
  emission.run(module);
  return object;
}

} // namespace shardc::artifact
