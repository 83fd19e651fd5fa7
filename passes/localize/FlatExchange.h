// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The collective of exchanges whose messages have lengths that are known only when the program
// runs.
#ifndef SHARDC_PASSES_LOCALIZE_FLATEXCHANGE_H
#define SHARDC_PASSES_LOCALIZE_FLATEXCHANGE_H

#include "passes/localize/LocalIndices.h"

namespace shardc {

/// How many elements there are for each element of the exchanged dims: the product of the other
/// sizes.
mlir::Value unitOf(LocalIndices &indices, llvm::ArrayRef<mlir::OpFoldResult> sizes,
                   llvm::ArrayRef<int64_t> exchanged);

/// `sent` is flat: `leaving[m]` elements for each member m of the group over these mesh axes, in
/// order. Returns `arriving[m]` elements of each, likewise, in one dist.all_to_all.
mlir::Value emitFlatExchange(LocalIndices &indices, llvm::ArrayRef<unsigned> axes, mlir::Value sent,
                             llvm::ArrayRef<mlir::Value> leaving,
                             llvm::ArrayRef<mlir::Value> arriving);

} // namespace shardc

#endif // SHARDC_PASSES_LOCALIZE_FLATEXCHANGE_H
