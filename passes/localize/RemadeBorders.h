// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Images of which ranks make rows of others again, rather than fetch them: where windows slide over
// what other windows have made, as in one convolution behind another, one exchange of the first
// image that is wider brings what both need. This is for where it moves less, and computes little
// more.
#ifndef SHARDC_PASSES_LOCALIZE_REMADEBORDERS_H
#define SHARDC_PASSES_LOCALIZE_REMADEBORDERS_H

#include "passes/localize/Halos.h"
#include "passes/localize/core/RowsBeside.h"

namespace shardc {

struct RemadeBorder {
  /// The op with windows of which the image is made: row i of the image is its position i.
  mlir::Operation *source;
  HaloDim halo;                             ///< of the source
  llvm::SmallVector<mlir::Operation *> ops; ///< elementwise, from the source to the image, in order
  RowsBeside rows;                          ///< that are made again, for every position of the mesh

  /// What the source covers for some rows of each rank.
  HaloDim haloOf(llvm::ArrayRef<Run> rows) const;
};

/// Those of one function, each decided on once. Images are placed values; windows slide over their
/// dim `dim`.
class RemadeBorders {
public:
  /// Null for an image whose rows are fetched.
  const RemadeBorder *of(mlir::Value image, int64_t dim);
  /// Those that are made of what ops with windows over `image` make.
  llvm::SmallVector<const RemadeBorder *> from(mlir::Value image, int64_t dim);

  /// How many images have them.
  int64_t count() const;

private:
  llvm::DenseMap<std::pair<mlir::Value, int64_t>, std::unique_ptr<RemadeBorder>> known;
};

} // namespace shardc

#endif // SHARDC_PASSES_LOCALIZE_REMADEBORDERS_H
