// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A tensor as a view of memory: where it starts, and how far apart its elements are. All functions
// build index arithmetic at the builder's place, and none of them moves data.

#ifndef SHARDC_LOWERING_MEMORY_STRIDEDVIEW_H
#define SHARDC_LOWERING_MEMORY_STRIDEDVIEW_H

#include "lowering/memory/IndexMath.h"

#include "mlir/IR/BuiltinTypes.h"

namespace shardc::memory {

struct StridedView {
  /// A dense memref: an argument of the program, a buffer of the arena, or a constant.
  mlir::Value base;
  Size offset; // elements
  Sizes sizes;
  Sizes strides; // elements

  size_t rank() const { return sizes.size(); }
  mlir::Type elementType() const {
    return mlir::cast<mlir::MemRefType>(base.getType()).getElementType();
  }
};

/// The whole of `base`, dense with these sizes.
StridedView denseView(const IndexMath &math, mlir::Value base, llvm::ArrayRef<Size> sizes);
Sizes denseStrides(const IndexMath &math, llvm::ArrayRef<Size> sizes);

/// Row-major without gaps, as far as is known. Strides of dims of size 1 do not matter.
bool isDense(const IndexMath &math, const StridedView &view);
bool hasNoElements(llvm::ArrayRef<Size> sizes);

/// The same elements in row-major order in another shape, if strides can express it (as
/// torch.Tensor.view).
std::optional<StridedView> reshape(const IndexMath &math, const StridedView &view,
                                   llvm::ArrayRef<Size> sizes);
StridedView permute(const StridedView &view, llvm::ArrayRef<int64_t> dims);
/// Dims of size 1 are repeated (stride 0); missing dims are put in front.
StridedView broadcast(const IndexMath &math, const StridedView &view, llvm::ArrayRef<Size> sizes);
/// `count` elements from `start` on, `step` apart.
StridedView slice(const IndexMath &math, const StridedView &view, int64_t dim, Size start,
                  Size count, int64_t step);
StridedView select(const IndexMath &math, const StridedView &view, int64_t dim, Size index);
StridedView insertDim(const IndexMath &math, const StridedView &view, int64_t dim);
StridedView dropDim(const StridedView &view, int64_t dim);

/// The view as a memref value: the base itself, or a reinterpretation of it.
mlir::Value toMemref(const IndexMath &math, const StridedView &view);

} // namespace shardc::memory

#endif // SHARDC_LOWERING_MEMORY_STRIDEDVIEW_H
