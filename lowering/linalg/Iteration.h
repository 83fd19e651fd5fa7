// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How a tensor op runs over its operands, as far as deciding which ops share a kernel needs it.

#ifndef SHARDC_LOWERING_LINALG_ITERATION_H
#define SHARDC_LOWERING_LINALG_ITERATION_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Operation.h"

#include <optional>

namespace shardc {

/// What becomes of an op.
enum class OpClass {
  Fusible,    // part of a kernel together with its neighbours
  Generator,  // makes a tensor out of nothing: copied into each kernel that reads it
  View,       // only another way to look at memory; some are Fusible too, between ops of one kernel
  Gemm,       // matrix product: a service of the runtime
  Attention,  // a kernel that the host program builds
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

constexpr int kNoLoop = -1;

struct Iteration {
  /// Extents of the loops, in order; kDynamic where unknown.
  llvm::SmallVector<int64_t> loops;
  /// Loops that one row of the op needs as a whole: reduced or normalised dims.
  llvm::SmallVector<bool> whole;
  struct Access {
    /// Loop that indexes each dim, or kNoLoop where all loops read the one element of the dim.
    llvm::SmallVector<int> loops;
    /// Read at computed positions, or checked before the kernel starts: must exist in memory.
    bool inMemory = false;
  };
  /// One for each operand (index operands have none of it) and one for the result.
  llvm::SmallVector<Access> operands;
  Access result;
  bool reduces = false;
};

/// Nothing for ops that are not `Fusible`, generators or fusible views.
std::optional<Iteration> describeIteration(mlir::Operation *op);

} // namespace shardc

#endif // SHARDC_LOWERING_LINALG_ITERATION_H
