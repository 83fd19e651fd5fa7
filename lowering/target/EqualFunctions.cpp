// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/target/EqualFunctions.h"

#include "mlir/IR/OperationSupport.h"
#include "mlir/IR/SymbolTable.h"

using namespace mlir;

namespace shardc::target {
namespace {

/// What a function says about itself, but for its name.
DictionaryAttr attributesOf(FunctionOpInterface function) {
  NamedAttrList attributes(function->getAttrDictionary());
  attributes.erase(SymbolTable::getSymbolAttrName());
  return attributes.getDictionary(function.getContext());
}

/// Equal for functions that are equal. (Their text would do, but what is printed of a program
/// depends on options of MLIR's.)
llvm::hash_code hashOf(FunctionOpInterface function) {
  llvm::hash_code hash = llvm::hash_value(attributesOf(function).getAsOpaquePointer());
  function.getFunctionBody().walk([&](Operation *op) {
    hash = llvm::hash_combine(hash, op->getName(), op->getAttrDictionary(), op->getResultTypes());
  });
  return hash;
}

bool areEqual(FunctionOpInterface a, FunctionOpInterface b) {
  return attributesOf(a) == attributesOf(b) &&
         OperationEquivalence::isRegionEquivalentTo(&a.getFunctionBody(), &b.getFunctionBody(),
                                                    OperationEquivalence::IgnoreLocations);
}

} // namespace

FunctionOpInterface EqualFunctions::firstOf(FunctionOpInterface function) {
  SmallVector<FunctionOpInterface, 1> &candidates = different[hashOf(function)];
  auto first =
      llvm::find_if(candidates, [&](FunctionOpInterface one) { return areEqual(one, function); });
  if (first != candidates.end())
    return *first;
  candidates.push_back(function);
  return function;
}

} // namespace shardc::target
