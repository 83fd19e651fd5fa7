// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels that may write a result over the argument that it is computed from.

#ifndef SHARDC_LOWERING_MEMORY_ELEMENTWISEUPDATE_H
#define SHARDC_LOWERING_MEMORY_ELEMENTWISEUPDATE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace shardc::memory {

/// Whether `kernel`, on tensors, may have one memory as both arguments, however a target divides
/// its work. So it is if
///  - everything that is computed from the `source` is computed element by element, from the
///    element at the same place: nobody needs another's;
///  - each op that reads the `source` has its part in the new value: whoever computes op by op has
///    read all that it needs before it writes;
///  - it reduces nothing: threads without an element of a row read another thread's there.
bool canUpdateInPlace(mlir::func::FuncOp kernel, unsigned source, unsigned destination);

/// [source, destination] of a kernel.
using InPlaceArguments = std::pair<unsigned, unsigned>;

/// Leaves out the sources: `kernel` reads them where it writes, and says so (`exec.in_place`).
void makeInPlace(mlir::func::FuncOp kernel, llvm::ArrayRef<InPlaceArguments> pairs);

} // namespace shardc::memory

#endif // SHARDC_LOWERING_MEMORY_ELEMENTWISEUPDATE_H
