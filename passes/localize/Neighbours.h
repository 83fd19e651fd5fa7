// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Elements of a dim that a rank lacks for its part of a result, from the ranks that have them: the
// boundary of a shard where a part is cut off, padded or joined. Each element that a rank has
// already stays where it is, and where no rank lacks anything there is no collective.
#ifndef SHARDC_PASSES_LOCALIZE_NEIGHBOURS_H
#define SHARDC_PASSES_LOCALIZE_NEIGHBOURS_H

#include "passes/localize/Localizer.h"

namespace shardc {

/// Global indices of a dim, as ascending intervals, for every position of the mesh.
using WantedRuns = llvm::SmallVector<std::vector<Run>>;

/// What every rank holds of a dim, moved by `shift` and cut to [0, size).
WantedRuns shiftedRuns(const Mesh &mesh, const SplitDim &held, int64_t shift, int64_t size);

/// An operand of the op that is being localised, which is brought dim by dim into other parts than
/// its layout's.
class PartFetcher {
public:
  PartFetcher(Localizer &localizer, mlir::OpBuilder &builder, unsigned operand, mlir::Value local);

  /// Every rank gets these elements of `dim`, whose size is known. `axes`: those of the mesh that
  /// decide what a rank wants.
  void fetch(int64_t dim, const WantedRuns &wanted, llvm::ArrayRef<unsigned> axes);
  mlir::Value get() const { return value; }
  llvm::ArrayRef<mlir::OpFoldResult> getSizes() const { return sizes; }

private:
  Localizer &localizer;
  mlir::OpBuilder &builder;
  unsigned operand;
  mlir::Value value;
  llvm::SmallVector<mlir::OpFoldResult> sizes;
};

} // namespace shardc

#endif // SHARDC_PASSES_LOCALIZE_NEIGHBOURS_H
