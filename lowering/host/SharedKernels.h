// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels that a target makes for single ops of the planned stage: one for all ops that are alike,
// as attention is in all layers.

#ifndef SHARDC_LOWERING_HOST_SHAREDKERNELS_H
#define SHARDC_LOWERING_HOST_SHAREDKERNELS_H

#include "dialects/exec/Exec.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/SymbolTable.h"

namespace shardc::host {

class SharedKernels {
public:
  explicit SharedKernels(mlir::ModuleOp module) : symbols(module) {}

  /// Launches a kernel of the op's operands in its place. `build` makes it from their types, as
  /// kernels have them, unless an op was replaced before that differs in its name for messages at
  /// most. The kernel does not get the first `skipped` operands. Returns whether it was called.
  bool replace(mlir::Operation *op,
               llvm::function_ref<mlir::func::FuncOp(llvm::ArrayRef<mlir::Type>)> build,
               unsigned skipped = 0);

private:
  mlir::SymbolTable symbols;
  llvm::DenseMap<mlir::Attribute, mlir::func::FuncOp> known;
};

/// An empty kernel (`exec.kernel`) of these arguments, which writes the last `results` of them that
/// have elements.
mlir::func::FuncOp makeKernel(mlir::Location loc, llvm::StringRef name,
                              llvm::ArrayRef<mlir::Type> arguments, unsigned results);

/// What an attention op asks for besides its operands.
struct AttentionOptions {
  double scale = 1;
  bool isCausal = false; ///< query i sees keys j <= first + i
  bool hasMask = false;
  bool hasLogsumexp = false; ///< forward: it is a result
  bool hasFirst = false;     ///< the number `first` is an operand, and else 0
  bool isPartial = false;    ///< the keys are some of all

  static AttentionOptions of(exec::AttentionOp op) {
    return {op.getScale().convertToDouble(), op.getCausal(),           op.getMask() != nullptr,
            op.getLogsumexp() != nullptr,    op.getFirst() != nullptr, op.getPartial()};
  }
  static AttentionOptions of(exec::AttentionBackwardOp op) {
    return {op.getScale().convertToDouble(), op.getCausal(), op.getMask() != nullptr, true,
            op.getFirst() != nullptr,        op.getPartial()};
  }
};

} // namespace shardc::host

#endif // SHARDC_LOWERING_HOST_SHAREDKERNELS_H
