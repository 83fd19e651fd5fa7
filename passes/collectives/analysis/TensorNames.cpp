// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/analysis/TensorNames.h"

#include "dialects/aten/Aten.h"
#include "dialects/dist/FunctionAttributes.h"

#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace shardc;

Value shardc::behindViews(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    std::optional<ViewKind> kind = viewKindOf(op);
    bool isWhole = kind && *kind != ViewKind::Part;
    if (!isWhole && !isa<aten::ToCopyOp>(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

StringRef shardc::nameOfSource(Value value) {
  auto argument = dyn_cast<BlockArgument>(behindViews(value));
  if (!argument)
    return "";
  auto function = dyn_cast<FunctionOpInterface>(argument.getOwner()->getParentOp());
  if (!function)
    return "";
  DictionaryAttr attributes = function.getArgAttrDict(argument.getArgNumber());
  if (!attributes)
    return "";
  SmallVector<StringRef> names = dist::getNames(attributes);
  return names.empty() ? "" : names.front();
}
