// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rearrangements: the cotangent is rearranged back.

#include "passes/gradient/differentiate/Models.h"

using namespace mlir;
using namespace shardc;

namespace {

struct ViewGradient : GradientModel<ViewGradient, aten::ViewOp> {
  static LogicalResult run(Derivation &d, aten::ViewOp op) {
    if (d.grad())
      d.add(0, view(d.grad(), d.sizes(op.getSelf())));
    return success();
  }
};

/// What was repeated is summed by whoever adds the cotangent.
struct ExpandGradient : GradientModel<ExpandGradient, aten::ExpandOp> {
  static LogicalResult run(Derivation &d, aten::ExpandOp) {
    if (d.grad())
      d.add(0, d.grad());
    return success();
  }
};

struct PermuteGradient : GradientModel<PermuteGradient, aten::PermuteOp> {
  static LogicalResult run(Derivation &d, aten::PermuteOp op) {
    if (!d.grad())
      return success();
    SmallVector<int64_t> inverse(op.getDims().size());
    for (auto [to, from] : llvm::enumerate(op.getDims()))
      inverse[from] = static_cast<int64_t>(to);
    d.add(0, d.of(aten::PermuteOp::create(d.builder, d.emit.getLoc(), d.grad().value, inverse)));
    return success();
  }
};

struct TransposeGradient : GradientModel<TransposeGradient, aten::TransposeOp> {
  static LogicalResult run(Derivation &d, aten::TransposeOp op) {
    if (d.grad())
      d.add(0, transpose(d.grad(), op.getDim0(), op.getDim1()));
    return success();
  }
};

struct UnsqueezeGradient : GradientModel<UnsqueezeGradient, aten::UnsqueezeOp> {
  static LogicalResult run(Derivation &d, aten::UnsqueezeOp op) {
    if (d.grad())
      d.add(0, d.of(aten::SqueezeOp::create(d.builder, d.emit.getLoc(), d.grad().value,
                                            ArrayRef(static_cast<int64_t>(op.getDim())))));
    return success();
  }
};

struct SqueezeGradient : GradientModel<SqueezeGradient, aten::SqueezeOp> {
  static LogicalResult run(Derivation &d, aten::SqueezeOp op) {
    if (!d.grad())
      return success();
    SmallVector<int64_t> dims(op.getDim());
    llvm::sort(dims);
    if (aten::typeOf(op.getSelf()).getRank() == 0)
      dims.clear();
    d.add(0, restoreDims(d.grad(), dims, /*keepdim=*/false));
    return success();
  }
};

struct FlipGradient : GradientModel<FlipGradient, aten::FlipOp> {
  static LogicalResult run(Derivation &d, aten::FlipOp op) {
    if (d.grad())
      d.add(0, flip(d.grad(), op.getDims()));
    return success();
  }
};

} // namespace

void shardc::attachViewGradients(MLIRContext *context) {
  aten::ViewOp::attachInterface<ViewGradient>(*context);
  aten::ExpandOp::attachInterface<ExpandGradient>(*context);
  aten::PermuteOp::attachInterface<PermuteGradient>(*context);
  aten::TransposeOp::attachInterface<TransposeGradient>(*context);
  aten::UnsqueezeOp::attachInterface<UnsqueezeGradient>(*context);
  aten::SqueezeOp::attachInterface<SqueezeGradient>(*context);
  aten::FlipOp::attachInterface<FlipGradient>(*context);
}
