// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/collectives/core/StorageIntervals.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

using namespace shardc::collectives;

namespace {

/// The same with a list of touches for each storage.
struct Plain {
  struct Storage {
    int64_t bytes;
    bool pinned;
    std::vector<uint32_t> touches; // those that move come last
    size_t fixed = 0;
  };
  std::vector<Storage> storages;
  uint32_t numEntries;
  int64_t constantBytes;

  bool isLive(const Storage &s, uint32_t entry) const {
    if (s.touches.empty())
      return false;
    auto [first, last] = std::minmax_element(s.touches.begin(), s.touches.end());
    return *first <= entry && (s.pinned || entry <= *last);
  }
  int64_t liveAt(uint32_t entry) const {
    int64_t bytes = constantBytes;
    for (const Storage &s : storages)
      bytes += isLive(s, entry) ? s.bytes : 0;
    return bytes;
  }
  /// Whether these storages would be too much in an entry, if something that touches them came
  /// there; not if they are live there anyway.
  bool wouldBeFull(const std::set<uint32_t> &touched, uint32_t entry, int64_t limit) const {
    int64_t more = 0;
    for (uint32_t id : touched)
      more += isLive(storages[id], entry) ? 0 : storages[id].bytes;
    return more != 0 && liveAt(entry) + more > limit;
  }
};

TEST(StorageIntervals, AgreeWithPlainLists) {
  std::mt19937 random(1);
  auto pick = [&](size_t n) { return static_cast<uint32_t>(random() % n); };
  unsigned full = 0, moved = 0;
  for (int round = 0; round != 300; ++round) {
    SCOPED_TRACE(round);
    Plain plain;
    plain.numEntries = 1 + pick(20);
    plain.constantBytes = pick(50);
    StorageIntervals intervals(plain.numEntries);
    for (uint32_t i = 0, count = 1 + pick(8); i != count; ++i) {
      Plain::Storage s{1 + pick(40), pick(5) == 0, {}};
      intervals.addStorage(s.bytes, s.pinned);
      for (uint32_t entry = 0; entry != plain.numEntries; ++entry)
        if (pick(8) == 0) {
          s.touches.push_back(entry);
          intervals.touch(i, entry);
        }
      s.fixed = s.touches.size();
      for (uint32_t k = pick(4); k != 0; --k) {
        s.touches.push_back(pick(plain.numEntries));
        intervals.touchMoving(i, s.touches.back());
      }
      plain.storages.push_back(s);
    }
    intervals.build(plain.constantBytes);
    ASSERT_EQ(intervals.numStorages(), plain.storages.size());
    for (int step = 0; step != 20; ++step) {
      for (uint32_t entry = 0; entry != plain.numEntries; ++entry) {
        int64_t live = plain.liveAt(entry);
        EXPECT_TRUE(intervals.isAbove(entry, live - 1));
        EXPECT_FALSE(intervals.isAbove(entry, live));
      }
      // All moving touches of one entry; a storage may be listed twice.
      uint32_t from = pick(plain.numEntries);
      std::vector<uint32_t> touched;
      for (uint32_t i = 0; i != plain.storages.size(); ++i) {
        Plain::Storage &s = plain.storages[i];
        for (size_t k = s.fixed; k != s.touches.size(); ++k)
          if (s.touches[k] == from)
            touched.push_back(i);
      }
      if (touched.empty())
        continue;
      int64_t limit = plain.liveAt(from) + pick(60);
      uint32_t behind = StorageIntervals::nowhere, before = StorageIntervals::nowhere;
      std::set<uint32_t> distinct(touched.begin(), touched.end());
      for (uint32_t entry = plain.numEntries; --entry > from;)
        if (plain.wouldBeFull(distinct, entry, limit))
          behind = entry;
      for (uint32_t entry = 0; entry != from; ++entry)
        if (plain.wouldBeFull(distinct, entry, limit))
          before = entry;
      EXPECT_EQ(intervals.fullBehind(touched, from, limit), behind);
      EXPECT_EQ(intervals.fullBefore(touched, from, limit), before);
      full += behind != StorageIntervals::nowhere;
      // One of them moves.
      Plain::Storage &s = plain.storages[touched.front()];
      auto touch = std::find(s.touches.begin() + s.fixed, s.touches.end(), from);
      *touch = pick(plain.numEntries);
      intervals.move(touched.front(), from, *touch);
      moved += *touch != from;
    }
  }
  EXPECT_GT(full, 200u);
  EXPECT_GT(moved, 1000u);
}

} // namespace
