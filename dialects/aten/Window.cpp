// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/aten/Window.h"

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/Support/MathExtras.h"

namespace shardc::aten {

int64_t Window::positions(int64_t size, bool ceil) const {
  if (mlir::ShapedType::isDynamic(size) || mlir::ShapedType::isDynamic(kernel))
    return mlir::ShapedType::kDynamic;
  int64_t room = size + 2 * padding - extent();
  if (!ceil)
    return llvm::divideFloorSigned(room, stride) + 1;
  int64_t count = llvm::divideCeilSigned(room, stride) + 1;
  return (count - 1) * stride >= size + padding ? count - 1 : count;
}

std::array<Window, 2> makeWindows(llvm::ArrayRef<int64_t> kernel, llvm::ArrayRef<int64_t> stride,
                                  llvm::ArrayRef<int64_t> padding,
                                  llvm::ArrayRef<int64_t> dilation) {
  std::array<Window, 2> windows;
  for (unsigned dim = 0; dim < 2; ++dim) {
    auto entry = [&](llvm::ArrayRef<int64_t> list) {
      return list.size() == 1 ? list.front() : list[dim];
    };
    windows[dim] = {entry(kernel), entry(stride), entry(padding), entry(dilation)};
  }
  return windows;
}

} // namespace shardc::aten
