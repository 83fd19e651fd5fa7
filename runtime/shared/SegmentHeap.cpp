// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/shared/SegmentHeap.h"

#include "runtime/support/Failure.h"
#include "runtime/support/Memory.h"

#include <algorithm>
#include <fcntl.h>
#include <sys/mman.h>

namespace shardc::rt {

namespace {

/// No two allocations share a cache line.
constexpr uint64_t lineBytes = 64;
constexpr uint64_t smallestSegment = uint64_t(64) << 20;
/// Freed ranges of this size and more go back to the system at once.
constexpr uint64_t worthReturning = uint64_t(1) << 21;

uint64_t roundUp(uint64_t value, uint64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

} // namespace

SegmentHeap::SegmentHeap() {
  functions.context = this;
  functions.alloc = [](void *heap, size_t bytes, size_t alignment) {
    return static_cast<SegmentHeap *>(heap)->allocate(bytes, alignment);
  };
  functions.free = [](void *heap, void *memory, size_t bytes) {
    static_cast<SegmentHeap *>(heap)->release(memory, bytes);
  };
}

std::optional<uint64_t> SegmentHeap::take(Segment &segment, uint64_t bytes, uint64_t alignment) {
  for (auto [offset, free] : segment.unused) {
    uint64_t begin = roundUp(offset, alignment);
    if (begin - offset > free || free - (begin - offset) < bytes)
      continue;
    segment.unused.erase(offset);
    if (begin > offset)
      segment.unused.emplace(offset, begin - offset);
    if (begin + bytes < offset + free)
      segment.unused.emplace(begin + bytes, offset + free - begin - bytes);
    return begin;
  }
  return std::nullopt;
}

void *SegmentHeap::allocate(size_t wanted, size_t alignment) {
  if (alignment > pageBytes || wanted > SIZE_MAX / 4)
    return nullptr;
  uint64_t bytes = roundUp(std::max<uint64_t>(wanted, 1), lineBytes);
  alignment = std::max<size_t>(alignment, lineBytes);
  std::lock_guard lock(mutex);
  for (Segment &segment : segments)
    if (std::optional<uint64_t> offset = take(segment, bytes, alignment))
      return segment.mapping.data() + *offset;
  try {
    Segment fresh;
    uint64_t size = std::max({smallestSegment, total, roundUp(bytes, pageBytes)});
    fresh.file = makeSegment(size);
    fresh.mapping = mapSegment(fresh.file);
    fresh.unused.emplace(0, size);
    total += size;
    segments.push_back(std::move(fresh));
  } catch (const Failure &) {
    return nullptr; // whoever asked says what it was for
  }
  return segments.back().mapping.data() + *take(segments.back(), bytes, alignment);
}

void SegmentHeap::release(void *memory, size_t wanted) {
  uint64_t bytes = roundUp(std::max<uint64_t>(wanted, 1), lineBytes);
  std::lock_guard lock(mutex);
  for (Segment &segment : segments) {
    auto address = reinterpret_cast<uintptr_t>(memory),
         base = reinterpret_cast<uintptr_t>(segment.mapping.data());
    if (address < base || address >= base + segment.mapping.size())
      continue;
    uint64_t begin = address - base, end = begin + bytes;
    // Whole pages of which nothing else is used; others that map them do not hold them.
    if (bytes >= worthReturning) {
      uint64_t first = roundUp(begin, pageBytes), last = end / pageBytes * pageBytes;
      madvise(segment.mapping.data() + first, last - first, MADV_REMOVE);
    }
    auto next = segment.unused.lower_bound(begin);
    if (next != segment.unused.end() && next->first == end) {
      end += next->second;
      next = segment.unused.erase(next);
    }
    if (next != segment.unused.begin())
      if (auto before = std::prev(next); before->first + before->second == begin) {
        before->second = end - before->first;
        return;
      }
    segment.unused.emplace(begin, end - begin);
    return;
  }
}

std::optional<SharedPlace> SegmentHeap::find(const void *data, size_t bytes) const {
  auto address = reinterpret_cast<uintptr_t>(data);
  std::lock_guard lock(mutex);
  for (size_t i = 0; i < segments.size(); ++i) {
    auto base = reinterpret_cast<uintptr_t>(segments[i].mapping.data());
    if (address >= base && segments[i].mapping.has(address - base, bytes))
      return SharedPlace{uint32_t(i), address - base};
  }
  return std::nullopt;
}

uint64_t SegmentHeap::segmentBytes(uint32_t segment) const {
  std::lock_guard lock(mutex);
  return segments[segment].mapping.size();
}

Descriptor SegmentHeap::descriptor(uint32_t segment) const {
  std::lock_guard lock(mutex);
  if (segment >= segments.size())
    return Descriptor();
  return Descriptor(fcntl(segments[segment].file.get(), F_DUPFD_CLOEXEC, 0));
}

} // namespace shardc::rt
