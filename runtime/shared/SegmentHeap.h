// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a rank allocates in memory that the other ranks can map.
#ifndef SHARDC_RUNTIME_SHARED_SEGMENTHEAP_H
#define SHARDC_RUNTIME_SHARED_SEGMENTHEAP_H

#include "runtime/shared/Segment.h"
#include "runtime/support/Memory.h"

#include <map>
#include <mutex>
#include <optional>
#include <vector>

namespace shardc::rt {

/// A place in the segments of a rank, as others find it.
struct SharedPlace {
  static constexpr uint32_t none = UINT32_MAX;
  uint32_t segment = none;
  uint64_t offset = 0;
};

/// Allocations in a few segments, each as large as all before it: pages take memory only when they
/// are written, and give it back when they are freed. Segments stay as long as the heap, so that
/// numbers and places never mean something else. Used by any thread.
class SegmentHeap {
public:
  SegmentHeap();
  SegmentHeap(const SegmentHeap &) = delete;

  const Allocator &allocator() const { return functions; }
  /// Null if the system gives no memory, or for an alignment beyond that of pages.
  void *allocate(size_t bytes, size_t alignment);
  void release(void *memory, size_t bytes);

  /// Where these bytes are; nothing if they are not of this heap.
  std::optional<SharedPlace> find(const void *data, size_t bytes) const;
  uint64_t segmentBytes(uint32_t segment) const;
  /// A descriptor of a segment for another rank; none if there is no such segment.
  Descriptor descriptor(uint32_t segment) const;

private:
  struct Segment {
    Descriptor file;
    Mapping mapping;
    std::map<uint64_t, uint64_t> unused; ///< offset to bytes; no two touch each other
  };
  static std::optional<uint64_t> take(Segment &segment, uint64_t bytes, uint64_t alignment);

  mutable std::mutex mutex;
  std::vector<Segment> segments;
  uint64_t total = 0;
  Allocator functions;
};

} // namespace shardc::rt

#endif // SHARDC_RUNTIME_SHARED_SEGMENTHEAP_H
