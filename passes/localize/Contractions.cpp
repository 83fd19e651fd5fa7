// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Contractions: the same op on local types, as long as what is added to the product counts once
// (G1).

#include "passes/localize/Models.h"

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

} // namespace

void shardc::attachContractionModels(MLIRContext *context) {
  attachModel<aten::LinearOp, LinearModel>(context);
  attachModel<aten::AddmmOp, AddedProductModel<aten::AddmmOp>>(context);
  attachModel<aten::BaddbmmOp, AddedProductModel<aten::BaddbmmOp>>(context);
}
