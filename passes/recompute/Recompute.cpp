// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/recompute/FunctionProgram.h"
#include "passes/recompute/Passes.h"

#include "dialects/dist/RecomputeAttributes.h"
#include "dialects/interfaces/ModelLocation.h"
#include "importers/plan/Plan.h"
#include "passes/specialize/AssumedSizes.h"
#include "support/ByteSize.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/MapVector.h"

#include <set>

namespace shardc {
#define GEN_PASS_DEF_RECOMPUTE
#include "passes/recompute/Passes.h.inc"
} // namespace shardc

using namespace mlir;
using namespace shardc;
using namespace shardc::recompute;

namespace {

/// What is told of a module, or of an op that is in none of those asked for.
struct Told {
  Operation *first = nullptr;
  std::string what;
  bool required = false;
  uint64_t bytes = 0, ops = 0;
  double us = 0;
};

llvm::SmallVector<Told> tell(const FunctionProgram &read, const Result &result) {
  llvm::MapVector<std::pair<uint32_t, uint32_t>, Told> told;
  for (const Reason &reason : result.reasons) {
    uint32_t region = reason.required ? read.program.info(reason.op).region : recompute::none;
    bool isModule = region != recompute::none;
    Told &entry = told[{region, isModule ? 0 : reason.op}];
    Operation *op = read.ops[reason.op];
    if (!entry.first) {
      entry.first = op;
      entry.what = isModule ? "module '" + read.regions[region] + "'"
                            : "'" + op->getName().getStringRef().str() + "'";
      entry.required = reason.required;
    }
    entry.bytes += reason.bytes;
    entry.us += reason.us;
    ++entry.ops;
  }
  return llvm::map_to_vector(told, [](auto &entry) { return std::move(entry.second); });
}

struct RecomputePass : shardc::impl::RecomputeBase<RecomputePass> {
  using RecomputeBase::RecomputeBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    std::string errors;
    std::unique_ptr<cost::CostModel> model = cost::loadModel(topology, errors);
    if (!model)
      module.emitError() << "topology: " << StringRef(errors).rtrim();
    std::optional<uint64_t> limit = parseByteSize(memoryLimit.getValue());
    bool limitIsRight = memoryLimit.empty() || limit.value_or(0) != 0;
    if (!limitIsRight)
      module.emitError() << "memory-limit: '" << memoryLimit
                         << "' is not a number of bytes, e.g. 2GiB";
    FailureOr<SymbolValues> values = assumedSizes(module, sizes);
    if (!model || !limitIsRight || failed(values))
      return signalPassFailure();
    SmallVector<std::string> patterns = textsOf(modules);
    if (auto planned = module->getAttrOfType<ArrayAttr>(dist::kRecomputeAttr))
      for (auto pattern : planned.getAsValueRange<StringAttr>())
        patterns.push_back(pattern.str());
    if (failed(resolve(patterns)))
      return signalPassFailure();
    RecomputeChoices choices{patterns, reshardAfterForward};
    if (auto planned = module->getAttrOfType<BoolAttr>(dist::kReshardAfterForwardAttr);
        planned && choices.reshard == ReshardAfterForward::Auto)
      choices.reshard = planned.getValue() ? ReshardAfterForward::True : ReshardAfterForward::False;
    for (auto function : module.getOps<func::FuncOp>())
      if (failed(run(function, *model, *values, choices, limit)))
        return signalPassFailure();
  }

private:
  /// As rules of a plan: what matches nothing as written is tried after the base model's prefix.
  LogicalResult resolve(MutableArrayRef<std::string> patterns) {
    std::set<std::string> paths;
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (function.isExternal() || !function.getBody().hasOneBlock() || !findBackward(function))
        continue;
      for (Operation &op : function.getBody().front()) {
        StringRef path = getModulePath(op.getLoc());
        while (!path.empty() && paths.insert(path.str()).second)
          path = path.contains('.') ? path.rsplit('.').first : "";
      }
    }
    if (paths.empty()) { // nobody knows the modules, or there is no backward
      if (!modules.empty())
        getOperation().emitWarning()
            << "recompute: no function has a backward of known modules: nothing is computed again";
      return success();
    }
    bool found = true;
    for (std::string &pattern : patterns) {
      auto matches = [&](StringRef text) {
        return llvm::any_of(
            paths, [&](const std::string &path) { return plan::matchesPattern(text, path); });
      };
      if (matches(pattern))
        continue;
      if (std::string longer = "*." + pattern; matches(longer)) {
        pattern = longer;
        continue;
      }
      std::string nearest = plan::nearestNames(pattern, {paths.begin(), paths.end()});
      getOperation().emitError() << "recompute: '" << pattern << "' matches no module of the model"
                                 << (nearest.empty() ? "" : "; the nearest are " + nearest);
      found = false;
    }
    return success(found);
  }

  LogicalResult run(func::FuncOp function, const cost::CostModel &model, const SymbolValues &values,
                    const RecomputeChoices &choices, std::optional<uint64_t> limit) {
    if (function.isExternal() || !function.getBody().hasOneBlock())
      return success();
    std::optional<size_t> backward = findBackward(function);
    if (!backward)
      return success();
    FailureOr<FunctionProgram> read = readFunction(function, *backward, model, values, choices);
    if (failed(read))
      return failure();
    Result result = choose(read->program, {limit});
    peakBefore += result.peakBefore;
    peakAfter += result.peakAfter;
    addedUs += static_cast<uint64_t>(result.addedUs + 0.5);
    numOps += result.again.size();
    for (const Reason &reason : result.reasons)
      numGathers += isWeightGather(read->ops[reason.op]);
    record(function, *read, result);
    applyChoices(*read, result);
    return success();
  }

  void record(func::FuncOp function, const FunctionProgram &read, const Result &result) {
    Builder b(&getContext());
    auto integer = [&](StringRef name, uint64_t value) {
      return b.getNamedAttr(name, b.getI64IntegerAttr(static_cast<int64_t>(value)));
    };
    auto number = [&](StringRef name, double value) {
      return b.getNamedAttr(name, b.getF64FloatAttr(std::round(value * 1000) / 1000));
    };
    auto text = [&](StringRef name, StringRef value) {
      return b.getNamedAttr(name, b.getStringAttr(value));
    };
    SmallVector<Attribute> list;
    for (const Told &told : tell(read, result)) {
      Location location = told.first->getLoc();
      bool isModule = StringRef(told.what).starts_with("module");
      numModules += isModule;
      list.push_back(b.getDictionaryAttr(
          {text("what", told.what), text("module", getModulePath(location)),
           text("location", describePlace(location)), integer("bytes", told.bytes),
           integer("ops", told.ops), number("us", told.us),
           b.getNamedAttr("required", b.getBoolAttr(told.required))}));
      if (remarks)
        emitRemark(location) << told.what << " is computed again in the backward: " << told.bytes
                             << " bytes are not kept, " << std::lround(told.us) << " us more";
    }
    function->setAttr(dist::kRecomputedAttr,
                      b.getDictionaryAttr({integer("peak_before_bytes", result.peakBefore),
                                           integer("peak_bytes", result.peakAfter),
                                           number("added_us", result.addedUs),
                                           b.getNamedAttr("choices", b.getArrayAttr(list))}));
  }
};

} // namespace
