// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Views of sharded dims: sizes are one rank's, and its elements must already be in the order of the
// result.

#include "passes/localize/Models.h"

using namespace mlir;
using namespace shardc;

namespace {

/// Whether every rank has, in order, the elements of the result that it must have. Group by group
/// of dims: that is small work even where a batch of thousands is a dim of its own.
bool isViewOfOwnElements(Localizer &localizer) {
  ArrayRef<int64_t> input = localizer.globalOperandType(0).getShape();
  ArrayRef<int64_t> result = localizer.globalResultType(0).getShape();
  const Mesh &mesh = localizer.getMesh().getValue();
  for (const DimGroup &group : groupViewDims(input, result)) {
    std::vector<SplitDim> from, to;
    for (unsigned dim = group.inputBegin; dim < group.inputEnd; ++dim)
      from.push_back(localizer.operandDim(0, dim));
    for (unsigned dim = group.resultBegin; dim < group.resultEnd; ++dim)
      to.push_back(localizer.resultDim(0, dim));
    if (!isLocalView(mesh, from, to))
      return false;
  }
  return true;
}

bool isStaticAndNotEmpty(RankedTensorType type) {
  return type.hasStaticShape() && !llvm::is_contained(type.getShape(), 0);
}

struct ViewModel : LocalizeModel<ViewModel, aten::ViewOp> {
  static LocalValues run(Localizer &localizer, OpBuilder &builder, aten::ViewOp op,
                         ValueRange operands) {
    // Symbolic sizes: the layouts agree by the op's sharding rule.
    if (localizer.getMesh() && isStaticAndNotEmpty(localizer.globalOperandType(0)) &&
        isStaticAndNotEmpty(localizer.globalResultType(0)) && !isViewOfOwnElements(localizer)) {
      localizer.refuse() << "a rank would need elements of other ranks; shard whole units of the "
                            "inner dims (a granule), or replicate the dim before the view";
      return failure();
    }
    return single(localizer.emitter(builder).view(operands[0], localizer.localSizes(builder, 0)));
  }
};

struct ExpandModel : LocalizeModel<ExpandModel, aten::ExpandOp> {
  static LocalValues run(Localizer &localizer, OpBuilder &builder, aten::ExpandOp op,
                         ValueRange operands) {
    return single(localizer.emitter(builder).full(localizer.localSizes(builder, 0), operands[0]));
  }
};

} // namespace

void shardc::attachViewModels(MLIRContext *context) {
  attachModel<aten::ViewOp, ViewModel>(context);
  attachModel<aten::ExpandOp, ExpandModel>(context);
}
