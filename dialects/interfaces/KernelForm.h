// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How code runs over a tensor op, as far as deciding which ops share a kernel needs it: what
// KernelOpInterface answers with. Nothing here is about one target or one dialect.
#ifndef SHARDC_DIALECTS_INTERFACES_KERNELFORM_H
#define SHARDC_DIALECTS_INTERFACES_KERNELFORM_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/SmallVector.h"

#include <optional>

namespace shardc {

enum class KernelForm {
  None,              ///< no code of its own: it must have become other ops
  Elementwise,       ///< an element of the result is made of one element of each operand
  Rows,              ///< some dims are reduced or normalised: a row of the result needs them whole
  Scan,              ///< a value is carried along one dim, and each element of the result has it
  ComputedPositions, ///< operands are read at positions that are computed: they must be in memory
  Generator,         ///< makes a tensor out of nothing, again wherever it is read
  LoopView,          ///< another way to look at memory, or a loop between two ops of a kernel
  View,              ///< another way to look at memory, and never part of a kernel
  Table,             ///< numbers that are in the program's memory
  Concatenation,     ///< operands are computed in their place in the result
  Product,           ///< matrix product
  Attention,         ///< softmax of a product, times another
  Scatter,           ///< operand 0, changed at positions that are computed
  Call,              ///< a function that is not made here
  Scalar,            ///< index arithmetic beside the kernels
};

constexpr int kNoLoop = -1;

/// The loops that compute an op.
struct Iteration {
  /// Extents of the loops, in order; kDynamic where unknown.
  llvm::SmallVector<int64_t> loops;
  /// Loops that one row of the op needs as a whole: reduced, normalised or scanned dims.
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

/// Loops over the result; operands are broadcast to it, aligned at their last dims.
Iteration elementwiseIteration(mlir::Operation *op);
/// Loops over the result; all operands are read in memory.
Iteration computedPositionsIteration(mlir::Operation *op);
/// Loops over operand 0, of which `dims` are reduced (none or empty: all). Without `keepdim` they
/// vanish from the result.
Iteration reductionIteration(mlir::Operation *op, std::optional<llvm::ArrayRef<int64_t>> dims,
                             bool keepdim);
/// As elementwise, but a row needs the dims from `first` up to `end` whole.
Iteration rowIteration(mlir::Operation *op, int64_t first, int64_t end);
/// Loops over the result; operand 0 elementwise, the others by its dim 1.
Iteration perChannelIteration(mlir::Operation *op);
/// Loops over the result of a view that rearranges dims (TensorViewOpInterface).
std::optional<Iteration> viewIteration(mlir::Operation *op);

/// What follows from the form alone; nothing for forms without loops, and for those of rows, whose
/// dims only the op knows.
std::optional<Iteration> defaultIteration(mlir::Operation *op, KernelForm form);

} // namespace shardc

#endif // SHARDC_DIALECTS_INTERFACES_KERNELFORM_H
