// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The form of a kernel on tensors from which a target makes loops over memory: every memory that
// the kernel writes is the place of one value.

#ifndef SHARDC_LOWERING_LINALG_DESTINATIONS_H
#define SHARDC_LOWERING_LINALG_DESTINATIONS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace shardc {

/// Whatever folding and fusion left of the kernel, afterwards
///  - each destination (`bufferization.materialize_in_destination`) has a source of its own, which
///    an op of the kernel computes: an argument, and what another destination has already, is
///    copied;
///  - each initial value that an op updates in place has that op as its only user.
/// So a place for each value is a place for each destination, and an update in place destroys
/// nothing that is read elsewhere. Inserts ops only where the form does not hold.
void separateDestinations(mlir::func::FuncOp kernel);

} // namespace shardc

#endif // SHARDC_LOWERING_LINALG_DESTINATIONS_H
