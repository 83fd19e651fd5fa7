// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What sizes are when symbols have certain values.

#ifndef SHARDC_LOWERING_MEMORY_SIZEESTIMATOR_H
#define SHARDC_LOWERING_MEMORY_SIZEESTIMATOR_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"

namespace shardc::memory {

/// Evaluates index computations of a function, on the first of the ranks that run it.
class SizeEstimator {
public:
  /// Symbols that are not named have typical values (TypicalSizes.h). What is no function of
  /// symbols counts as such a value.
  explicit SizeEstimator(mlir::func::FuncOp function, llvm::StringMap<int64_t> symbols = {})
      : function(function), symbols(std::move(symbols)), rank(firstRank(function)) {}

  int64_t value(mlir::Value index);
  int64_t value(mlir::Attribute extents);

private:
  static int64_t firstRank(mlir::func::FuncOp function);
  int64_t compute(mlir::Operation *op);
  int64_t symbol(llvm::StringRef name);

  mlir::func::FuncOp function;
  llvm::StringMap<int64_t> symbols;
  int64_t rank;
  llvm::DenseMap<mlir::Value, int64_t> known;
};

} // namespace shardc::memory

#endif // SHARDC_LOWERING_MEMORY_SIZEESTIMATOR_H
