// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/shardc/Sizes.h"

#include "dialects/dist/FunctionAttributes.h"
#include "dialects/dist/TypicalSizes.h"
#include "passes/specialize/BindSymbols.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/WithColor.h"

using namespace mlir;

namespace shardc {
namespace {

/// `dim 0 of x`: an input dim whose size is that symbol; empty where there is none.
std::string findDim(func::FuncOp function, StringAttr symbol) {
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

struct Symbol {
  dist::SymbolAttr attribute;
  std::string where;
};

/// Of all functions, once each.
std::vector<Symbol> symbolsOf(ModuleOp module) {
  llvm::MapVector<StringAttr, Symbol> symbols;
  for (auto function : module.getOps<func::FuncOp>()) {
    auto list = function->getAttrOfType<ArrayAttr>(dist::kSymbolsAttr);
    for (Attribute attribute : list ? list.getValue() : ArrayRef<Attribute>()) {
      auto symbol = cast<dist::SymbolAttr>(attribute);
      symbols.try_emplace(symbol.getName(), Symbol{symbol, findDim(function, symbol.getName())});
    }
  }
  std::vector<Symbol> result;
  for (auto &[name, symbol] : symbols)
    result.push_back(std::move(symbol));
  return result;
}

} // namespace

FailureOr<std::vector<AssumedSize>> assumeSizes(ModuleOp module, ArrayRef<std::string> given) {
  FailureOr<SymbolValues> values = parseSymbolValues(module, given);
  if (failed(values))
    return failure();
  std::vector<AssumedSize> sizes;
  for (const Symbol &symbol : symbolsOf(module)) {
    std::string name = symbol.attribute.getName().str();
    auto value = values->find(name);
    sizes.push_back({name,
                     value == values->end() ? dist::typicalValue(symbol.attribute) : value->second,
                     symbol.where});
  }
  return sizes;
}

FailureOr<std::vector<std::string>> largestSizes(ModuleOp module, ArrayRef<std::string> given) {
  FailureOr<SymbolValues> values = parseSymbolValues(module, given);
  if (failed(values))
    return failure();
  std::vector<std::string> sizes(given);
  bool ok = true;
  for (const Symbol &symbol : symbolsOf(module)) {
    StringRef name = symbol.attribute.getName().getValue();
    if (values->contains(name))
      continue;
    if (!ShapedType::isDynamic(symbol.attribute.getMax())) {
      sizes.push_back((name + "=" + Twine(symbol.attribute.getMax())).str());
      continue;
    }
    ok = false;
    llvm::WithColor::error() << "--memory-limit: the dynamic size " << name
                             << (symbol.where.empty() ? "" : " (" + symbol.where + ")")
                             << " has no upper bound, so that no memory is enough for all of its "
                                "values; export the model with a bound (shardc export --dynamic "
                                "INPUT:DIM=NAME:MIN:MAX), or name the largest value that the limit "
                                "is to hold for: --size "
                             << name << "=VALUE\n";
  }
  if (!ok)
    return failure();
  return sizes;
}

} // namespace shardc
