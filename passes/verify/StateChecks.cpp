// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/verify/StageChecks.h"

#include "dialects/dist/FunctionAttributes.h"
#include "dialects/dist/StateArguments.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::dist;

template <typename... Parts> static std::string textOf(Parts... parts) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  (stream << ... << parts);
  return text;
}

void shardc::checkStates(FunctionOpInterface function, Violations &violations) {
  for (auto [result, argument] : llvm::enumerate(findStateArguments(function))) {
    if (!argument)
      continue;
    DictionaryAttr from = function.getArgAttrDict(*argument);
    DictionaryAttr to = function.getResultAttrDict(result);
    std::string what = textOf("result ", result, " is the new value of argument ", *argument, ", '",
                              getNames(from).front(), "', but has ");
    Type type = function.getArgumentTypes()[*argument];
    RankedTensorType delivered = getDeliveredType(function.getResultTypes()[result]);
    if (delivered != type)
      violations.add(function.getLoc(), textOf(what, "the type ", delivered, ", not ", type));
    else if (from.get(kLayoutAttr) != to.get(kLayoutAttr))
      violations.add(function.getLoc(), textOf(what, "another 'dist.layout'"));
  }
}
