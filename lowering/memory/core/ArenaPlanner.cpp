// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/memory/core/ArenaPlanner.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>
#include <set>

namespace shardc::memory {
namespace {

uint64_t alignUp(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) & ~(alignment - 1);
}

/// Free byte ranges of an arena that grows at its end, for placement in order of time.
class FreeList {
public:
  /// The smallest free range that holds `bytes`, or the end of the arena (extending a free range
  /// that touches the end).
  uint64_t allocate(uint64_t bytes) {
    auto fit = bySize.lower_bound({bytes, 0});
    if (fit != bySize.end()) {
      auto [size, offset] = *fit;
      erase(offset, size);
      if (size > bytes)
        insert(offset + bytes, size - bytes);
      return offset;
    }
    uint64_t offset = end;
    if (!byOffset.empty()) {
      auto [tail, size] = *byOffset.rbegin();
      if (tail + size == end) {
        offset = tail;
        erase(tail, size);
      }
    }
    end = offset + bytes;
    return offset;
  }

  void release(uint64_t offset, uint64_t bytes) {
    auto next = byOffset.lower_bound(offset);
    if (next != byOffset.end() && offset + bytes == next->first) {
      uint64_t size = next->second;
      erase(offset + bytes, size);
      bytes += size;
    }
    auto previous = byOffset.lower_bound(offset);
    if (previous != byOffset.begin()) {
      --previous;
      auto [start, size] = *previous;
      if (start + size == offset) {
        erase(start, size);
        offset = start;
        bytes += size;
      }
    }
    insert(offset, bytes);
  }

  uint64_t extent() const { return end; }

private:
  void insert(uint64_t offset, uint64_t size) {
    byOffset.emplace(offset, size);
    bySize.emplace(size, offset);
  }
  void erase(uint64_t offset, uint64_t size) {
    byOffset.erase(offset);
    bySize.erase({size, offset});
  }

  std::map<uint64_t, uint64_t> byOffset;
  std::set<std::pair<uint64_t, uint64_t>> bySize;
  uint64_t end = 0;
};

std::vector<uint32_t> orderedByFirst(std::span<const ArenaRequest> requests) {
  std::vector<uint32_t> order(requests.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return std::pair(requests[a].first, a) < std::pair(requests[b].first, b);
  });
  return order;
}

/// Calls `begin(i)` and `end(i)` for every request with bytes, in order of time; those that end
/// before a step end before those that begin at it.
template <typename Begin, typename End>
void sweep(std::span<const ArenaRequest> requests, Begin begin, End end) {
  std::set<std::pair<uint32_t, uint32_t>> live;
  for (uint32_t i : orderedByFirst(requests)) {
    if (requests[i].bytes == 0)
      continue;
    while (!live.empty() && live.begin()->first < requests[i].first) {
      end(live.begin()->second);
      live.erase(live.begin());
    }
    begin(i);
    live.emplace(requests[i].last, i);
  }
}

ArenaPlan planByTime(std::span<const ArenaRequest> requests, uint64_t alignment) {
  ArenaPlan plan;
  plan.offsets.assign(requests.size(), 0);
  FreeList free;
  sweep(
      requests,
      [&](uint32_t i) { plan.offsets[i] = free.allocate(alignUp(requests[i].bytes, alignment)); },
      [&](uint32_t i) { free.release(plan.offsets[i], alignUp(requests[i].bytes, alignment)); });
  plan.bytes = free.extent();
  return plan;
}

/// For each request those that conflict with it, or nullopt if there are more than `limit` pairs.
std::optional<std::vector<std::vector<uint32_t>>> conflicts(std::span<const ArenaRequest> requests,
                                                            size_t limit) {
  std::vector<std::vector<uint32_t>> result(requests.size());
  std::set<uint32_t> live;
  size_t pairs = 0;
  bool within = true;
  sweep(
      requests,
      [&](uint32_t i) {
        pairs += live.size();
        within = within && pairs <= limit;
        if (within) {
          for (uint32_t other : live) {
            result[i].push_back(other);
            result[other].push_back(i);
          }
        }
        live.insert(i);
      },
      [&](uint32_t i) { live.erase(i); });
  if (!within)
    return std::nullopt;
  return result;
}

ArenaPlan planBySize(std::span<const ArenaRequest> requests, uint64_t alignment,
                     const std::vector<std::vector<uint32_t>> &neighbours) {
  std::vector<uint32_t> order(requests.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return std::pair(requests[b].bytes, a) < std::pair(requests[a].bytes, b);
  });
  ArenaPlan plan;
  plan.offsets.assign(requests.size(), 0);
  std::vector<bool> placed(requests.size(), false);
  std::vector<std::pair<uint64_t, uint64_t>>
      taken; // [begin, end) of conflicting ones, placed before
  for (uint32_t i : order) {
    uint64_t bytes = alignUp(requests[i].bytes, alignment);
    if (bytes == 0)
      continue;
    taken.clear();
    for (uint32_t other : neighbours[i])
      if (placed[other])
        taken.emplace_back(plan.offsets[other],
                           plan.offsets[other] + alignUp(requests[other].bytes, alignment));
    std::sort(taken.begin(), taken.end());
    uint64_t best = UINT64_MAX, bestGap = UINT64_MAX, cursor = 0;
    for (auto [begin, end] : taken) {
      if (begin > cursor && begin - cursor >= bytes && begin - cursor < bestGap) {
        best = cursor;
        bestGap = begin - cursor;
      }
      cursor = std::max(cursor, end);
    }
    plan.offsets[i] = best == UINT64_MAX ? cursor : best;
    plan.bytes = std::max(plan.bytes, plan.offsets[i] + bytes);
    placed[i] = true;
  }
  return plan;
}

/// Conflicting pairs looked at per request before the quadratic part is left out: far more buffers
/// than any program keeps alive at once, unless it keeps nearly all of them.
constexpr size_t kPairsPerRequest = 512;

} // namespace

ArenaPlan planArena(std::span<const ArenaRequest> requests, uint64_t alignment) {
  ArenaPlan byTime = planByTime(requests, alignment);
  if (byTime.bytes == peakLiveBytes(requests, alignment))
    return byTime;
  auto neighbours = conflicts(requests, kPairsPerRequest * requests.size());
  if (!neighbours)
    return byTime;
  ArenaPlan bySize = planBySize(requests, alignment, *neighbours);
  return bySize.bytes < byTime.bytes ? bySize : byTime;
}

uint64_t peakLiveBytes(std::span<const ArenaRequest> requests, uint64_t alignment) {
  uint64_t live = 0, peak = 0;
  sweep(
      requests,
      [&](uint32_t i) { peak = std::max(peak, live += alignUp(requests[i].bytes, alignment)); },
      [&](uint32_t i) { live -= alignUp(requests[i].bytes, alignment); });
  return peak;
}

ArenaOrder orderArena(std::span<const ArenaRequest> requests, const ArenaPlan &plan) {
  ArenaOrder result;
  result.below.resize(requests.size());
  result.order.resize(requests.size());
  std::iota(result.order.begin(), result.order.end(), 0u);
  std::sort(result.order.begin(), result.order.end(), [&](uint32_t a, uint32_t b) {
    return std::pair(plan.offsets[a], a) < std::pair(plan.offsets[b], b);
  });
  // Requests without bytes in the representative sizes may have some at run time: order them too.
  std::vector<ArenaRequest> all(requests.begin(), requests.end());
  for (ArenaRequest &request : all)
    request.bytes = std::max<uint64_t>(request.bytes, 1);
  std::vector<uint32_t> rank(all.size());
  for (uint32_t position = 0; position < result.order.size(); ++position)
    rank[result.order[position]] = position;

  // Sweep time, with the live requests sorted by their place: only neighbours in that order need an
  // edge, whenever they become neighbours; the edges of the others follow from these.
  std::set<uint32_t> live; // ranks
  auto link = [&](uint32_t lower, uint32_t upper) {
    result.below[result.order[upper]].push_back(result.order[lower]);
  };
  sweep(
      all,
      [&](uint32_t i) {
        auto [at, inserted] = live.insert(rank[i]);
        if (at != live.begin())
          link(*std::prev(at), rank[i]);
        if (std::next(at) != live.end())
          link(rank[i], *std::next(at));
      },
      [&](uint32_t i) {
        auto at = live.find(rank[i]);
        if (at != live.begin() && std::next(at) != live.end())
          link(*std::prev(at), *std::next(at));
        live.erase(at);
      });
  for (std::vector<uint32_t> &list : result.below) {
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
  }
  return result;
}

} // namespace shardc::memory
