// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/core/MemoryBound.h"

#include <algorithm>
#include <array>
#include <numeric>

using namespace shardc;
using namespace shardc::collectives;

namespace {

class BoundFinder {
public:
  BoundFinder(const Problem &problem)
      : problem(problem), begun(problem.numTasks()), needed(problem.numTasks()),
        live(problem.numTasks()) {}

  MemoryBound run(uint64_t maxWork) {
    // Storages are followed 64 at a time, the largest first.
    std::vector<StorageId> order(problem.storageBytes.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](StorageId a, StorageId b) {
      return problem.storageBytes[a] > problem.storageBytes[b];
    });
    uint64_t workOfBlock =
        2 * problem.before.numEntries() + 10 * problem.numTasks() + sizeof(sums) / sizeof(uint64_t);
    uint64_t blocks = std::min<uint64_t>((order.size() + 63) / 64, maxWork / workOfBlock);
    followed = std::min<size_t>(order.size(), blocks * 64);
    place.resize(order.size());
    for (size_t i = 0; i != order.size(); ++i)
      place[order[i]] = i;
    for (size_t begin = 0; begin < followed; begin += 64)
      follow(std::span(order).subspan(begin, std::min<size_t>(64, followed - begin)), begin);
    for (TaskId task = 0; task != problem.numTasks(); ++task)
      addOwn(task);
    return combine();
  }

private:
  std::span<const Problem::StorageUse> storagesOf(TaskId task) const {
    return problem.storagesOfStep[problem.stepOfTask[task]];
  }

  /// Adds to each task what is live of a block of storages.
  void follow(std::span<const StorageId> block, size_t begin) {
    uint64_t pinned = 0;
    for (size_t i = 0; i != block.size(); ++i)
      pinned |= uint64_t(problem.storagePinned[block[i]]) << i;
    std::fill(begun.begin(), begun.end(), 0);
    for (TaskId task = 0; task != problem.numTasks(); ++task)
      for (auto [storage, index] : storagesOf(task))
        if (size_t at = place[storage] - begin; at < block.size())
          begun[task] |= uint64_t(1) << at;
    needed = begun;
    for (TaskId task = 0; task != problem.numTasks(); ++task)
      for (const Dependence &d : problem.before[task])
        begun[task] |= begun[d.task];
    sumBytes(block);
    for (TaskId task = problem.numTasks(); task-- != 0;) {
      uint64_t own = needed[task], later = 0;
      for (const Dependence &d : problem.after[task])
        later |= needed[d.task];
      needed[task] = own | later;
      // What a collective reads last may be packed, and be free, when its results begin.
      uint64_t through = problem.isCollective(task) ? begun[task] & later & ~pinned
                                                    : begun[task] & needed[task] & ~pinned;
      live[task].others += bytesOf(through);
      live[task].outputs += bytesOf(begun[task] & pinned);
      if (problem.isCollective(task))
        for (auto [storage, index] : storagesOf(task))
          if (size_t at = place[storage] - begin; at < block.size())
            if (uint64_t bit = uint64_t(1) << at; !((through | pinned) & bit))
              live[task].others += bytesInCollective(task, storage);
    }
  }

  /// Storages that were not followed are live at least while something touches them.
  void addOwn(TaskId task) {
    for (auto [storage, index] : storagesOf(task)) {
      if (place[storage] < followed)
        continue;
      if (problem.storagePinned[storage])
        live[task].outputs += problem.storageBytes[storage];
      else
        live[task].others += problem.isCollective(task) ? bytesInCollective(task, storage)
                                                        : problem.storageBytes[storage];
    }
  }

  /// What a collective that is the last to touch a storage holds of it in any case: in a bucket,
  /// only what it reads of it is copied.
  uint64_t bytesInCollective(TaskId task, StorageId storage) const {
    const Graph &graph = problem.graph;
    NodeId node = problem.nodeOf[task];
    uint64_t bytes = 0;
    for (std::span<const ValueId> values : {graph.operands(node), graph.results(node)})
      for (ValueId value : values)
        if (problem.storageOf[value] == storage)
          bytes += graph.bytesOf(value);
    return std::min(bytes, problem.storageBytes[storage]);
  }

  /// Sums of bytes for each byte of a word.
  void sumBytes(std::span<const StorageId> block) {
    for (size_t part = 0; part != 8; ++part)
      for (size_t bits = 0; bits != 256; ++bits) {
        uint64_t sum = 0;
        for (size_t i = 0; i != 8; ++i)
          if (size_t at = part * 8 + i; (bits >> i & 1) && at < block.size())
            sum += problem.storageBytes[block[at]];
        sums[part][bits] = sum;
      }
  }
  uint64_t bytesOf(uint64_t word) const {
    uint64_t sum = 0;
    for (size_t part = 0; word != 0; ++part, word >>= 8)
      sum += sums[part][word & 255];
    return sum;
  }

  MemoryBound combine() const {
    uint64_t outputs = 0;
    for (StorageId storage = 0; storage != problem.storageBytes.size(); ++storage)
      outputs += problem.storagePinned[storage] ? problem.storageBytes[storage] : 0;
    MemoryBound bound{problem.constantBytes + outputs, none};
    // The last output to begin is one after which no other has to begin.
    std::vector<bool> beginsLater(problem.numTasks());
    uint64_t least = UINT64_MAX;
    TaskId last = none;
    for (TaskId task = problem.numTasks(); task-- != 0;) {
      for (const Dependence &d : problem.after[task])
        if (beginsLater[d.task] || beginsOutput(d.task))
          beginsLater[task] = true;
      if (!beginsLater[task] && touchesOutput(task) && live[task].others < least) {
        least = live[task].others;
        last = task;
      }
    }
    if (last != none && least != 0)
      bound = {bound.bytes + least, problem.nodeOf[last]};
    for (TaskId task = 0; task != problem.numTasks(); ++task)
      if (uint64_t bytes = problem.constantBytes + live[task].outputs + live[task].others;
          bytes > bound.bytes)
        bound = {bytes, problem.nodeOf[task]};
    return bound;
  }

  bool touchesOutput(TaskId task) const {
    for (auto [storage, index] : storagesOf(task))
      if (problem.storagePinned[storage])
        return true;
    return false;
  }
  /// In every order: a result of its own.
  bool beginsOutput(TaskId task) const {
    const Graph &graph = problem.graph;
    NodeId node = problem.nodeOf[task];
    if (graph.isFree(node))
      return false;
    for (ValueId value : graph.results(node))
      if (StorageId storage = problem.storageOf[value];
          storage != none && graph.rootOf(value) == value && problem.storagePinned[storage])
        return true;
    return false;
  }

  struct Live {
    uint64_t outputs = 0, others = 0;
  };
  const Problem &problem;
  size_t followed = 0;
  std::vector<size_t> place; // by storage: where it is in the order of sizes
  // By task, one bit a storage: whether it, or something before (after) it, touches the storage.
  std::vector<uint64_t> begun, needed;
  std::vector<Live> live; // by task
  std::array<std::array<uint64_t, 256>, 8> sums;
};

} // namespace

MemoryBound shardc::collectives::memoryBound(const Problem &problem, uint64_t maxWork) {
  return BoundFinder(problem).run(maxWork);
}
