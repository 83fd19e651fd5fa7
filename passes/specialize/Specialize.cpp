// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/specialize/Passes.h"

#include "dialects/dist/FindMesh.h"
#include "dialects/dist/FunctionAttributes.h"
#include "passes/specialize/AssumedSizes.h"
#include "passes/specialize/FunctionSpecializer.h"
#include "passes/specialize/MeshParts.h"

#include "mlir/IR/SymbolTable.h"

#include <deque>

namespace shardc {
#define GEN_PASS_DEF_SPECIALIZE
#include "passes/specialize/Passes.h.inc"
} // namespace shardc

using namespace mlir;
using namespace shardc;
using namespace shardc::dist;

namespace {
struct Specialize : shardc::impl::SpecializeBase<Specialize> {
  using SpecializeBase::SpecializeBase;
  void runOnOperation() override;

private:
  LogicalResult specialize(func::FuncOp function, Devices &devices, SymbolTable &symbols,
                           NamedAttrList &specializations);
  FailureOr<std::vector<SpecializedFunction>> makeVariants(func::FuncOp function, Devices &devices);
};
} // namespace

FailureOr<std::vector<SpecializedFunction>> Specialize::makeVariants(func::FuncOp function,
                                                                     Devices &devices) {
  Mesh world = *findWorld(getOperation());
  std::vector<MeshAttr> partial = partialMeshes(function, devices);
  std::vector<ExtentsAttr> varying = varyingExtents(function, MeshAttr::get(&getContext(), world));
  int64_t numFolded = 0;
  std::vector<SpecializedFunction> variants = shardc::makeVariants(
      function, splitByMeshes(classifyDevices(varying, devices), partial, devices), devices, world,
      [&](func::FuncOp clone, const DeviceClass &alike) {
        return keepPart(clone, partial, alike, devices);
      },
      &numFolded);
  numExtents += numFolded;
  if (llvm::all_of(variants, [](const SpecializedFunction &variant) { return variant.ok; }))
    return variants;
  for (SpecializedFunction &variant : variants)
    variant.function.erase();
  return failure();
}

LogicalResult Specialize::specialize(func::FuncOp function, Devices &devices, SymbolTable &symbols,
                                     NamedAttrList &specializations) {
  if (!function.getBody().hasOneBlock())
    return function.emitOpError(
        "has control flow: the stages \"local\" and \"scheduled\" have none");
  FailureOr<std::vector<SpecializedFunction>> variants = makeVariants(function, devices);
  if (failed(variants))
    return failure();
  llvm::sort(*variants, [](const SpecializedFunction &a, const SpecializedFunction &b) {
    return a.devices.front() < b.devices.front();
  });
  StringAttr name = function.getSymNameAttr();
  Block::iterator position = std::next(function->getIterator());
  symbols.erase(function);
  SmallVector<FlatSymbolRefAttr> references;
  SmallVector<int64_t> positions(devices.size());
  for (auto [i, variant] : llvm::enumerate(*variants)) {
    if (variants->size() > 1)
      variant.function.setSymName((name.getValue() + "_v" + Twine(i)).str());
    // Gives the function another name where that one is taken.
    symbols.insert(variant.function, position);
    references.push_back(FlatSymbolRefAttr::get(variant.function.getSymNameAttr()));
    for (int64_t device : variant.devices)
      positions[device] = static_cast<int64_t>(i);
    ++numVariants;
  }
  specializations.set(name, VariantsAttr::get(&getContext(), references, positions));
  return success();
}

void Specialize::runOnOperation() {
  ModuleOp module = getOperation();
  std::optional<Mesh> world = findWorld(module);
  if (!world) {
    module.emitOpError("has no 'dist.mesh': which devices run the program is not known");
    return signalPassFailure();
  }
  FailureOr<SymbolValues> values = parseSymbolValues(module, bind);
  if (failed(values))
    return signalPassFailure();
  if (bindTypical)
    for (const auto &noted : assumedSizes(module))
      values->try_emplace(noted.getKey(), noted.getValue());
  for (auto function : module.getOps<func::FuncOp>())
    bindSymbols(function, *values, bindTypical, MeshAttr::get(&getContext(), *world));
  Devices devices(*world);
  SymbolTable symbols(module);
  NamedAttrList specializations;
  bool ok = true;
  for (func::FuncOp function : llvm::to_vector(module.getOps<func::FuncOp>())) {
    if (function.isExternal())
      continue;
    if (!SymbolTable::symbolKnownUseEmpty(function, module)) {
      ok = false;
      function.emitOpError("is referred to by name: it cannot become several functions");
      continue;
    }
    ok &= succeeded(specialize(function, devices, symbols, specializations));
  }
  if (!ok)
    return signalPassFailure();
  module->setAttr(kSpecializationsAttr, specializations.getDictionary(&getContext()));
}
