// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/support/Copy.h"

#include <cstring>

namespace shardc::rt {

namespace {

/// A box after normalisation: no dim of extent 1, no two dims that one dim could express; strides
/// in bytes, innermost last.
struct Box {
  size_t rank = 0;
  std::array<int64_t, maxCopyRank> extents;
  std::array<int64_t, maxCopyRank> to;
  std::array<int64_t, maxCopyRank> from;

  void append(int64_t extent, int64_t toStride, int64_t fromStride) {
    if (extent == 1)
      return;
    if (rank > 0 && to[rank - 1] == extent * toStride && from[rank - 1] == extent * fromStride) {
      extents[rank - 1] *= extent;
      to[rank - 1] = toStride;
      from[rank - 1] = fromStride;
      return;
    }
    extents[rank] = extent;
    to[rank] = toStride;
    from[rank] = fromStride;
    ++rank;
  }
};

template <typename T>
void copyElements(char *to, int64_t toStride, const char *from, int64_t fromStride, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    std::memcpy(to + i * toStride, from + i * fromStride, sizeof(T));
}

void copyRow(char *to, int64_t toStride, const char *from, int64_t fromStride, int64_t count,
             int64_t bytes) {
  if (toStride == bytes && fromStride == bytes) {
    std::memcpy(to, from, size_t(count * bytes));
    return;
  }
  switch (bytes) {
  case 1:
    return copyElements<uint8_t>(to, toStride, from, fromStride, count);
  case 2:
    return copyElements<uint16_t>(to, toStride, from, fromStride, count);
  case 4:
    return copyElements<uint32_t>(to, toStride, from, fromStride, count);
  case 8:
    return copyElements<uint64_t>(to, toStride, from, fromStride, count);
  default:
    for (int64_t i = 0; i < count; ++i)
      std::memcpy(to + i * toStride, from + i * fromStride, size_t(bytes));
  }
}

void copyDims(const Box &box, size_t dim, char *to, const char *from, int64_t bytes) {
  if (dim + 1 >= box.rank) {
    copyRow(to, box.to[dim], from, box.from[dim], box.extents[dim], bytes);
    return;
  }
  for (int64_t i = 0; i < box.extents[dim]; ++i)
    copyDims(box, dim + 1, to + i * box.to[dim], from + i * box.from[dim], bytes);
}

} // namespace

void denseStrides(std::span<const int64_t> extents, int64_t *strides) {
  int64_t stride = 1;
  for (size_t i = extents.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= extents[i];
  }
}

void copyBox(void *destination, const int64_t *destinationStrides, const void *source,
             const int64_t *sourceStrides, std::span<const int64_t> extents, int64_t elementBytes) {
  Box box;
  for (size_t i = 0; i < extents.size(); ++i) {
    if (extents[i] <= 0)
      return;
    box.append(extents[i], destinationStrides[i] * elementBytes, sourceStrides[i] * elementBytes);
  }
  if (box.rank == 0) {
    std::memcpy(destination, source, size_t(elementBytes));
    return;
  }
  copyDims(box, 0, static_cast<char *>(destination), static_cast<const char *>(source),
           elementBytes);
}

bool isDense(std::span<const int64_t> extents, const int64_t *strides) {
  int64_t expected = 1;
  for (size_t i = extents.size(); i-- > 0;) {
    if (extents[i] == 0)
      return true;
    if (extents[i] != 1 && strides[i] != expected)
      return false;
    expected *= extents[i];
  }
  return true;
}

} // namespace shardc::rt
