// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "pipeline/Pipeline.h"

#include "dialects/dist/Dist.h"
#include "dialects/dist/FunctionAttributes.h"
#include "dialects/exec/Exec.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace shardc;

static bool isInFlight(ModuleOp module) {
  return module
      .walk([](dist::CollectiveOpInterface op) {
        return op.isAsync() ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

Stage shardc::stageOf(ModuleOp module) {
  if (!module.getOps<LLVM::LLVMFuncOp>().empty())
    return Stage::Lowered;
  for (auto function : module.getOps<func::FuncOp>())
    if (function->hasAttr(exec::kEntryAttr))
      return Stage::Planned;
  if (module->hasAttr(dist::kSpecializationsAttr))
    return Stage::Specialized;
  for (auto function : module.getOps<FunctionOpInterface>()) {
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      if (function.getArgAttr(i, dist::kLayoutAttr))
        return isInFlight(module) ? Stage::Scheduled : Stage::Local;
    for (Type type :
         llvm::concat<const Type>(function.getArgumentTypes(), function.getResultTypes()))
      if (dist::getLayout(type))
        return Stage::Placed;
  }
  return Stage::Imported;
}
