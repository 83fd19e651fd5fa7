// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dialects/dist/InPlace.h"

#include "dialects/interfaces/TensorView.h"

#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::dist;

bool shardc::dist::worksInPlace(CollectiveOpInterface op, unsigned index) {
  CollectiveKind kind = op.getCollectiveKind();
  if (kind != CollectiveKind::AllReduce && kind != CollectiveKind::Broadcast)
    return false;
  Value tensor = op.getTensors()[index];
  while (tensor.hasOneUse()) {
    Operation *source = tensor.getDefiningOp();
    // Arguments are the caller's, constants are shared, and an op with effects may keep its
    // results.
    if (!source || source->hasTrait<OpTrait::ConstantLike>() ||
        !(isMemoryEffectFree(source) || isa<CallOpInterface, CollectiveOpInterface>(source)))
      return false;
    std::optional<ViewKind> view = viewKindOf(source);
    if (!view)
      return true;
    if (*view != ViewKind::Reshape && *view != ViewKind::Copy && *view != ViewKind::Alias)
      return false;
    tensor = source->getOperand(0);
  }
  return false;
}
