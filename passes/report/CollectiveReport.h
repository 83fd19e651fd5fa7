// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a program communicates, for people and for scripts (`shardc explain`).
#ifndef SHARDC_PASSES_REPORT_COLLECTIVEREPORT_H
#define SHARDC_PASSES_REPORT_COLLECTIVEREPORT_H

#include "dialects/dist/Dist.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/JSON.h"

namespace shardc {

/// One collective of the program. Bytes are those that one rank sends, by ring volumes: (n-1)/n of
/// the full tensor for an all-gather or reduce-scatter, twice that for an all-reduce, (n-1)/n of
/// the local one for an all-to-all, the local one for a permute and a broadcast.
struct CollectiveRecord {
  dist::CollectiveKind kind;
  std::string group; ///< axes, e.g. `tp`, or rank lists
  int64_t groupSize = 1;
  unsigned tensors = 0;
  double bytesPerRank = 0; ///< the largest of all ranks; symbolic dims count as 1
  bool symbolic = false;   ///< bytesPerRank depends on a symbolic dim
  std::string elementType, reduction, module, location;
  /// What the optimiser of collectives has decided about it (DecisionAttributes.h); null if
  /// nothing.
  mlir::DictionaryAttr bucket, alone;
};

struct CollectiveReport {
  Mesh mesh;
  std::vector<CollectiveRecord> collectives; ///< in program order
  mlir::DictionaryAttr predicted;            ///< null where nothing was predicted
};

/// Reads the local or scheduled stage. Where the program was specialised, a collective's bytes are
/// the largest over the clones. Linear in the number of ops.
CollectiveReport reportCollectives(mlir::ModuleOp module);

/// `{"world", "mesh", "collectives": [...], "totals": {...}, "predicted": {...}}`, without remarks.
/// A collective has "bucket" or "alone" where the optimiser has decided about it.
llvm::json::Object toJson(const CollectiveReport &report);

/// For each collective that was left alone, why.
struct AloneRemark {
  std::string message, module, location;
};
std::vector<AloneRemark> remarksOf(const CollectiveReport &report);

/// A table: one line for each group of equal collectives, with the modules they come from.
void printText(const CollectiveReport &report, llvm::raw_ostream &os);

} // namespace shardc

#endif // SHARDC_PASSES_REPORT_COLLECTIVEREPORT_H
