// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dialects/dist/StateArguments.h"

#include "dialects/dist/FunctionAttributes.h"

#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::dist;

/// By result of such a kind: the first argument that has its name and is `accepted`.
static SmallVector<std::optional<unsigned>>
findArguments(FunctionOpInterface function, function_ref<bool(StringAttr)> isKind,
              function_ref<bool(unsigned argument)> accepted) {
  SmallVector<std::optional<unsigned>> arguments(function.getNumResults());
  llvm::StringMap<unsigned> argumentOf;
  for (unsigned i = 0; i < function.getNumResults(); ++i) {
    auto own = function.getResultAttrOfType<StringAttr>(i, kKindAttr);
    if (!isKind(own))
      continue;
    if (argumentOf.empty())
      for (unsigned a = 0; a < function.getNumArguments(); ++a)
        if (accepted(a))
          for (StringRef name : getNames(function.getArgAttrDict(a)))
            argumentOf.try_emplace(name, a);
    for (StringRef name : getNames(function.getResultAttrDict(i)))
      if (auto found = argumentOf.find(name); found != argumentOf.end())
        arguments[i] = found->second;
  }
  return arguments;
}

SmallVector<std::optional<unsigned>>
shardc::dist::findStateArguments(FunctionOpInterface function) {
  return findArguments(function, isStateUpdate, [&](unsigned argument) {
    auto kind = function.getArgAttrOfType<StringAttr>(argument, kKindAttr);
    return kind && kind.getValue() != "input";
  });
}

SmallVector<std::optional<unsigned>>
shardc::dist::findGradientArguments(FunctionOpInterface function) {
  SmallVector<std::optional<unsigned>> arguments = findArguments(
      function, [](StringAttr kind) { return kind && kind.getValue() == "gradient"; },
      [](unsigned) { return true; });
  for (auto [result, argument] : llvm::enumerate(arguments))
    if (argument && function.getArgumentTypes()[*argument] != function.getResultTypes()[result])
      argument.reset();
  return arguments;
}
