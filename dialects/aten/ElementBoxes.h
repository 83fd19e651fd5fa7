// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Parts of tensors, where they come from in the operands of views, and numbers in row-major order.
#ifndef SHARDC_DIALECTS_ATEN_ELEMENTBOXES_H
#define SHARDC_DIALECTS_ATEN_ELEMENTBOXES_H

#include "dialects/aten/KnownElements.h"

#include <variant>

namespace shardc::aten {

using Sizes = llvm::SmallVector<int64_t, 4>;

/// Of a dense tensor in row-major order.
Sizes stridesOf(llvm::ArrayRef<int64_t> sizes);

/// Calls `row` with the offset of each first element of a row (the last dim), in order.
template <typename F>
void forEachRow(llvm::ArrayRef<int64_t> sizes, int64_t offset, llvm::ArrayRef<int64_t> strides,
                F row) {
  if (llvm::is_contained(sizes, 0))
    return;
  Sizes at(sizes.size(), 0);
  while (true) {
    row(offset);
    size_t dim = sizes.empty() ? 0 : sizes.size() - 1;
    while (dim-- > 0) {
      offset += strides[dim];
      if (++at[dim] < sizes[dim])
        break;
      offset -= strides[dim] * sizes[dim];
      at[dim] = 0;
    }
    if (dim == size_t(-1))
      return;
  }
}

/// Elements `offset + sum of i_k * strides[k]` of `source`, which is anything with `[]`.
template <typename Source>
Numbers pick(const Source &source, llvm::ArrayRef<int64_t> sizes, int64_t offset,
             llvm::ArrayRef<int64_t> strides) {
  Numbers result;
  int64_t length = sizes.empty() ? 1 : sizes.back(), step = sizes.empty() ? 1 : strides.back();
  int64_t count = 1;
  for (int64_t size : sizes)
    count *= size;
  result.reserve(count);
  forEachRow(sizes, offset, strides, [&](int64_t at) {
    for (int64_t i = 0; i < length; ++i)
      result.push_back(static_cast<double>(source[at + i * step]));
  });
  return result;
}

/// A part of numbers that are a tensor of this shape.
Numbers pickBox(llvm::ArrayRef<double> source, llvm::ArrayRef<int64_t> shape,
                const ElementBox &box);

/// Numbers of these sizes, broadcast to others.
Numbers broadcast(Numbers numbers, llvm::ArrayRef<int64_t> sizes, llvm::ArrayRef<int64_t> to);

/// Writes `part`, which has `size` positions of dim `dim`, to those from `at` on.
void paste(Numbers &to, llvm::ArrayRef<int64_t> sizes, size_t dim, int64_t at, const Numbers &part,
           int64_t size);

/// Where a box of a reshaped tensor must be cut, so that each half is a box of the operand.
struct Cut {
  size_t dim;
  int64_t at;
};

/// The box of a tensor of shape `from` that a box of the same elements in shape `to` is.
std::variant<ElementBox, Cut> boxBefore(llvm::ArrayRef<int64_t> from, llvm::ArrayRef<int64_t> to,
                                        const ElementBox &box);

/// The part of an operand that is broadcast to a part of the result.
ElementBox operandBox(mlir::Value operand, const ElementBox &box);

/// For views of dims as they are: the part of operand 0 that a part of the result comes from, and
/// the dim of operand 0 that each dim of the result is (-1: none).
struct ViewedBox {
  ElementBox box;
  llvm::SmallVector<int64_t> dims;
};

/// Nothing for other ops.
std::optional<ViewedBox> viewedBox(mlir::Operation *op, const ElementBox &box);

} // namespace shardc::aten

#endif // SHARDC_DIALECTS_ATEN_ELEMENTBOXES_H
