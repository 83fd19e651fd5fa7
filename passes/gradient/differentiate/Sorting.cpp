// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What was sorted goes back to where it was.

#include "dialects/aten/Sorting.h"
#include "passes/gradient/differentiate/Models.h"

using namespace mlir;
using namespace shardc;

namespace {

struct SortGradient : GradientModel<SortGradient, aten::SortOp> {
  static LogicalResult run(Derivation &d, aten::SortOp op) {
    if (d.grad())
      d.add(0, d.of(aten::ScatterAddOp::create(d.builder, d.emit.getLoc(),
                                               d.zerosLike(op.getSelf()).value, op.getDim(),
                                               op.getIndices(), d.grad().value)));
    return success();
  }
};

} // namespace

void shardc::attachSortingGradients(MLIRContext *context) {
  aten::SortOp::attachInterface<SortGradient>(*context);
}
