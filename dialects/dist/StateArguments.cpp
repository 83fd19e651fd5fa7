// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dialects/dist/StateArguments.h"

#include "dialects/dist/FunctionAttributes.h"

#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::dist;

SmallVector<std::optional<unsigned>>
shardc::dist::findStateArguments(FunctionOpInterface function) {
  SmallVector<std::optional<unsigned>> arguments(function.getNumResults());
  llvm::StringMap<unsigned> argumentOf;
  for (unsigned i = 0; i < function.getNumResults(); ++i) {
    auto kind = function.getResultAttrOfType<StringAttr>(i, kKindAttr);
    if (!kind || kind.getValue() != "buffer_mutation")
      continue;
    if (argumentOf.empty())
      for (unsigned a = 0; a < function.getNumArguments(); ++a)
        if (auto of = function.getArgAttrOfType<StringAttr>(a, kKindAttr);
            of && of.getValue() != "input")
          for (StringRef name : getNames(function.getArgAttrDict(a)))
            argumentOf.try_emplace(name, a);
    for (StringRef name : getNames(function.getResultAttrDict(i)))
      if (auto found = argumentOf.find(name); found != argumentOf.end())
        arguments[i] = found->second;
  }
  return arguments;
}
