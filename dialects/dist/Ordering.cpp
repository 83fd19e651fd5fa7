// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dialects/dist/Ordering.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::dist;

#define GET_OP_CLASSES
#include "dialects/dist/Ordering.cpp.inc"

KernelForm AfterOp::getKernelForm() { return KernelForm::View; }

ViewKind AfterOp::getViewKind() { return ViewKind::Alias; }

std::optional<SmallVector<int64_t>> AfterOp::getSourceDims() {
  int64_t rank = cast<RankedTensorType>(getInput().getType()).getRank();
  return llvm::to_vector(llvm::seq<int64_t>(0, rank));
}

FailureOr<SmallVector<SmallVector<Dim>>> AfterOp::inferResultSizes(SizeAlgebra &sizes) {
  return SmallVector<SmallVector<Dim>>{sizes.sizesOf(getInput())};
}
