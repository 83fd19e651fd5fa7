// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Copies of N-dimensional boxes between strided views of memory: the one routine behind gathers,
// scatters, slices of weights and staging of inputs and outputs.
#ifndef SHARDC_RUNTIME_SUPPORT_COPY_H
#define SHARDC_RUNTIME_SUPPORT_COPY_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace shardc::rt {

/// Enough for a tensor of SHARDRT_MAX_RANK dims of which two are split in two.
inline constexpr size_t maxCopyRank = 20;

/// Row-major strides, in elements.
void denseStrides(std::span<const int64_t> extents, int64_t *strides);

/// Copies `extents` elements (strides in elements, of any sign; zero strides repeat an element of
/// the source). Source and destination do not overlap. Rank at most maxCopyRank; nothing happens if
/// an extent is 0.
void copyBox(void *destination, const int64_t *destinationStrides, const void *source,
             const int64_t *sourceStrides, std::span<const int64_t> extents, int64_t elementBytes);

/// Whether a view with these strides is one dense row-major range (dims of extent 1 do not count;
/// an empty view is dense).
bool isDense(std::span<const int64_t> extents, const int64_t *strides);

} // namespace shardc::rt

#endif // SHARDC_RUNTIME_SUPPORT_COPY_H
