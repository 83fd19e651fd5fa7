// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The collectives of a function in the order in which every rank starts them, and what must be the
// same about them on all ranks.

#ifndef SHARDC_PASSES_COLLECTIVES_VERIFY_SEQUENCE_H
#define SHARDC_PASSES_COLLECTIVES_VERIFY_SEQUENCE_H

#include "dialects/dist/Dist.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace shardc {

struct SequenceEntry {
  dist::CollectiveOpInterface op;
  /// Its number in the sequence that all ranks share: `dist.ordinal`, or its place here.
  int64_t ordinal;
  /// Kind, group, reduction, root, pairs, dims and element types: the same on every rank.
  std::string what;
  /// Elements that all ranks of one group agree on, tensor by tensor (the whole for gathers, what
  /// is cut for scatters), and extents by position: the same on the ranks of a group. `?` where
  /// they depend on a symbol.
  std::string counts;
};

std::vector<SequenceEntry> getSequence(mlir::func::FuncOp function);

/// SHA-1 over `what` of all entries, shortened.
std::string hashSequence(llvm::ArrayRef<SequenceEntry> sequence);

} // namespace shardc

#endif // SHARDC_PASSES_COLLECTIVES_VERIFY_SEQUENCE_H
