// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/support/Memory.h"

#include "runtime/support/Failure.h"

#include <algorithm>
#include <cstdlib>
#include <sys/mman.h>

namespace shardc::rt {

namespace {
/// From this size on pages are mapped directly: they go back to the system when freed, and may be
/// huge pages.
constexpr size_t mapThreshold = size_t(1) << 21;
} // namespace

Buffer::Buffer(const Allocator &allocator, size_t wanted, size_t alignment, const char *what)
    : allocator(allocator), bytes(wanted) {
  if (wanted == 0)
    return;
  if (allocator.alloc) {
    try {
      memory = static_cast<uint8_t *>(allocator.alloc(allocator.context, wanted, alignment));
    } catch (const Failure &failure) { // of the runtime's own functions, which know more
      throw Failure(failure.status, what + (": " + failure.message));
    }
  } else if (wanted >= mapThreshold && alignment <= pageBytes) {
    void *pages = mmap(nullptr, wanted, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages != MAP_FAILED) {
      memory = static_cast<uint8_t *>(pages);
      mapped = true;
      madvise(pages, wanted, MADV_HUGEPAGE);
    }
  } else {
    alignment = std::max(alignment, sizeof(void *));
    memory = static_cast<uint8_t *>(
        std::aligned_alloc(alignment, (wanted + alignment - 1) / alignment * alignment));
  }
  if (!memory)
    throw Failure(SHARDRT_OUT_OF_MEMORY,
                  "no memory for " + std::to_string(wanted) + " bytes of " + what);
}

Buffer &Buffer::operator=(Buffer &&other) noexcept {
  if (this == &other)
    return *this;
  reset();
  allocator = other.allocator;
  memory = std::exchange(other.memory, nullptr);
  bytes = std::exchange(other.bytes, 0);
  mapped = std::exchange(other.mapped, false);
  return *this;
}

void Buffer::reset() {
  if (memory) {
    if (allocator.alloc)
      allocator.free(allocator.context, memory, bytes);
    else if (mapped)
      munmap(memory, bytes);
    else
      std::free(memory);
  }
  memory = nullptr;
  bytes = 0;
  mapped = false;
}

void Buffer::reserve(const Allocator &from, size_t wanted, size_t alignment, const char *what) {
  if (wanted <= bytes)
    return;
  reset();
  *this = Buffer(from, wanted, alignment, what);
}

} // namespace shardc::rt
