// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ops whose window slides over dims that are sharded (semantics.md H1): a rank has a chunk of the
// image and a chunk of the positions, and the positions near the borders of a chunk cover elements
// of other ranks. `coveredImage` brings these elements before the op; `haloSum` adds what the op
// makes for elements of other ranks to what their owners have, behind it.
#ifndef SHARDC_PASSES_LOCALIZE_HALOS_H
#define SHARDC_PASSES_LOCALIZE_HALOS_H

#include "dialects/aten/Window.h"
#include "passes/localize/Localizer.h"
#include "passes/localize/SymbolicHalos.h"

namespace shardc {

/// A dim over which a window slides and which is sharded.
struct HaloDim {
  size_t spatial;     ///< which of the windows
  int64_t imageDim;   ///< of the image
  SplitDim image;     ///< how it is laid out
  SplitDim positions; ///< likewise the positions of the window
  aten::Window window;
  /// Which operand the image is, where it is one.
  unsigned operand = 0;
  /// For every position of the mesh; nothing of a symbolic dim.
  llvm::SmallVector<aten::Cover> covers = {};
  /// Where the positions are a dim of operand 0, and the image is the result.
  bool isAdjoint = false;
  /// The dim of the positions, which haloDims finds; what has no symbolic sizes needs none.
  int64_t positionsDim = 0;

  /// Whether sizes are known only when the program runs.
  bool isSymbolic() const { return image.size == kDynamic || positions.size == kDynamic; }

  /// Finds what every rank covers.
  void findCovers(const Mesh &mesh);

  /// A number for each rank.
  template <typename F> llvm::SmallVector<int64_t> table(F &&number) const {
    return llvm::map_to_vector(covers, number);
  }
};

/// The dims of op's operand 0 (the image, or where the op is an `adjoint`, the positions) and
/// result 0 that need halos. The spatial dims are the last ones.
llvm::SmallVector<HaloDim> haloDims(Localizer &localizer, llvm::ArrayRef<aten::Window> windows,
                                    bool isAdjoint = false);

/// What this rank's positions cover, as index values.
IndexCover coverOnRank(Localizer &localizer, mlir::OpBuilder &builder, const HaloDim &dim);

/// The part of the image that this rank's positions cover, the padding of halo dims included.
struct CoveredImage {
  mlir::Value value;
  llvm::SmallVector<mlir::OpFoldResult> sizes;
};
/// `dims` are of one operand, `local` is what this rank has of it, and `fill` is the padding's
/// value.
CoveredImage coveredImage(Localizer &localizer, mlir::OpBuilder &builder,
                          llvm::ArrayRef<HaloDim> dims, mlir::Value local, double fill);

/// What of the present op's operand 0 each of `parts` covers, which slide as the op's first halo
/// dim `dim` does: in one exchange with what the op covers itself, and others beside it.
llvm::SmallVector<mlir::Value> coveredParts(Localizer &localizer, mlir::OpBuilder &builder,
                                            const HaloDim &dim, llvm::ArrayRef<HaloDim> parts,
                                            mlir::Value local, double fill);

/// Windows that have no padding in the halo dims, where it is part of the covered image.
aten::Windows withoutPadding(llvm::ArrayRef<aten::Window> windows, llvm::ArrayRef<HaloDim> dims);

/// `covered` has, in the halo dims, something for every element that this rank's positions cover,
/// padding included. Returns the sum, or the largest (which no dim of symbolic size has), of what
/// all ranks have for the elements of this one.
mlir::Value haloSum(Localizer &localizer, mlir::OpBuilder &builder, llvm::ArrayRef<HaloDim> dims,
                    mlir::Value covered, llvm::ArrayRef<mlir::OpFoldResult> sizes,
                    Reduction reduction = Reduction::Sum);

} // namespace shardc

#endif // SHARDC_PASSES_LOCALIZE_HALOS_H
