// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/specialize/AssumedSizes.h"

#include "dialects/dist/FunctionAttributes.h"
#include "dialects/dist/TypicalSizes.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace shardc;

static std::string findDim(func::FuncOp function, StringAttr symbol) {
  auto wanted = dist::SizeAttr::get(function.getContext(), symbol.getValue());
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    auto dims = function.getArgAttrOfType<ArrayAttr>(i, dist::kSizesAttr);
    for (auto [dim, size] : llvm::enumerate(dims ? dims.getValue() : ArrayRef<Attribute>()))
      if (size == wanted)
        for (StringRef name : dist::getNames(function.getArgAttrDict(i)))
          return "dim " + std::to_string(dim) + " of " + name.str();
  }
  return "";
}

std::vector<SizeSymbol> shardc::sizeSymbols(ModuleOp module) {
  llvm::MapVector<StringAttr, SizeSymbol> symbols;
  for (auto function : module.getOps<func::FuncOp>()) {
    auto list = function->getAttrOfType<ArrayAttr>(dist::kSymbolsAttr);
    for (Attribute attribute : list ? list.getValue() : ArrayRef<Attribute>()) {
      auto symbol = cast<dist::SymbolAttr>(attribute);
      symbols.try_emplace(symbol.getName(),
                          SizeSymbol{symbol, findDim(function, symbol.getName())});
    }
  }
  std::vector<SizeSymbol> result;
  for (auto &[name, symbol] : symbols)
    result.push_back(std::move(symbol));
  return result;
}

SymbolValues shardc::assumedSizes(ModuleOp module) {
  SymbolValues values;
  if (auto sizes = module->getAttrOfType<DictionaryAttr>(dist::kAssumedSizesAttr))
    for (NamedAttribute size : sizes)
      values[size.getName().getValue()] = cast<IntegerAttr>(size.getValue()).getInt();
  return values;
}

FailureOr<SymbolValues> shardc::assumedSizes(ModuleOp module, ArrayRef<std::string> texts) {
  FailureOr<SymbolValues> given = parseSymbolValues(module, texts);
  if (failed(given))
    return failure();
  SymbolValues values = assumedSizes(module);
  for (const auto &entry : *given)
    values[entry.getKey()] = entry.getValue();
  return values;
}
