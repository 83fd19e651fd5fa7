// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/core/StorageIntervals.h"

#include <algorithm>
#include <numeric>
#include <utility>

using namespace shardc;
using namespace shardc::collectives;

void StorageIntervals::touch(uint32_t storage, uint32_t entry) {
  Storage &s = storages[storage];
  if (s.first == nowhere)
    s.first = entry;
  s.last = entry;
}

void StorageIntervals::build(uint64_t constantBytes) {
  moving.resize(touches.size());
  uint32_t at = 0;
  for (Storage &s : storages) {
    s.firstMoving = at;
    at += std::exchange(s.numMoving, 0);
  }
  for (auto [storage, entry] : touches) {
    Storage &s = storages[storage];
    moving[s.firstMoving + s.numMoving++] = entry;
  }
  for (const Storage &s : storages)
    std::ranges::sort(movingOf(s));
  std::vector<int64_t> live(numEntries + 1);
  live[0] = constantBytes;
  for (const Storage &s : storages) {
    if (s.first == nowhere && s.numMoving == 0)
      continue;
    live[beginOf(s)] += s.bytes;
    live[endOf(s) + 1] -= s.bytes;
  }
  std::partial_sum(live.begin(), live.end(), live.begin());
  live.pop_back();
  profile.emplace(live);
}

void StorageIntervals::move(uint32_t storage, uint32_t from, uint32_t to) {
  Storage &s = storages[storage];
  uint32_t oldBegin = beginOf(s), oldEnd = endOf(s);
  std::span<uint32_t> all = movingOf(s);
  auto here = std::lower_bound(all.begin(), all.end(), from);
  if (to < from) {
    auto there = std::upper_bound(all.begin(), here, to);
    std::rotate(there, here, here + 1);
    *there = to;
  } else {
    auto there = std::lower_bound(here + 1, all.end(), to);
    std::rotate(here, here + 1, there);
    *(there - 1) = to;
  }
  uint32_t begin = beginOf(s), end = endOf(s);
  profile->add(begin, oldBegin, s.bytes);
  profile->add(oldBegin, begin, -s.bytes);
  profile->add(oldEnd + 1, end + 1, s.bytes);
  profile->add(end + 1, oldEnd + 1, -s.bytes);
}

template <typename Distance>
std::span<const std::pair<uint32_t, uint32_t>>
StorageIntervals::byDistance(std::span<const uint32_t> touched, Distance distance) const {
  sorted.clear();
  for (uint32_t storage : touched)
    sorted.push_back({distance(storages[storage]), storage});
  std::sort(sorted.begin(), sorted.end());
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  return sorted;
}

uint32_t StorageIntervals::fullBehind(std::span<const uint32_t> touched, uint32_t from,
                                      int64_t limit) const {
  auto ends = byDistance(touched, [&](const Storage &s) { return endOf(s) - from; });
  int64_t more = 0;
  for (size_t i = 0; i != ends.size(); ++i) {
    more += storages[ends[i].second].bytes;
    uint32_t at = ends[i].first;
    uint32_t next = i + 1 != ends.size() ? ends[i + 1].first : numEntries - 1 - from;
    if (at == next)
      continue;
    uint32_t full = profile->firstAbove(from + at + 1, limit - more);
    if (full != nowhere && full - from <= next)
      return full;
  }
  return nowhere;
}

uint32_t StorageIntervals::fullBefore(std::span<const uint32_t> touched, uint32_t from,
                                      int64_t limit) const {
  auto begins = byDistance(touched, [&](const Storage &s) { return from - beginOf(s); });
  int64_t more = 0;
  for (size_t i = 0; i != begins.size(); ++i) {
    more += storages[begins[i].second].bytes;
    uint32_t at = begins[i].first;
    uint32_t next = i + 1 != begins.size() ? begins[i + 1].first : from;
    if (at == next)
      continue;
    uint32_t full = profile->lastAbove(from - at, limit - more);
    if (full != nowhere && from - full <= next)
      return full;
  }
  return nowhere;
}
