// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From when to when the buffers of an entry matter.

#ifndef SHARDC_LOWERING_MEMORY_BUFFERLIFETIMES_H
#define SHARDC_LOWERING_MEMORY_BUFFERLIFETIMES_H

#include "dialects/exec/Exec.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace shardc::memory {

/// The buffer of which a memref value is a view: an `exec.alloc`, or something that is not planned
/// (an argument, a constant).
mlir::Value bufferOf(mlir::Value memref);

class BufferLifetimes {
public:
  explicit BufferLifetimes(mlir::func::FuncOp entry);

  struct Interval {
    unsigned first, last; // steps, both inclusive
  };
  llvm::ArrayRef<exec::AllocOp> buffers() const { return allocs; }
  /// A buffer that nothing uses has no interval.
  std::optional<Interval> interval(mlir::Value buffer) const;
  unsigned step(mlir::Operation *op) const { return steps.lookup(op); }
  /// The step at which `op` no longer reads or writes memory: its own, or for a collective in
  /// flight that of its wait (the end of the entry where there is none).
  unsigned completion(mlir::Operation *op) const;

private:
  void use(mlir::Value memref, unsigned step);

  llvm::SmallVector<exec::AllocOp> allocs;
  llvm::DenseMap<mlir::Operation *, unsigned> steps;
  llvm::DenseMap<mlir::Operation *, unsigned> completions;
  llvm::DenseMap<mlir::Value, Interval> intervals;
  unsigned end = 0;
};

} // namespace shardc::memory

#endif // SHARDC_LOWERING_MEMORY_BUFFERLIFETIMES_H
