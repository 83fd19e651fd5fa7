// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A window op as several, of which one needs nothing that other ranks send.

#ifndef SHARDC_PASSES_COLLECTIVES_WINDOWS_SPLITWINDOW_H
#define SHARDC_PASSES_COLLECTIVES_WINDOWS_SPLITWINDOW_H

#include "passes/collectives/windows/WindowSite.h"

namespace shardc {

/// Puts the interior, in as many pieces as asked for, and the positions before and behind it in
/// place of the op, and their concatenation in place of its result. `erased` is told of every op
/// that goes: the op, and what nothing uses without it. Returns the pieces of the interior.
llvm::SmallVector<mlir::Operation *>
splitWindow(const WindowSite &site, unsigned pieces, RankValues &ranks,
            llvm::function_ref<void(mlir::Operation *)> erased);

/// Where all that is left of an image is read by slices along other dims, the slices of its parts
/// are joined instead: few columns of many rows. `erased` is told of every op that goes.
void sliceBeforeJoining(aten::CatOp image, RankValues &ranks,
                        llvm::function_ref<void(mlir::Operation *)> erased);

} // namespace shardc

#endif // SHARDC_PASSES_COLLECTIVES_WINDOWS_SPLITWINDOW_H
