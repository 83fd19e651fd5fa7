// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lookups along one dim at positions that are constants and never descend, as resampling makes
// them: element i of the dim is element positions[i] of the table. A rank that has a chunk of the
// result needs little more of the table than its own chunk of that.
#ifndef SHARDC_DIALECTS_ATEN_KNOWNLOOKUPS_H
#define SHARDC_DIALECTS_ATEN_KNOWNLOOKUPS_H

#include "dialects/aten/Aten.h"
#include "dialects/aten/Emitter.h"
#include "dialects/sharding/DimSplit.h"

namespace shardc::aten {

/// The positions of any lookup whose positions are constants within a table of known size.
std::optional<llvm::SmallVector<int64_t>> constantPositions(IndexSelectOp op);

/// Those that never descend, where there is something to share out.
std::optional<llvm::SmallVector<int64_t>> ascendingPositions(IndexSelectOp op);

/// The rows of the table that elements `part` of lookups at these positions are, ascending: those
/// alone where they are few intervals, otherwise all from the first to the last.
std::vector<Run> rowsAt(llvm::ArrayRef<llvm::SmallVector<int64_t>> lookups, Run part);

/// The adjoint: for each of `size` rows the sum of those elements of `values` along `dim` whose
/// position it is. It is a sum of lookups at ascending positions; null where one row has so many
/// elements that a scatter is less work.
mlir::Value sumsAt(Emitter &emit, mlir::Value values, llvm::ArrayRef<int64_t> positions,
                   int64_t dim, int64_t size);

/// A vector of these numbers, of i64 or of f64.
mlir::Value vectorOf(Emitter &emit, llvm::ArrayRef<int64_t> numbers);
mlir::Value vectorOf(Emitter &emit, llvm::ArrayRef<double> numbers);

} // namespace shardc::aten

#endif // SHARDC_DIALECTS_ATEN_KNOWNLOOKUPS_H
