// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A device behind the table of plugins, for tests, as unhelpful as a device may be: nothing that is
// put on a stream runs before somebody waits for it, and then only what that depends on, so that a
// wait that is missing shows. Its memory cannot be touched but by what runs.
#ifndef SHARDC_TEST_UNIT_RUNTIME_DEVICE_FAKEDEVICE_H
#define SHARDC_TEST_UNIT_RUNTIME_DEVICE_FAKEDEVICE_H

#include "runtime/include/shardrt_device.h"

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <sys/mman.h>
#include <vector>

namespace test {

/// What an image of the fake device is an array of, up to one without a name. Parameters have 8
/// bytes each.
struct FakeKernel {
  const char *name;
  void (*run)(uint64_t *errorWord, uint32_t launch, const uint64_t *params);
};

struct FakeError {
  shardrt_status status;
  std::string message;
};

class FakeDevice {
public:
  using Work = std::function<void()>;
  struct Stream;
  struct Node { ///< something on a stream: work, or the wait for another
    Work work;
    Stream *other = nullptr;
    uint64_t until = 0;
    int asks = 0; ///< queries that come to it before it begins
  };
  struct Stream {
    std::deque<Node> queue;
    uint64_t pushed = 0, executed = 0;
    bool captured = false;
    std::map<Stream *, size_t> seen; ///< of a capture: how much of each stream comes before
    size_t nodes = 0;                ///< of a capture
  };
  struct Event {
    Stream *stream = nullptr;
    uint64_t position = 0;
    bool captured = false, timed = false;
    std::map<Stream *, size_t> seen;
    int queries = 0;
    double us = 0;
  };
  struct Graph {
    std::vector<Node> nodes;
  };

  // What tests look at and set; of all devices.
  static inline std::atomic<int> open{0}, graphLaunches{0}, launches{0}, allocations{0}, pinned{0},
      objects{0};
  static inline std::atomic<uint64_t> largestAllocation{UINT64_MAX};
  static inline std::atomic<size_t> longestQueue{0};
  static inline std::atomic<bool> noPinned{false}, noCapture{false};
  static inline std::atomic<FakeDevice *> newest{nullptr};
  std::atomic<bool> stuck{false}; ///< nothing ends any more, and who waits for it stays caught

  static const shardrt_device_plugin &table(); ///< FakeTable.h

  /// Puts something on a stream, for transports of tests. `asks`: so many queries of what comes
  /// behind find it still waiting.
  void push(void *stream, Work work, int asks = 0) {
    std::lock_guard lock(mutex);
    add(*static_cast<Stream *>(stream), {std::move(work), nullptr, 0, asks});
  }
  /// For tests that have memory there: reads and writes it at once.
  void touch(const Work &work) {
    std::lock_guard lock(mutex);
    run(work);
  }

private:
  friend struct FakeTable;

  void add(Stream &stream, Node node) {
    if (stream.captured) {
      ++stream.nodes;
      if (node.work)
        graph->nodes.push_back(std::move(node));
      return;
    }
    stream.queue.push_back(std::move(node));
    ++stream.pushed;
    longestQueue = std::max<size_t>(longestQueue, stream.queue.size());
  }
  void run(const Work &work) {
    if (opened++ == 0)
      protect(PROT_READ | PROT_WRITE);
    work();
    if (--opened == 0)
      protect(PROT_NONE);
  }
  /// Of a query, it comes no further than to what waits to be asked again: whether it came there.
  bool runUntil(Stream &stream, uint64_t position, bool isQuery = false) {
    while (stream.executed < position) {
      Node &next = stream.queue.front();
      if (isQuery && next.asks > 0) {
        --next.asks;
        return false;
      }
      if (next.other && !runUntil(*next.other, next.until, isQuery))
        return false;
      Node node = std::move(next);
      stream.queue.pop_front();
      if (node.work)
        run(node.work);
      ++stream.executed;
    }
    return true;
  }
  void protect(int access) {
    for (auto [memory, bytes] : blocks)
      mprotect(memory, bytes, access);
  }
  bool isMine(const void *memory, uint64_t bytes = 1) const {
    auto after = blocks.upper_bound(const_cast<void *>(memory));
    if (after == blocks.begin())
      return false;
    auto [begin, size] = *--after;
    return static_cast<const char *>(memory) + bytes <= static_cast<char *>(begin) + size;
  }
  bool isPinned(const void *memory) const {
    auto after = pinnedBlocks.upper_bound(const_cast<void *>(memory));
    return after != pinnedBlocks.begin() &&
           memory < static_cast<char *>(std::prev(after)->first) + std::prev(after)->second;
  }

  std::recursive_mutex mutex;
  std::map<void *, uint64_t> blocks, pinnedBlocks;
  int opened = 0;
  std::set<Stream *> captured;
  Stream *origin = nullptr;
  std::unique_ptr<Graph> graph;
  double clock = 0; ///< microseconds: one more at each timed event
};

} // namespace test

#endif // SHARDC_TEST_UNIT_RUNTIME_DEVICE_FAKEDEVICE_H
