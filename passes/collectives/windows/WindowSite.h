// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Windows that slide over an image of which a rank has most rows itself and gets some from other
// ranks.

#ifndef SHARDC_PASSES_COLLECTIVES_WINDOWS_WINDOWSITE_H
#define SHARDC_PASSES_COLLECTIVES_WINDOWS_WINDOWSITE_H

#include "dialects/aten/Spatial.h"
#include "dialects/dist/Dist.h"
#include "passes/specialize/RankValues.h"

namespace shardc {

/// A number for each device.
using DeviceTable = llvm::SmallVector<int64_t>;

/// Rows of an image, along the dim in which it is put together.
struct ImageRows {
  mlir::Value value;
  DeviceTable lengths;
};

/// A window op and how its image is put together.
struct WindowSite {
  mlir::Operation *op = nullptr;
  int64_t imageDim = 0, resultDim = 0;
  aten::Window window; ///< along that dim, without padding
  aten::CatOp image;
  /// What it joins, one behind the other; slices of other dims between them and the op, the last
  /// one first.
  llvm::SmallVector<ImageRows> rows;
  llvm::SmallVector<aten::SliceOp> around;
  /// The rows that the rank has without `exchange`, which brings some of the others.
  size_t own = 0;
  mlir::Operation *exchange = nullptr;
  /// Positions of the window.
  DeviceTable positions;
  /// The interior: those that cover own rows alone. Where a device has none, both are `positions`.
  DeviceTable interiorBegin, interiorEnd;
};

/// Of the dims in which the image is put together, the one whose exchange comes last. Nothing where
/// no rank has an interior, where every position is part of it, or where sizes are not known.
/// The function's collectives are synchronous.
std::optional<WindowSite> findWindowSite(mlir::Operation *op, RankValues &ranks);

} // namespace shardc

#endif // SHARDC_PASSES_COLLECTIVES_WINDOWS_WINDOWSITE_H
