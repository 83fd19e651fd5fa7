// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Errors of one kind are one report with a count and a few places, however large the program is.

#ifndef SHARDC_PASSES_VERIFY_VIOLATIONS_H
#define SHARDC_PASSES_VERIFY_VIOLATIONS_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/MapVector.h"

#include <map>

namespace shardc {

class Violations {
public:
  /// `what` is the whole message but for the place.
  void add(mlir::Location place, const llvm::Twine &what);
  /// "'op' WHAT"
  void add(mlir::Operation *op, const llvm::Twine &what);

  /// Emits what was added, in order of first occurrence.
  llvm::LogicalResult report() const;
  bool empty() const { return entries.empty(); }

private:
  struct Entry {
    llvm::SmallVector<mlir::Location, 3> places; ///< the first few
    int64_t count = 0;
  };
  llvm::MapVector<std::string, Entry, std::map<std::string, unsigned>> entries;
};

} // namespace shardc

#endif // SHARDC_PASSES_VERIFY_VIOLATIONS_H
