// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What this lowering makes of each form in which code runs over an op (KernelOpInterface).

#ifndef SHARDC_LOWERING_LINALG_ITERATION_H
#define SHARDC_LOWERING_LINALG_ITERATION_H

#include "dialects/interfaces/KernelForm.h"

namespace shardc {

/// What becomes of an op.
enum class OpClass {
  Fusible,    // part of a kernel together with its neighbours
  Generator,  // makes a tensor out of nothing: copied into each kernel that reads it
  View,       // only another way to look at memory; some are fusible too, between ops of one kernel
  Gemm,       // matrix product: a service of the runtime
  Attention,  // a kernel that the host program builds
  Scatter,    // likewise, and a copy
  Call,       // of a function that is not made here
  Concat,     // its operands are computed in place
  Collective, // dist collectives and waits
  Scalar,     // index arithmetic of the host program
  Unsupported,
};
OpClass classify(mlir::Operation *op);

/// True for views that a kernel can compute between two of its ops.
bool isFusibleView(mlir::Operation *op);

/// True for generators, and fusible views of them: what a kernel can make again instead of reading
/// it.
bool isCopyable(mlir::Operation *op);

/// Nothing for ops that are not `Fusible`, generators or fusible views.
std::optional<Iteration> describeIteration(mlir::Operation *op);

} // namespace shardc

#endif // SHARDC_LOWERING_LINALG_ITERATION_H
