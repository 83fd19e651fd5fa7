// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/linalg/Iteration.h"

#include "dialects/dist/Dist.h"
#include "dialects/interfaces/OpInterfaces.h"

using namespace mlir;

namespace shardc {

/// Matrix products of other element types are nobody's service.
static bool isFloatProduct(Operation *op) {
  Type element = cast<RankedTensorType>(op->getResult(0).getType()).getElementType();
  return element.isF32() || element.isF64() || element.isF16() || element.isBF16();
}

static KernelForm formOf(Operation *op) {
  auto kernel = dyn_cast<KernelOpInterface>(op);
  return kernel ? kernel.getKernelForm() : KernelForm::None;
}

bool isFusibleView(Operation *op) { return formOf(op) == KernelForm::LoopView; }

bool isCopyable(Operation *op) {
  while (op && isFusibleView(op))
    op = op->getOperand(0).getDefiningOp();
  return op && formOf(op) == KernelForm::Generator;
}

OpClass classify(Operation *op) {
  if (!isa<KernelOpInterface>(op)) {
    bool isScalar =
        llvm::all_of(op->getResultTypes(), [](Type type) { return type.isIntOrIndexOrFloat(); });
    bool isDist = isa_and_nonnull<dist::DistDialect>(op->getDialect());
    if (isDist && (!isScalar || op->getNumResults() == 0))
      return OpClass::Collective;
    return isScalar ? OpClass::Scalar : OpClass::Unsupported;
  }
  switch (formOf(op)) {
  case KernelForm::None:
    return OpClass::Unsupported;
  case KernelForm::Elementwise:
  case KernelForm::Rows:
  case KernelForm::Scan:
  case KernelForm::ComputedPositions:
    return OpClass::Fusible;
  case KernelForm::Generator:
    return OpClass::Generator;
  case KernelForm::LoopView:
  case KernelForm::View:
  case KernelForm::Table:
    return OpClass::View;
  case KernelForm::Concatenation:
    return OpClass::Concat;
  case KernelForm::Product:
    return isFloatProduct(op) ? OpClass::Gemm : OpClass::Unsupported;
  case KernelForm::Attention:
    return OpClass::Attention;
  case KernelForm::Scatter:
    return OpClass::Scatter;
  case KernelForm::Call:
    return OpClass::Call;
  case KernelForm::Scalar:
    return OpClass::Scalar;
  }
  llvm_unreachable("all forms are listed");
}

std::optional<Iteration> describeIteration(Operation *op) {
  auto kernel = dyn_cast<KernelOpInterface>(op);
  return kernel ? kernel.getIteration() : std::nullopt;
}

} // namespace shardc
