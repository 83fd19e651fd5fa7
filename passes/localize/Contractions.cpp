// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Contractions: the same op on local types, as long as what is added to the product counts once
// (G1).

#include "passes/localize/ChannelGroups.h"
#include "passes/localize/Models.h"

#include "dialects/aten/ConvolutionAsProduct.h"
#include "dialects/aten/Spatial.h"

using namespace mlir;
using namespace shardc;

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

/// Channels shard by whole groups: the op counts the groups of one rank, or, where ranks have
/// different numbers of them, is written as the matrix product that it is.
struct ConvolutionModel : LocalizeModel<ConvolutionModel, aten::ConvolutionOp> {
  static LocalValues run(Localizer &localizer, OpBuilder &builder, aten::ConvolutionOp op,
                         ValueRange operands) {
    if (failed(checkAddedOnce(localizer, op.getBias(), 2)))
      return failure();
    auto numGroups = static_cast<int64_t>(op.getGroups());
    DimSplit split =
        localizer.resultLayout(0) ? localizer.resultLayout(0)->splitOfDim(1) : DimSplit();
    if (numGroups == 1 || split.empty())
      return sameOp(localizer, builder, operands);
    FailureOr<ChannelGroups> local =
        localGroups(localizer, builder, localizer.resultSize(builder, 0, 1), split, numGroups);
    if (failed(local))
      return failure();
    if (!local->sharedBy.empty()) {
      localizer.refuse() << "a rank has a part of every group, and the op needs whole ones; shard "
                            "whole groups, or replicate the channels before";
      return failure();
    }
    if (std::optional<int64_t> fixed = getConstantIntValue(local->groups)) {
      FailureOr<SmallVector<Value>> values = sameOp(localizer, builder, operands);
      if (succeeded(values))
        cast<aten::ConvolutionOp>(values->front().getDefiningOp()).setGroups(*fixed);
      return values;
    }
    return single(aten::buildConvolutionAsProduct(
        builder, op.getLoc(), op.getWindows(), operands[0], operands[1],
        op.getBias() ? operands[2] : Value(), local->groups, local->channels));
  }
};

} // namespace

void shardc::attachContractionModels(MLIRContext *context) {
  attachModel<aten::ConvolutionOp, ConvolutionModel>(context);
  attachModel<aten::LinearOp, LinearModel>(context);
  attachModel<aten::AddmmOp, AddedProductModel<aten::AddmmOp>>(context);
  attachModel<aten::BaddbmmOp, AddedProductModel<aten::BaddbmmOp>>(context);
}
