// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Windows at the borders of shards of which each rank makes a part from its own elements: what it
// makes for positions of others goes to these, which add it up. This is for where it moves less
// than the elements under the windows (core/BorderExchange.h).
#ifndef SHARDC_PASSES_LOCALIZE_PARTIALWINDOWS_H
#define SHARDC_PASSES_LOCALIZE_PARTIALWINDOWS_H

#include "passes/localize/Halos.h"

namespace shardc {

/// The present op's result 0 on this rank, in which the parts of windows are combined by
/// `reduction`, a sum or the largest. `dims` are the halo dims of its operand 0, `local` is what
/// this rank has of that, and `fill` leaves a part as it is. `make` gives what the op makes of an
/// image for the positions that it has, in windows without padding in these dims. Null where it
/// moves less, or as much, that ranks fetch all elements.
mlir::Value partialWindows(Localizer &localizer, mlir::OpBuilder &builder,
                           llvm::ArrayRef<HaloDim> dims, mlir::Value local, double fill,
                           Reduction reduction,
                           llvm::function_ref<mlir::Value(mlir::Value image)> make);

} // namespace shardc

#endif // SHARDC_PASSES_LOCALIZE_PARTIALWINDOWS_H
