// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/aten/Window.h"

#include "mlir/IR/BuiltinTypes.h"

namespace shardc::aten {

Dim windowPositions(SizeAlgebra &sizes, const Window &window, Dim size, bool ceil) {
  if (mlir::ShapedType::isDynamic(window.kernel))
    return {};
  int64_t more = 2 * window.padding - window.extent(), stride = window.stride;
  if (!ceil) // floor(room / stride) + 1
    return sizes.ceilDiv(sizes.add(size, more + 1), stride);
  Dim all = sizes.ceilDiv(sizes.add(size, more + stride), stride);
  Dim startingInside = sizes.ceilDiv(sizes.add(size, window.padding), stride);
  return sizes.min(all, startingInside);
}

Windows makeWindows(llvm::ArrayRef<int64_t> kernel, llvm::ArrayRef<int64_t> stride,
                    llvm::ArrayRef<int64_t> padding, llvm::ArrayRef<int64_t> dilation) {
  Windows windows;
  for (size_t dim = 0; dim < kernel.size(); ++dim) {
    auto entry = [&](llvm::ArrayRef<int64_t> list) {
      return list.size() == 1 ? list.front() : list[dim];
    };
    windows.push_back({kernel[dim], entry(stride), entry(padding), entry(dilation)});
  }
  return windows;
}

} // namespace shardc::aten
