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

Cover coverOf(const Window &window, Run positions, int64_t size) {
  if (positions.begin >= positions.end)
    return {{}, std::max<int64_t>(window.extent() - window.stride, 0), 0};
  int64_t begin = positions.begin * window.stride - window.padding;
  int64_t end = (positions.end - 1) * window.stride - window.padding + window.extent();
  Run inside{std::clamp<int64_t>(begin, 0, size), std::clamp<int64_t>(end, 0, size)};
  return {inside, std::max<int64_t>(std::min<int64_t>(end, 0) - begin, 0),
          std::max<int64_t>(end - std::max(begin, size), 0)};
}

Run positionsOver(const Window &window, Run elements, int64_t count) {
  if (elements.size() <= 0)
    return {0, 0};
  int64_t begin = ceilDiv(elements.begin + window.padding - (window.extent() - 1), window.stride);
  int64_t end = (elements.end - 1 + window.padding) / window.stride + 1;
  begin = std::clamp<int64_t>(begin, 0, count);
  return {begin, std::max(begin, std::min(end, count))};
}

Run coverOfParts(Run run, int64_t size, int64_t parts) {
  if (run.size() <= 0 || parts <= 0)
    return {0, 0};
  return {run.begin * size / parts, (run.end * size + parts - 1) / parts};
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
