// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ops that are the same op on local types, whatever the layouts that their sharding rules allow.
// (Those that say so in their definition are not listed: every elementwise op, transpose, permute.)

#include "passes/localize/Models.h"

using namespace mlir;
using namespace shardc;

namespace {

template <typename Op> struct SameOpModel : LocalizeModel<SameOpModel<Op>, Op> {
  static LocalValues run(Localizer &localizer, OpBuilder &builder, Op, ValueRange operands) {
    return sameOp(localizer, builder, operands);
  }
};

/// Reverses dims: only of what a rank has as a whole.
struct FlipModel : LocalizeModel<FlipModel, aten::FlipOp> {
  static LocalValues run(Localizer &localizer, OpBuilder &builder, aten::FlipOp op,
                         ValueRange operands) {
    if (!localizer.operandAxes(0, op.getDims()).empty()) {
      localizer.refuse() << "a reversed dim is sharded; replicate it before";
      return failure();
    }
    return sameOp(localizer, builder, operands);
  }
};

template <typename... Ops> void attachTo(MLIRContext *context) {
  (Ops::template attachInterface<SameOpModel<Ops>>(*context), ...);
}

} // namespace

void shardc::attachSameOpModels(MLIRContext *context) {
  aten::FlipOp::attachInterface<FlipModel>(*context);
  attachTo<aten::MatmulOp, aten::MmOp, aten::BmmOp, aten::SumOp, aten::ProdOp, aten::AmaxOp,
           aten::AminOp, aten::AnyOp, aten::AllOp, aten::UnsqueezeOp, aten::SqueezeOp,
           aten::StackOp>(context);
}
