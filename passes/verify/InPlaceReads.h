// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels that write over what they read: whether no order in which a target may compute their
// elements, or their ops, makes a difference.

#ifndef SHARDC_PASSES_VERIFY_INPLACEREADS_H
#define SHARDC_PASSES_VERIFY_INPLACEREADS_H

#include "mlir/IR/Value.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/Twine.h"

namespace shardc {

/// Of a kernel whose ops are `linalg` on tensors, and a destination that it reads as well. Reports
///
///  - an op that computes an element from another one of the old value, or from what was computed
///    from it;
///  - an op that reads the old value, and has no part in the new one: it may run behind the write.
///
/// In later forms loops run over these ops in this order, tile by tile: there it has nothing to
/// say.
void checkInPlaceReads(mlir::BlockArgument destination,
                       llvm::function_ref<void(mlir::Operation *, const llvm::Twine &)> report);

} // namespace shardc

#endif // SHARDC_PASSES_VERIFY_INPLACEREADS_H
