// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Memory that a model owns, from the caller's allocator or from the system.
#ifndef SHARDC_RUNTIME_SUPPORT_MEMORY_H
#define SHARDC_RUNTIME_SUPPORT_MEMORY_H

#include "runtime/include/shardrt.h"

#include <utility>

namespace shardc::rt {

/// The size of a page of memory.
inline constexpr size_t pageBytes = 4096;
/// Copies of tensors are aligned for vectors, unlike slices in place.
inline constexpr size_t copyAlignment = 64;

struct Allocator {
  void *(*alloc)(void *context, size_t bytes, size_t alignment) = nullptr;
  void (*free)(void *context, void *memory, size_t bytes) = nullptr;
  void *context = nullptr;
};

/// One allocation; moves, frees itself.
class Buffer {
public:
  Buffer() = default;
  /// Contents are undefined. 0 bytes: no allocation, data() is null. Throws Failure; `what` says
  /// what it is for.
  Buffer(const Allocator &allocator, size_t bytes, size_t alignment, const char *what);
  Buffer(Buffer &&other) noexcept { *this = std::move(other); }
  Buffer &operator=(Buffer &&other) noexcept;
  ~Buffer() { reset(); }

  uint8_t *data() const { return memory; }
  size_t size() const { return bytes; }
  void reset();
  /// Makes it at least that large; contents are lost if it has to grow.
  void reserve(const Allocator &allocator, size_t bytes, size_t alignment, const char *what);

private:
  Allocator allocator;
  uint8_t *memory = nullptr;
  size_t bytes = 0;
  bool mapped = false;
};

} // namespace shardc::rt

#endif // SHARDC_RUNTIME_SUPPORT_MEMORY_H
