// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/Passes.h"

#include "dialects/dist/FindMesh.h"
#include "dialects/dist/FunctionAttributes.h"
#include "passes/collectives/verify/Checks.h"

#include "mlir/IR/SymbolTable.h"

namespace shardc {
#define GEN_PASS_DEF_VERIFYSCHEDULE
#include "passes/collectives/Passes.h.inc"
} // namespace shardc

using namespace mlir;
using namespace shardc;
using namespace shardc::dist;

namespace {

struct VerifySchedule : shardc::impl::VerifyScheduleBase<VerifySchedule> {
  using VerifyScheduleBase::VerifyScheduleBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    bool ok = true;
    for (auto function : module.getOps<func::FuncOp>())
      if (!function.isExternal())
        ok &= succeeded(checkFunctionSchedule(function));
    // Whether ranks agree is a question only where each has a sequence.
    if (!ok || failed(compareRanks(module)))
      return signalPassFailure();
    for (auto function : module.getOps<func::FuncOp>())
      ok &= function.isExternal() || succeeded(noteHash(function));
    if (!ok)
      signalPassFailure();
  }

private:
  /// The functions that ranks run, by the one that they were made of.
  LogicalResult compareRanks(ModuleOp module) {
    std::optional<Mesh> world = findWorld(module);
    auto specializations = module->getAttrOfType<DictionaryAttr>(kSpecializationsAttr);
    if (!world || !specializations)
      return success();
    Devices devices(*world);
    SymbolTable symbols(module);
    bool ok = true;
    for (NamedAttribute entry : specializations) {
      auto attribute = cast<VariantsAttr>(entry.getValue());
      std::vector<Variant> variants;
      for (FlatSymbolRefAttr name : attribute.getFunctions()) {
        variants.push_back({symbols.lookup<func::FuncOp>(name.getValue()), {}});
        if (!variants.back().function)
          return module.emitError() << "'dist.specializations' names " << name
                                    << ", which is no function of the module: what the ranks "
                                       "that run it issue cannot be checked";
      }
      for (auto [device, variant] : llvm::enumerate(attribute.getPositions()))
        variants[variant].devices.push_back(static_cast<int64_t>(device));
      llvm::erase_if(variants, [](const Variant &v) { return v.devices.empty(); });
      if (variants.empty())
        continue;
      ok &= succeeded(compareVariants(variants, devices));
      for (const Variant &variant : variants)
        ok &= succeeded(checkPositions(variant, devices));
    }
    return success(ok);
  }

  /// The first run notes the hash; later ones hold the program against it.
  LogicalResult noteHash(func::FuncOp function) {
    std::vector<SequenceEntry> sequence = getSequence(function);
    numCollectives += sequence.size();
    std::string hash = hashSequence(sequence);
    auto known = function->getAttrOfType<StringAttr>(kSequenceHashAttr);
    if (known && known.getValue() != hash)
      return function.emitOpError("has other collectives, or has them in another order, than when "
                                  "it was first verified: the hash of the sequence is ")
             << hash << ", was " << known.getValue();
    if (!sequence.empty())
      function->setAttr(kSequenceHashAttr, StringAttr::get(&getContext(), hash));
    return success();
  }
};

} // namespace
