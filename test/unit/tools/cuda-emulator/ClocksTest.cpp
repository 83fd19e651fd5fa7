// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/cuda-emulator/Clocks.h"

#include <gtest/gtest.h>

#include <random>

using namespace shardc::emulator;

namespace {

using Intervals = std::vector<ByteInterval>;

OperationRecord record(uint32_t lane, uint64_t number, Intervals reads, Intervals writes,
                       const LaneClock &known = {}) {
  OperationRecord r;
  r.name = std::to_string(lane) + "." + std::to_string(number);
  r.lane = lane;
  r.clock = known;
  r.clock.set(lane, number);
  r.effects = {std::move(reads), std::move(writes)};
  r.effects.normalize();
  return r;
}

TEST(Clocks, IntervalsAreSortedAndMerged) {
  Effects effects;
  effects.reads = {{30, 40}, {10, 20}, {20, 25}, {5, 5}, {35, 50}};
  effects.normalize();
  EXPECT_EQ(effects.reads, (Intervals{{10, 25}, {30, 50}}));
}

TEST(Clocks, CommonBytesAreThoseThatBothHave) {
  std::mt19937 random(1);
  for (int turn = 0; turn < 500; ++turn) {
    Effects effects;
    std::vector<bool> bytes[2] = {std::vector<bool>(64), std::vector<bool>(64)};
    Intervals *lists[2] = {&effects.reads, &effects.writes};
    for (int list = 0; list < 2; ++list)
      for (unsigned n = random() % 4; n; --n) {
        uint64_t begin = random() % 60, end = begin + random() % 4;
        lists[list]->push_back({begin, end});
        for (uint64_t i = begin; i < end; ++i)
          bytes[list][i] = true;
      }
    effects.normalize();
    bool any = false;
    for (int i = 0; i < 64; ++i)
      any |= bytes[0][i] && bytes[1][i];
    auto found = common(effects.reads, effects.writes);
    ASSERT_EQ(found.has_value(), any);
    if (!found)
      continue;
    ASSERT_LT(found->begin, found->end);
    for (uint64_t i = found->begin; i < found->end; ++i)
      ASSERT_TRUE(bytes[0][i] && bytes[1][i]);
  }
}

TEST(Clocks, ConflictsAreFoundWithoutAnOrderOnly) {
  HappensBefore checker;
  EXPECT_FALSE(checker.add(record(0, 1, {}, {{0, 100}})));
  // The same lane is in order, another one is not.
  EXPECT_FALSE(checker.add(record(0, 2, {{0, 100}}, {})));
  std::optional<Conflict> conflict = checker.add(record(1, 1, {{96, 104}}, {}));
  ASSERT_TRUE(conflict);
  EXPECT_EQ(conflict->other, "0.1");
  EXPECT_FALSE(conflict->thisWrites);
  EXPECT_TRUE(conflict->otherWrites);
  EXPECT_EQ(conflict->bytes, (ByteInterval{96, 100}));
  // Readers need no order among themselves; a writer needs one with both.
  LaneClock afterWrite;
  afterWrite.set(0, 1);
  EXPECT_FALSE(checker.add(record(2, 1, {{0, 50}}, {}, afterWrite)));
  conflict = checker.add(record(3, 1, {}, {{10, 11}}, afterWrite));
  ASSERT_TRUE(conflict);
  EXPECT_EQ(conflict->other, "0.2");
  EXPECT_FALSE(conflict->otherWrites);
}

TEST(Clocks, WhatEverybodyKnowsIsForgotten) {
  HappensBefore checker;
  checker.add(record(0, 1, {}, {{0, 8}}));
  checker.add(record(0, 2, {}, {{0, 8}}));
  LaneClock known;
  known.set(0, 1);
  checker.forget(std::vector{known});
  EXPECT_EQ(checker.size(), 1u);
}

TEST(Clocks, WhatIsKnownOnOneDeviceIsKeptForOthers) {
  HappensBefore checker;
  OperationRecord first = record(0, 1, {}, {{0, 8}}), second = record(1, 1, {}, {{8, 16}});
  second.device = 1;
  checker.add(first);
  checker.add(second);
  LaneClock both;
  both.set(0, 1);
  both.set(1, 1);
  checker.forget(std::vector{both, LaneClock()});
  EXPECT_EQ(checker.size(), 1u);
  EXPECT_TRUE(checker.add(record(2, 1, {{8, 9}}, {})));
}

TEST(Clocks, ReleaseComesAfterWhatOtherDevicesDo) {
  HappensBefore checker;
  OperationRecord reader = record(1, 1, {{8, 16}}, {});
  reader.device = 1;
  LaneClock known;
  checker.add(record(0, 1, {}, {{0, 8}}));
  checker.add(reader);
  // The device's own work has ended; that of others is known or not.
  EXPECT_FALSE(checker.release({0, 8}, known, 0));
  std::optional<Conflict> conflict = checker.release({0, 12}, known, 0);
  ASSERT_TRUE(conflict);
  EXPECT_EQ(conflict->other, "1.1");
  EXPECT_FALSE(conflict->otherWrites);
  EXPECT_EQ(conflict->bytes, (ByteInterval{8, 12}));
  known.set(1, 1);
  EXPECT_FALSE(checker.release({8, 16}, known, 0));
  EXPECT_EQ(checker.size(), 0u);
}

TEST(Clocks, BytesOfReleasedMemoryAreForgotten) {
  HappensBefore checker;
  checker.add(record(0, 1, {{0, 40}}, {{40, 60}}));
  checker.forget(ByteInterval{10, 60});
  EXPECT_EQ(checker.size(), 1u);
  EXPECT_FALSE(checker.add(record(1, 1, {}, {{10, 60}})));
  std::optional<Conflict> conflict = checker.add(record(2, 1, {}, {{0, 11}}));
  ASSERT_TRUE(conflict);
  EXPECT_EQ(conflict->other, "0.1");
  checker.forget(ByteInterval{0, 60});
  EXPECT_EQ(checker.size(), 0u);
}

TEST(Clocks, JoinAndMeet) {
  LaneClock a, b;
  a.set(0, 3);
  b.set(0, 1);
  b.set(2, 5);
  LaneClock both = a;
  both.join(b);
  EXPECT_EQ(both.of(0), 3u);
  EXPECT_EQ(both.of(2), 5u);
  EXPECT_TRUE(both.includes(a) && both.includes(b) && !a.includes(b));
  both.meet(b);
  EXPECT_EQ(both.of(0), 1u);
  both.meet(a);
  EXPECT_EQ(both.of(2), 0u);
}

} // namespace
