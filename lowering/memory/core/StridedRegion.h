// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sets of elements of a buffer that views of it reach, and whether one lies in others. IR-free; all
// numbers are elements.

#ifndef SHARDC_LOWERING_MEMORY_CORE_STRIDEDREGION_H
#define SHARDC_LOWERING_MEMORY_CORE_STRIDEDREGION_H

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace shardc::memory {

/// { offset + sum of i_d * stride_d : 0 <= i_d < size_d }. Strides may be 0 or negative; dims may
/// overlap.
struct StridedRegion {
  struct Dim {
    int64_t size, stride;
  };
  int64_t offset = 0;
  std::vector<Dim> dims;

  bool isEmpty() const;
};

/// An element of `region` that is in none of `others`; nothing if there is none. Exact. The time is
/// that of sorting as many pieces as the regions have dims, not one of counting elements, wherever
/// the strides of one region divide into those of the others, as parts of one tensor's do.
std::optional<int64_t> findOutside(const StridedRegion &region,
                                   std::span<const StridedRegion> others);

/// An element that both have; nothing if there is none. Exact.
std::optional<int64_t> findCommon(const StridedRegion &a, const StridedRegion &b);

} // namespace shardc::memory

#endif // SHARDC_LOWERING_MEMORY_CORE_STRIDEDREGION_H
