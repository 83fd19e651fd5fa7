// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How large values are and how long ops take on the rank that has most to do: what an optimiser has
// to assume of a program in which extents differ from rank to rank.

#ifndef SHARDC_PASSES_COLLECTIVES_ANALYSIS_LOCALCOSTS_H
#define SHARDC_PASSES_COLLECTIVES_ANALYSIS_LOCALCOSTS_H

#include "passes/cost/core/CostModel.h"
#include "passes/specialize/BindSymbols.h"
#include "passes/specialize/RankValues.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"

namespace shardc {

class LocalCosts {
public:
  /// Symbols have the values of `sizes`, others typical ones (TypicalSizes.h). A dim that cannot be
  /// followed counts as dist::kTypicalSymbol elements.
  /// Fails, with a diagnostic, for a function that is neither local nor scheduled.
  static mlir::FailureOr<LocalCosts>
  compute(mlir::func::FuncOp function, const cost::CostModel &model, const SymbolValues &sizes);

  /// Bytes of a tensor, or of what a future delivers, on the rank where it is largest.
  uint64_t bytesOf(mlir::Value value) const;
  /// Microseconds of an op as a kernel, without its launch, on the rank where it takes longest.
  double kernelUs(mlir::Operation *op) const { return us.lookup(op); }
  /// Bytes that an exchange moves (ExchangeBytes.h), the most of any rank.
  std::optional<uint64_t> exchangedBytes(mlir::Operation *op) const;

private:
  /// Which devices run what is measured.
  struct RunBy {
    llvm::ArrayRef<int64_t> which;
    Devices &all;
    RankValues &values; ///< of the instance
  };
  mlir::LogicalResult take(mlir::func::FuncOp function, mlir::func::FuncOp instance,
                           const cost::CostModel &model, std::optional<RunBy> runBy);

  // Of dynamic values, and of all ops.
  llvm::DenseMap<mlir::Value, uint64_t> bytes;
  llvm::DenseMap<mlir::Operation *, double> us;
  llvm::DenseMap<mlir::Operation *, uint64_t> exchanged;
};

/// Bytes of a tensor type; dynamic dims as above.
uint64_t bytesOf(mlir::RankedTensorType type);

} // namespace shardc

#endif // SHARDC_PASSES_COLLECTIVES_ANALYSIS_LOCALCOSTS_H
