// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "importers/torch_export/import/JointGraph.h"

#include "dialects/dist/FunctionAttributes.h"
#include "dialects/interfaces/ModelLocation.h"

#include "mlir/IR/Block.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;

namespace shardc::torch_export {

void markBackward(Block &block, ArrayRef<Value> results, ArrayRef<DictionaryAttr> attributes) {
  llvm::DenseSet<Operation *> forward;
  bool isJoint = false;
  for (auto [result, attribute] : llvm::zip_equal(results, attributes)) {
    auto kind = attribute.getAs<StringAttr>(dist::kKindAttr);
    if (kind && kind.getValue() == "gradient")
      isJoint = true;
    else
      forward.insert(result.getDefiningOp());
  }
  if (!isJoint)
    return;
  for (Operation &op : llvm::reverse(block)) {
    if (forward.contains(&op))
      return;
    op.setLoc(makeBackwardLocation(op.getLoc()));
  }
}

} // namespace shardc::torch_export
