// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loops over what a window covers of the spatial dims of an image in memory.

#ifndef SHARDC_LOWERING_LINALG_SPATIALLOOPS_H
#define SHARDC_LOWERING_LINALG_SPATIALLOOPS_H

#include "dialects/aten/Window.h"
#include "lowering/linalg/TensorBuilder.h"

namespace shardc {

/// Index arithmetic.
struct IndexBuilder {
  mlir::OpBuilder &b;
  mlir::Location loc;

  mlir::Value constant(int64_t value) const;
  mlir::Value of(mlir::OpFoldResult size) const;
  mlir::Value add(mlir::Value lhs, mlir::Value rhs) const;
  mlir::Value sub(mlir::Value lhs, mlir::Value rhs) const;
  mlir::Value mul(mlir::Value lhs, mlir::Value rhs) const;
  mlir::Value min(mlir::Value lhs, mlir::Value rhs) const;
  mlir::Value max(mlir::Value lhs, mlir::Value rhs) const;
  mlir::Value floorDiv(mlir::Value lhs, mlir::Value rhs) const;
  mlir::Value ceilDiv(mlir::Value lhs, mlir::Value rhs) const;
  /// First element under a window at `position`; may be negative.
  mlir::Value start(const aten::Window &window, mlir::Value position) const;
  /// Positions of a window in a dim, as aten::windowPositions.
  mlir::Value positions(const aten::Window &window, mlir::Value size, bool ceil) const;
};

/// The elements `begin`, `begin + step`, ... below `end` of a dim.
struct Span {
  mlir::Value begin, end;
  int64_t step = 1;
};

/// What the window at `position` covers of a dim of `size` elements.
Span clip(const IndexBuilder &index, const aten::Window &window, mlir::Value position,
          mlir::Value size);

/// Runs `body` for all indices in the spans, row-major, with what the last run yielded; `initial`
/// at first.
llvm::SmallVector<mlir::Value>
overSpans(mlir::OpBuilder &b, mlir::Location loc, llvm::ArrayRef<Span> spans,
          mlir::ValueRange initial,
          llvm::function_ref<llvm::SmallVector<mlir::Value>(
              mlir::OpBuilder &, llvm::ArrayRef<mlir::Value> at, mlir::ValueRange state)>
              body);

/// The sizes of `result` where those of the last dims are counted at run time: `count(i)` is that
/// of spatial dim i; those in front are those of `source`.
TensorBuilder::Sizes spatialSizes(const TensorBuilder &tensor, mlir::Value result,
                                  mlir::Value source, size_t spatial,
                                  llvm::function_ref<mlir::OpFoldResult(size_t)> count);

} // namespace shardc

#endif // SHARDC_LOWERING_LINALG_SPATIALLOOPS_H
