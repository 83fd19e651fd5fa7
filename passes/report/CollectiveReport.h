// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a program communicates, for people and for scripts (`shardc explain`).
#ifndef SHARDC_PASSES_REPORT_COLLECTIVEREPORT_H
#define SHARDC_PASSES_REPORT_COLLECTIVEREPORT_H

#include "dialects/dist/Dist.h"
#include "passes/report/EntryPrediction.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/JSON.h"

namespace shardc {

/// One collective of the program. Bytes are those that one rank sends, by ring volumes: (n-1)/n of
/// the full tensor for an all-gather or reduce-scatter, twice that for an all-reduce, (n-1)/n of
/// the local one for an all-to-all, the local one for a permute and a broadcast.
struct CollectiveRecord {
  std::string entry; ///< the function that it is in
  CollectiveKind kind;
  std::string group; ///< axes, e.g. `tp`, or rank lists
  int64_t groupSize = 1;
  unsigned tensors = 0;
  double bytesPerRank = 0; ///< the largest of all ranks
  std::string elementType, reduction, module, location;
  bool backward = false; ///< of what the backward of the module computes
  std::string why; ///< what it is made for: `partial sums of aten.linear; aten.add needs the total`
  CollectivePrediction predicted;
  /// What the optimiser of collectives has decided about it (DecisionAttributes.h); null if
  /// nothing.
  mlir::DictionaryAttr bucket, alone;
};

/// What a symbol was taken to be.
struct AssumedSize {
  std::string symbol;
  int64_t value = 0;
  std::string where; ///< an input dim of that size: `dim 0 of x`; empty where there is none
};

/// A function of the program, with all its variants.
struct EntryReport {
  std::string name;
  EntryPrediction prediction;
  std::vector<ModuleRecord> modules;
  /// Of the optimiser, with its figures for the program before (DecisionAttributes.h); null if the
  /// collectives are as placement made them.
  mlir::DictionaryAttr optimized;
  /// What the backward computes again (RecomputeAttributes.h); null if nothing.
  mlir::DictionaryAttr recomputed;
};

struct CollectiveReport {
  Mesh mesh;
  std::vector<std::pair<std::string, Mesh>> meshes; ///< further ones, by name
  int64_t world = 1;                                ///< ranks of all meshes
  std::vector<AssumedSize> sizes;
  std::vector<CollectiveRecord> collectives; ///< in program order
  std::vector<EntryReport> entries;          ///< in program order
};

/// Leaves the entry of this name alone in the report. Fails, with a message that names them all,
/// where there is none.
mlir::LogicalResult keepEntry(CollectiveReport &report, llvm::StringRef name, std::string &message);

/// Reads the specialised local or scheduled stage, with all shapes static. A collective's bytes are
/// the largest over the clones of a function. Linear in the number of ops.
mlir::FailureOr<CollectiveReport> reportCollectives(mlir::ModuleOp module,
                                                    const cost::CostModel &model);

/// `{"world", "mesh", "sizes", "collectives": [...], "totals": {...}, "modules": [...],
/// "predicted": {...}}`, without remarks. A collective has "bucket" or "alone" where the optimiser
/// has decided about it. With several entries, "totals" are those of all, and "predicted" has one
/// object for each.
llvm::json::Object toJson(const CollectiveReport &report);

/// What moved one collective's data to be communicated, from the ops around it.
std::string explainCollective(dist::CollectiveOpInterface op);

/// Something that a report has to say beside its tables.
struct ReportRemark {
  std::string message, module, location;
};
/// For each collective that was left alone, why.
std::vector<ReportRemark> remarksOf(const CollectiveReport &report);

/// Tables, for each entry: one line for each group of collectives that differ in their layer only,
/// with their buckets; totals; where there is a backward, one line for the forward and one for the
/// backward of each module, those of repeated layers as one; what is predicted. Then remarks, those
/// of repeated layers as one.
void printText(const CollectiveReport &report, llvm::ArrayRef<ReportRemark> remarks,
               llvm::raw_ostream &os);

} // namespace shardc

#endif // SHARDC_PASSES_REPORT_COLLECTIVEREPORT_H
