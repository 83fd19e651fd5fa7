// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/specialize/Passes.h"

#include "dialects/dist/TypicalSizes.h"
#include "passes/specialize/AssumedSizes.h"

namespace shardc {
#define GEN_PASS_DEF_ASSUMESIZES
#include "passes/specialize/Passes.h.inc"
} // namespace shardc

using namespace mlir;
using namespace shardc;

namespace {
struct AssumeSizes : shardc::impl::AssumeSizesBase<AssumeSizes> {
  using AssumeSizesBase::AssumeSizesBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<SymbolValues> given = parseSymbolValues(module, sizes);
    if (failed(given))
      return signalPassFailure();
    SymbolValues before = assumedSizes(module);
    Builder builder(&getContext());
    NamedAttrList values;
    bool ok = true;
    for (const SizeSymbol &symbol : sizeSymbols(module)) {
      StringRef name = symbol.attribute.getName().getValue();
      int64_t value = dist::typicalValue(symbol.attribute);
      if (auto found = given->find(name); found != given->end())
        value = found->second;
      else if (largest)
        ok &= succeeded(largestValue(symbol, value));
      else if (auto noted = before.find(name); noted != before.end())
        value = noted->second;
      values.set(name, builder.getI64IntegerAttr(value));
      ++numSymbols;
    }
    if (!ok)
      return signalPassFailure();
    if (!values.empty())
      module->setAttr(dist::kAssumedSizesAttr, values.getDictionary(&getContext()));
    markAllAnalysesPreserved();
  }

  LogicalResult largestValue(const SizeSymbol &symbol, int64_t &value) {
    value = symbol.attribute.getMax();
    if (!ShapedType::isDynamic(value))
      return success();
    StringRef name = symbol.attribute.getName().getValue();
    return emitError(UnknownLoc::get(&getContext()))
           << "--memory-limit: the dynamic size " << name
           << (symbol.where.empty() ? "" : " (" + symbol.where + ")")
           << " has no upper bound, so that no memory is enough for all of its values; export the "
              "model with a bound (shardc export --dynamic INPUT:DIM=NAME:MIN:MAX), or name the "
              "largest value that the limit is to hold for: --size "
           << name << "=VALUE";
  }
};
} // namespace
