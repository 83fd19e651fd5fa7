// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Memory that processes share, without a name in any file system: it is gone when the last process
// that has it is gone, however that ends.
#ifndef SHARDC_RUNTIME_SHARED_SEGMENT_H
#define SHARDC_RUNTIME_SHARED_SEGMENT_H

#include "runtime/control/Socket.h"

#include <cstddef>

namespace shardc::rt {

/// A segment in the address space of this process; unmaps itself.
class Mapping {
public:
  Mapping() = default;
  Mapping(Mapping &&other) noexcept
      : base(std::exchange(other.base, nullptr)), bytes(std::exchange(other.bytes, 0)) {}
  Mapping &operator=(Mapping &&other) noexcept {
    std::swap(base, other.base);
    std::swap(bytes, other.bytes);
    return *this;
  }
  ~Mapping();

  uint8_t *data() const { return base; }
  size_t size() const { return bytes; }
  explicit operator bool() const { return base != nullptr; }
  /// Whether [offset, offset + count) lies in it.
  bool has(uint64_t offset, uint64_t count) const {
    return offset <= bytes && count <= bytes - offset;
  }

private:
  friend Mapping mapSegment(const Descriptor &segment);
  Mapping(uint8_t *base, size_t bytes) : base(base), bytes(bytes) {}

  uint8_t *base = nullptr;
  size_t bytes = 0;
};

/// Pages of zeros that take memory when they are first written. They can only be shared while
/// nobody can make the segment shorter, so that nobody who maps it can be made to fault: it is
/// sealed. Throws Failure.
Descriptor makeSegment(size_t bytes);

/// The whole of a segment, of this process or another. Throws Failure if it is none that
/// makeSegment made, or there is no room for it.
Mapping mapSegment(const Descriptor &segment);

} // namespace shardc::rt

#endif // SHARDC_RUNTIME_SHARED_SEGMENT_H
