// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Whether an entry that updates parameters in place reads old values only while they are there.

#ifndef SHARDC_LOWERING_MEMORY_UPDATECHECKS_H
#define SHARDC_LOWERING_MEMORY_UPDATECHECKS_H

#include "lowering/memory/core/StridedRegion.h"

#include "dialects/exec/Exec.h"
#include "passes/verify/Violations.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"

namespace shardc::memory {

/// A memref, as a part of what it is a view of.
struct View {
  mlir::Value root;
  std::optional<StridedRegion> region; // nothing: all of it
};

/// Goes along with whoever visits the ops of an entry in order. It knows nothing where the entry
/// does not update in place.
class UpdateChecks {
public:
  UpdateChecks(mlir::func::FuncOp entry, Violations &violations);

  /// The parameter whose memory `root` is; `root` itself for all else.
  mlir::Value memoryOf(mlir::Value root) const {
    auto it = oldValues.find(root);
    return it == oldValues.end() ? root : it->second;
  }
  /// Whether `root` is the new value of a parameter.
  bool isUpdate(mlir::Value root) const { return oldValues.contains(root); }

  void commit() { isCommitted = true; }
  void read(mlir::Operation *op, const View &view);
  /// What a kernel reads where it writes.
  void readInPlace(mlir::Operation *op, const View &view);
  void write(mlir::Operation *op, const View &view);
  /// A collective in flight reads until `endFlight`.
  void readInFlight(mlir::Value token, const View &view);
  void endFlight(mlir::Value token) { flights.erase(token); }

private:
  void checkOld(mlir::Operation *op, mlir::Value memory, const View &view);

  Violations &violations;
  bool isCommitted = false;
  llvm::DenseMap<mlir::Value, mlir::Value> oldValues; // by new value
  /// Parts of parameters in which new values are, or begin to be.
  llvm::MapVector<mlir::Value, llvm::SmallVector<View>> written;
  llvm::MapVector<mlir::Value, llvm::SmallVector<View>> flights; // by token
};

} // namespace shardc::memory

#endif // SHARDC_LOWERING_MEMORY_UPDATECHECKS_H
