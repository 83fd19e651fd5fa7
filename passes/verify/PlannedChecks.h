// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The stage `planned`, part by part. Each adds what it finds.

#ifndef SHARDC_PASSES_VERIFY_PLANNEDCHECKS_H
#define SHARDC_PASSES_VERIFY_PLANNEDCHECKS_H

#include "passes/verify/Violations.h"

#include "dialects/exec/Exec.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace shardc {

/// The buffer of which a memref value is a view: an `exec.alloc`, an argument or a constant.
mlir::Value rootOf(mlir::Value memref);

/// The functions of a module by name, and which arguments its kernels write.
class PlannedModule {
public:
  explicit PlannedModule(mlir::ModuleOp module);

  mlir::func::FuncOp function(llvm::StringRef name) const { return functions.lookup(name); }
  /// The memory that `op` writes, as positions of its operands. For ops of an entry.
  llvm::BitVector writtenOperands(mlir::Operation *op);

private:
  const llvm::BitVector &writtenArguments(mlir::func::FuncOp kernel);

  llvm::StringMap<mlir::func::FuncOp> functions;
  llvm::DenseMap<mlir::Operation *, llvm::BitVector> written;
};

/// Every buffer has a place inside the arena, and buffers in use at the same time lie apart. A
/// collective in flight uses its buffers until its wait.
void checkArena(mlir::func::FuncOp entry, const PlannedModule &module, Violations &violations);

struct FlightStatistics {
  int64_t unproven =
      0; ///< pairs of views of one buffer of which it is not known whether they share memory
};
/// Nothing writes what a collective in flight reads, or touches what it writes; no op writes memory
/// that another of its operands is. Tokens are waited for at most once.
void checkFlights(mlir::func::FuncOp entry, PlannedModule &module, Violations &violations,
                  FlightStatistics &statistics);

} // namespace shardc

#endif // SHARDC_PASSES_VERIFY_PLANNEDCHECKS_H
