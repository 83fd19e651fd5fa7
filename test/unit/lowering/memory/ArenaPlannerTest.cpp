// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/memory/core/ArenaPlanner.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <random>

using namespace shardc::memory;

namespace {

using Requests = std::vector<ArenaRequest>;

bool overlaps(const ArenaRequest &a, const ArenaRequest &b) {
  return a.first <= b.last && b.first <= a.last;
}

/// Every pair, byte range by byte range.
void expectDisjoint(const Requests &requests, const std::vector<uint64_t> &offsets) {
  ASSERT_EQ(offsets.size(), requests.size());
  for (size_t i = 0; i < requests.size(); ++i)
    for (size_t j = 0; j < i; ++j) {
      if (!overlaps(requests[i], requests[j]))
        continue;
      bool apart = offsets[i] + requests[i].bytes <= offsets[j] ||
                   offsets[j] + requests[j].bytes <= offsets[i];
      EXPECT_TRUE(apart) << "requests " << j << " and " << i;
    }
}

uint64_t peakByEnumeration(const Requests &requests, uint64_t alignment) {
  uint32_t end = 0;
  for (const ArenaRequest &request : requests)
    end = std::max(end, request.last);
  uint64_t peak = 0;
  for (uint32_t step = 0; step <= end; ++step) {
    uint64_t live = 0;
    for (const ArenaRequest &request : requests)
      if (request.first <= step && step <= request.last)
        live += (request.bytes + alignment - 1) / alignment * alignment;
    peak = std::max(peak, live);
  }
  return peak;
}

Requests randomRequests(std::mt19937 &random, unsigned count, uint32_t steps) {
  Requests requests(count);
  for (ArenaRequest &request : requests) {
    request.first = random() % steps;
    request.last = std::min<uint32_t>(steps - 1, request.first + random() % 6);
    request.bytes = random() % 8 == 0 ? 0 : random() % 1000;
  }
  return requests;
}

TEST(ArenaPlanner, NothingToPlace) {
  ArenaPlan plan = planArena({}, 64);
  EXPECT_TRUE(plan.offsets.empty());
  EXPECT_EQ(plan.bytes, 0u);
}

TEST(ArenaPlanner, AChainNeedsTwoBuffers) {
  Requests requests;
  for (uint32_t i = 0; i < 10; ++i)
    requests.push_back({100, i, i + 1});
  ArenaPlan plan = planArena(requests, 64);
  EXPECT_EQ(plan.bytes, 256u);
  expectDisjoint(requests, plan.offsets);
}

TEST(ArenaPlanner, TouchingIntervalsConflict) {
  // An op reads one buffer while it writes the other.
  Requests requests{{64, 0, 1}, {64, 1, 2}};
  ArenaPlan plan = planArena(requests, 64);
  EXPECT_NE(plan.offsets[0], plan.offsets[1]);
}

TEST(ArenaPlanner, EmptyBuffersOccupyNothing) {
  Requests requests{{0, 0, 9}, {64, 0, 9}, {0, 3, 3}};
  EXPECT_EQ(planArena(requests, 64).bytes, 64u);
}

TEST(ArenaPlanner, SizeOrderBeatsTimeOrder) {
  // By time: a at 0, b at 64, c does not fit into a's place and grows the arena.
  Requests requests{{64, 0, 1}, {64, 1, 2}, {128, 2, 3}};
  ArenaPlan plan = planArena(requests, 64);
  EXPECT_EQ(plan.bytes, 192u);
}

TEST(ArenaPlanner, RandomPlansAreDisjointAlignedAndTight) {
  std::mt19937 random(1);
  double worst = 1;
  for (int trial = 0; trial < 300; ++trial) {
    Requests requests = randomRequests(random, 1 + random() % 60, 40);
    ArenaPlan plan = planArena(requests, 64);
    expectDisjoint(requests, plan.offsets);
    uint64_t end = 0;
    for (size_t i = 0; i < requests.size(); ++i) {
      EXPECT_EQ(plan.offsets[i] % 64, 0u);
      if (requests[i].bytes)
        end = std::max(end, plan.offsets[i] + requests[i].bytes);
    }
    EXPECT_LE(end, plan.bytes);
    uint64_t peak = peakByEnumeration(requests, 64);
    EXPECT_EQ(peakLiveBytes(requests, 64), peak);
    EXPECT_GE(plan.bytes, peak);
    if (peak)
      worst = std::max(worst, double(plan.bytes) / double(peak));
  }
  EXPECT_LT(worst, 1.5);
}

TEST(ArenaPlanner, OrderHoldsForAnySizes) {
  std::mt19937 random(2);
  for (int trial = 0; trial < 300; ++trial) {
    Requests requests = randomRequests(random, 1 + random() % 50, 40);
    ArenaOrder order = orderArena(requests, planArena(requests, 64));
    for (ArenaRequest &request : requests)
      request.bytes = random() % 5000;
    std::vector<uint64_t> offsets(requests.size(), 0);
    std::vector<bool> done(requests.size(), false);
    for (uint32_t i : order.order) {
      for (uint32_t below : order.below[i]) {
        ASSERT_TRUE(done[below]);
        offsets[i] = std::max(offsets[i], offsets[below] + requests[below].bytes);
      }
      done[i] = true;
    }
    expectDisjoint(requests, offsets);
  }
}

TEST(ArenaPlanner, ManyBuffersThatNeverDie) {
  // Every pair conflicts: must neither take quadratic time nor lose the bound.
  Requests requests;
  for (uint32_t i = 0; i < 200000; ++i)
    requests.push_back({1 + i % 700, i, 200000});
  ArenaPlan plan = planArena(requests, 64);
  EXPECT_EQ(plan.bytes, peakLiveBytes(requests, 64));
}

} // namespace
