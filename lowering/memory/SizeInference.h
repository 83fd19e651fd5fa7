// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sizes of the results of tensor ops as index values: what types leave open (`?`).

#ifndef SHARDC_LOWERING_MEMORY_SIZEINFERENCE_H
#define SHARDC_LOWERING_MEMORY_SIZEINFERENCE_H

#include "lowering/memory/IndexMath.h"

#include "mlir/IR/Operation.h"

namespace shardc::memory {

using SizesOf = llvm::function_ref<Sizes(mlir::Value)>;
using IndexOf = llvm::function_ref<mlir::Value(mlir::Value)>;

/// Sizes of result `result` of an aten op, from those of its operands. `index` maps index operands
/// to values that the builder may use. Null where the op does not determine them (a diagnostic has
/// been emitted).
mlir::FailureOr<Sizes> inferSizes(const IndexMath &math, mlir::Operation *op, unsigned result,
                                  SizesOf sizesOf, IndexOf index);

/// First and number of elements of `[start : end : step]` along a dim of size `size`, clipped as in
/// Python.
struct SliceRange {
  Size start, count;
};
SliceRange sliceRange(const IndexMath &math, Size start, Size end, int64_t step, Size size);

} // namespace shardc::memory

#endif // SHARDC_LOWERING_MEMORY_SIZEINFERENCE_H
