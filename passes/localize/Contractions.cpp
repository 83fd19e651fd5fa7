// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Contractions: the same op on local types, as long as what is added to the product counts once
// (G1).

#include "passes/localize/Models.h"

using namespace mlir;
using namespace shardc;

/// Where the product is P(sum), every rank adds the operand: it must be P(sum) as well.
static LogicalResult checkAddedOnce(Localizer &localizer, Value added, unsigned operand) {
  const Layout *result = localizer.resultLayout(0);
  if (!added || !result)
    return success();
  for (unsigned axis : result->partialAxes())
    if (result->placements[axis] == Placement::partial(Reduction::Sum) &&
        localizer.operandLayout(operand)->placements[axis] != Placement::partial(Reduction::Sum)) {
      localizer.refuse() << "operand " << operand << " would be added once for each rank of axis \""
                         << localizer.getMesh().getValue().axes[axis].name
                         << "\"; redistribute it to P(sum)";
      return failure();
    }
  return success();
}

namespace {

struct LinearModel : LocalizeModel<LinearModel, aten::LinearOp> {
  static LocalValues run(Localizer &localizer, OpBuilder &builder, aten::LinearOp op,
                         ValueRange operands) {
    if (failed(checkAddedOnce(localizer, op.getBias(), 2)))
      return failure();
    return sameOp(localizer, builder, operands);
  }
};

template <typename Op> struct AddedProductModel : LocalizeModel<AddedProductModel<Op>, Op> {
  static LocalValues run(Localizer &localizer, OpBuilder &builder, Op op, ValueRange operands) {
    if (failed(checkAddedOnce(localizer, op.getSelf(), 0)))
      return failure();
    return sameOp(localizer, builder, operands);
  }
};

/// Channels shard by whole groups; then the op counts the groups of one rank.
struct Conv2dModel : LocalizeModel<Conv2dModel, aten::Conv2dOp> {
  static LocalValues run(Localizer &localizer, OpBuilder &builder, aten::Conv2dOp op,
                         ValueRange operands) {
    if (failed(checkAddedOnce(localizer, op.getBias(), 2)))
      return failure();
    FailureOr<SmallVector<Value>> values = sameOp(localizer, builder, operands);
    int64_t groups = static_cast<int64_t>(op.getGroups());
    if (failed(values) || groups == 1)
      return values;
    int64_t channels = localizer.globalResultType(0).getDimSize(1);
    int64_t local = localizer.localResultType(0).getDimSize(1);
    int64_t perGroup = channels / groups;
    if (local != channels && (ShapedType::isDynamic(local) || local % perGroup != 0)) {
      localizer.refuse() << "a group of channels would be on several ranks, or ranks would have "
                            "different numbers of groups; replicate the channels before";
      return failure();
    }
    cast<aten::Conv2dOp>(values->front().getDefiningOp()).setGroups(local / perGroup);
    return values;
  }
};

} // namespace

void shardc::attachContractionModels(MLIRContext *context) {
  attachModel<aten::Conv2dOp, Conv2dModel>(context);
  attachModel<aten::LinearOp, LinearModel>(context);
  attachModel<aten::AddmmOp, AddedProductModel<aten::AddmmOp>>(context);
  attachModel<aten::BaddbmmOp, AddedProductModel<aten::BaddbmmOp>>(context);
}
