// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Windows that slide over the spatial dims of lines, images and volumes.
#ifndef SHARDC_DIALECTS_ATEN_WINDOW_H
#define SHARDC_DIALECTS_ATEN_WINDOW_H

#include "dialects/interfaces/SizeAlgebra.h"
#include "dialects/sharding/DimSplit.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>

namespace shardc::aten {

/// Along one dim, in elements: position i covers `i * stride - padding + j * dilation` for
/// j = 0 ... kernel - 1.
struct Window {
  int64_t kernel = 1; ///< kDynamic where it is not known
  int64_t stride = 1;
  int64_t padding = 0; ///< on both sides
  int64_t dilation = 1;

  /// From the first element that it covers to the last, both included.
  int64_t extent() const { return dilation * (kernel - 1) + 1; }
  /// Whether there is one position for each element, which covers that alone.
  bool isIdentity() const { return kernel == 1 && stride == 1 && padding == 0; }
};

/// Positions in a dim of `size` elements; not known if that or the kernel is not. May be less than
/// 1, where the window is larger than the padded image. `ceil`: a last position may reach beyond
/// the padding, if it starts before it (PyTorch's pooling_output_shape, for a padding of at most
/// half the window's extent, as pools have it).
Dim windowPositions(SizeAlgebra &sizes, const Window &window, Dim size, bool ceil = false);

/// What positions cover, from the first element of the first to the last one of the last (H1):
/// `before` elements of padding, `elements` of the image, and `after` elements of padding. Without
/// positions, padding that has no place for one, whichever way places are counted.
struct Cover {
  Run elements;
  int64_t before = 0;
  int64_t after = 0;

  int64_t size() const { return before + elements.size() + after; }
};
/// `size`: of the image.
Cover coverOf(const Window &window, Run positions, int64_t size);

/// The other way round: of `count` positions, those from the first to the last whose window has an
/// element of `elements` between its ends.
Run positionsOver(const Window &window, Run elements, int64_t count);

/// What the parts `run` of an adaptive pool have of a dim of `size` elements that becomes `parts`:
/// part i is `[floor(i * size / parts), ceil((i + 1) * size / parts))`.
Run coverOfParts(Run run, int64_t size, int64_t parts);

/// One for each spatial dim.
using Windows = llvm::SmallVector<Window, 3>;

/// As many as `kernel` has numbers; the other lists have as many, or one number for all dims.
Windows makeWindows(llvm::ArrayRef<int64_t> kernel, llvm::ArrayRef<int64_t> stride,
                    llvm::ArrayRef<int64_t> padding, llvm::ArrayRef<int64_t> dilation);

} // namespace shardc::aten

#endif // SHARDC_DIALECTS_ATEN_WINDOW_H
