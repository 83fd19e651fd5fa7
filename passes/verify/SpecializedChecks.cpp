// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/verify/StageChecks.h"

#include "dialects/dist/FunctionAttributes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace shardc;

/// A dim of a function without symbols that is dynamic all the same.
static void checkStatic(func::FuncOp function, Violations &violations) {
  function.walk([&](Operation *op) {
    for (Value result : op->getResults())
      if (RankedTensorType type = dist::getDeliveredType(result.getType()))
        if (!type.hasStaticShape())
          violations.add(op, "has a dynamic size, but the function has no symbols: every rank "
                             "knows its sizes in the stage \"specialized\"");
  });
  for (BlockArgument argument : function.getArguments())
    if (RankedTensorType type = dist::getDeliveredType(argument.getType()))
      if (!type.hasStaticShape())
        violations.add(argument.getLoc(),
                       "an argument has a dynamic size, but the function has no symbols: every "
                       "rank knows its sizes in the stage \"specialized\"");
}

void shardc::checkSpecialized(ModuleOp module, Violations &violations) {
  auto all = module->getAttrOfType<DictionaryAttr>(dist::kSpecializationsAttr);
  if (!all)
    return violations.add(module.getLoc(),
                          "the module has no 'dist.specializations', which say what each rank "
                          "runs; run dist-specialize");
  llvm::DenseSet<StringAttr> named;
  SymbolTable symbols(module);
  for (NamedAttribute entry : all)
    for (FlatSymbolRefAttr variant : cast<dist::VariantsAttr>(entry.getValue()).getFunctions()) {
      named.insert(variant.getAttr());
      if (!symbols.lookup<func::FuncOp>(variant.getAttr()))
        violations.add(module.getLoc(), ("'dist.specializations' names '" + variant.getValue() +
                                         "', which is no function of the module")
                                            .str());
    }
  for (auto function : module.getOps<func::FuncOp>()) {
    if (function.isExternal())
      continue;
    if (!named.contains(function.getSymNameAttr()))
      violations.add(function.getLoc(), ("no rank runs '" + function.getName() +
                                         "': 'dist.specializations' does not name it")
                                            .str());
    if (!function->hasAttr(dist::kSymbolsAttr))
      checkStatic(function, violations);
  }
}
