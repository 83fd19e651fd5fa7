// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/memory/StridedView.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

namespace shardc::memory {

Sizes denseStrides(const IndexMath &math, ArrayRef<Size> sizes) {
  Sizes strides(sizes.size());
  Size stride = math.constant(1);
  for (size_t dim = sizes.size(); dim-- > 0;) {
    strides[dim] = stride;
    if (dim > 0)
      stride = math.mul(stride, sizes[dim]);
  }
  return strides;
}

StridedView denseView(const IndexMath &math, Value base, ArrayRef<Size> sizes) {
  return {base, math.constant(0), Sizes(sizes), denseStrides(math, sizes)};
}

bool hasNoElements(ArrayRef<Size> sizes) {
  return llvm::any_of(sizes, [](Size size) { return isConstant(size, 0); });
}

bool isDense(const IndexMath &math, const StridedView &view) {
  if (hasNoElements(view.sizes))
    return true;
  Size expected = math.constant(1);
  for (size_t dim = view.rank(); dim-- > 0;) {
    if (isConstant(view.sizes[dim], 1))
      continue;
    if (!sameSize(view.strides[dim], expected))
      return false;
    expected = math.mul(expected, view.sizes[dim]);
  }
  return true;
}

namespace {

/// Dims that are dense among themselves: as one dim.
struct Run {
  Size count;
  Size stride;
};

/// From the innermost outwards, without dims of size 1.
SmallVector<Run> denseRuns(const IndexMath &math, const StridedView &view) {
  SmallVector<Run> runs;
  Size next; // stride with which a dim continues the last run
  for (size_t dim = view.rank(); dim-- > 0;) {
    if (isConstant(view.sizes[dim], 1))
      continue;
    if (runs.empty() || !sameSize(view.strides[dim], next))
      runs.push_back({math.constant(1), view.strides[dim]});
    runs.back().count = math.mul(runs.back().count, view.sizes[dim]);
    next = math.mul(view.strides[dim], view.sizes[dim]);
  }
  return runs;
}

} // namespace

std::optional<StridedView> reshape(const IndexMath &math, const StridedView &view,
                                   ArrayRef<Size> sizes) {
  StridedView result{view.base, view.offset, Sizes(sizes), Sizes(sizes.size(), math.constant(1))};
  if (isDense(math, view)) {
    result.strides = denseStrides(math, sizes);
    return result;
  }
  // Each run of old dims is cut into the new dims that have as many elements together.
  size_t dim = sizes.size();
  for (const Run &run : denseRuns(math, view)) {
    Size count = math.constant(1);
    Size stride = run.stride;
    while (!sameSize(count, run.count)) {
      if (dim == 0)
        return std::nullopt;
      --dim;
      if (isConstant(sizes[dim], 1))
        continue;
      count = math.mul(count, sizes[dim]);
      result.strides[dim] = stride;
      stride = math.mul(stride, sizes[dim]);
    }
  }
  while (dim > 0)
    if (!isConstant(sizes[--dim], 1))
      return std::nullopt;
  return result;
}

StridedView permute(const StridedView &view, ArrayRef<int64_t> dims) {
  StridedView result{view.base, view.offset, {}, {}};
  for (int64_t dim : dims) {
    result.sizes.push_back(view.sizes[dim]);
    result.strides.push_back(view.strides[dim]);
  }
  return result;
}

StridedView broadcast(const IndexMath &math, const StridedView &view, ArrayRef<Size> sizes) {
  StridedView result{view.base, view.offset, Sizes(sizes), Sizes(sizes.size(), math.constant(0))};
  size_t shift = sizes.size() - view.rank();
  for (size_t dim = 0; dim < view.rank(); ++dim)
    if (!isConstant(view.sizes[dim], 1) || isConstant(sizes[dim + shift], 1))
      result.strides[dim + shift] = view.strides[dim];
  return result;
}

StridedView slice(const IndexMath &math, const StridedView &view, int64_t dim, Size start,
                  Size count, int64_t step) {
  StridedView result = view;
  result.offset = math.add(view.offset, math.mul(start, view.strides[dim]));
  result.sizes[dim] = count;
  result.strides[dim] = math.mul(view.strides[dim], math.constant(step));
  return result;
}

StridedView select(const IndexMath &math, const StridedView &view, int64_t dim, Size index) {
  return dropDim(slice(math, view, dim, index, math.constant(1), 1), dim);
}

StridedView insertDim(const IndexMath &math, const StridedView &view, int64_t dim) {
  StridedView result = view;
  result.sizes.insert(result.sizes.begin() + dim, math.constant(1));
  result.strides.insert(result.strides.begin() + dim, math.constant(1));
  return result;
}

StridedView dropDim(const StridedView &view, int64_t dim) {
  StridedView result = view;
  result.sizes.erase(result.sizes.begin() + dim);
  result.strides.erase(result.strides.begin() + dim);
  return result;
}

Value toMemref(const IndexMath &math, const StridedView &view) {
  auto type = cast<MemRefType>(view.base.getType());
  bool whole = type.hasStaticShape() && isConstant(view.offset, 0) &&
               type.getShape() == ArrayRef<int64_t>(staticSizes(view.sizes)) &&
               type.getLayout().isIdentity() && isDense(math, view);
  if (whole)
    return view.base;
  // Strides of dims of size 1 are written as if dense, so that equal views have equal types.
  Sizes strides = view.strides;
  Size dense = math.constant(1);
  for (size_t dim = view.rank(); dim-- > 0;) {
    if (isConstant(view.sizes[dim], 1))
      strides[dim] = dense;
    else
      dense = math.mul(strides[dim], view.sizes[dim]);
    if (!getConstantIntValue(strides[dim]) && isConstant(view.sizes[dim], 1))
      strides[dim] = math.constant(1);
  }
  int64_t offset = staticSize(view.offset);
  MemRefLayoutAttrInterface layout =
      StridedLayoutAttr::get(math.builder.getContext(), offset, staticSizes(strides));
  // Of strides that are not known the type alone tells kernels that memory is dense.
  if (offset == 0 && !ShapedType::isStaticShape(staticSizes(strides)) && isDense(math, view))
    layout = {};
  auto result = MemRefType::get(staticSizes(view.sizes), type.getElementType(), layout);
  return memref::ReinterpretCastOp::create(math.builder, math.loc, result, view.base, view.offset,
                                           view.sizes, strides);
}

} // namespace shardc::memory
