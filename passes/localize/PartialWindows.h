// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Windows at the borders of shards of which each rank makes a part from its own elements: what it
// makes for positions of others goes to these, which add it up. This is for where it moves less
// than the elements under the windows (core/BorderExchange.h).
#ifndef SHARDC_PASSES_LOCALIZE_PARTIALWINDOWS_H
#define SHARDC_PASSES_LOCALIZE_PARTIALWINDOWS_H

#include "dialects/aten/Spatial.h"
#include "passes/localize/Halos.h"

namespace shardc {

/// The present op's result 0 on this rank, put together from parts of windows. `dims` are the halo
/// dims of its operand 0, and `local` is what this rank has of that. `make` gives what the op makes
/// of an image for the positions that it has, in windows without padding in these dims. Null where
/// the op cannot be put together, and where it moves less, or as much, that ranks fetch all
/// elements.
mlir::Value partialWindows(Localizer &localizer, mlir::OpBuilder &builder,
                           aten::WindowOpInterface op, llvm::ArrayRef<HaloDim> dims,
                           mlir::Value local,
                           llvm::function_ref<mlir::Value(mlir::Value image)> make);

} // namespace shardc

#endif // SHARDC_PASSES_LOCALIZE_PARTIALWINDOWS_H
