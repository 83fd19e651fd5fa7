// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Starts and waits as one op, for as long as rules look at them.

#ifndef SHARDC_PASSES_COLLECTIVES_SIMPLIFY_PAIRS_H
#define SHARDC_PASSES_COLLECTIVES_SIMPLIFY_PAIRS_H

#include "dialects/dist/Dist.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Region.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace shardc {

/// The asynchronous collectives of a region. Between `join` and `split` each is a synchronous one
/// in the place of its start, whose results are used in place of those of its waits. `split` puts
/// what no rule touched back as it was. Where there were any, what rules made becomes a start
/// in its place and a wait before its first use. A future that is not waited for exactly once, in
/// the block of its start, stays out of this: one that is returned. Near-linear in the ops.
class AsyncPairs {
public:
  explicit AsyncPairs(mlir::Region &region) : region(region) {}
  void join();
  void split();
  /// To be told of every op that goes in between: another may get its memory.
  void forget(mlir::Operation *op);

private:
  struct Waited {
    /// Of the wait, in the order of the region as it was.
    unsigned number;
    mlir::Location location;
  };
  class Splitter;

  mlir::Region &region;
  llvm::DenseMap<mlir::Operation *, unsigned> numbers;
  /// Results of what was joined, in order.
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<Waited, 1>> joined;
  llvm::DenseSet<mlir::Operation *> synchronous; // from the start
  bool any = false;
};

/// Joins the pairs of a function while `change` runs, and splits them behind it, also if it fails.
inline llvm::LogicalResult
whileSynchronous(mlir::func::FuncOp function,
                 llvm::function_ref<llvm::LogicalResult(AsyncPairs &)> change) {
  AsyncPairs pairs(function.getBody());
  pairs.join();
  llvm::LogicalResult done = change(pairs);
  pairs.split();
  return done;
}

} // namespace shardc

#endif // SHARDC_PASSES_COLLECTIVES_SIMPLIFY_PAIRS_H
