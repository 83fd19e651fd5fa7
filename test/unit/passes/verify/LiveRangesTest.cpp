// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The sweep against the definition: all pairs of buffers, at all steps.
#include "passes/verify/core/LiveRanges.h"

#include <gtest/gtest.h>

#include <chrono>
#include <random>

using namespace shardc;

namespace {
struct Buffer {
  LiveRange range;
  int64_t bytes;
};

std::vector<std::pair<uint32_t, uint32_t>> overlapsOf(const std::vector<Buffer> &buffers) {
  std::vector<LiveRange> ranges;
  for (const Buffer &buffer : buffers)
    ranges.push_back(buffer.range);
  return findOverlaps(ranges, [&](uint32_t high, uint32_t low) {
    return buffers[low].range.key + buffers[low].bytes <= buffers[high].range.key;
  });
}

bool meet(const Buffer &a, const Buffer &b) {
  return a.range.first <= b.range.last && b.range.first <= a.range.last &&
         a.range.key < b.range.key + b.bytes && b.range.key < a.range.key + a.bytes;
}

TEST(LiveRanges, NothingAndOne) {
  EXPECT_TRUE(overlapsOf({}).empty());
  EXPECT_TRUE(overlapsOf({{{0, 9, 64}, 64}}).empty());
}

TEST(LiveRanges, LastStepIsIncluded) {
  EXPECT_TRUE(overlapsOf({{{0, 1, 0}, 64}, {{2, 3, 0}, 64}}).empty());
  EXPECT_EQ(overlapsOf({{{0, 2, 0}, 64}, {{2, 3, 0}, 64}}).size(), 1u);
  EXPECT_TRUE(overlapsOf({{{0, 2, 0}, 64}, {{2, 3, 64}, 64}}).empty());
}

TEST(LiveRanges, WhatEndedIsForgottenBetweenOthers) {
  // The middle one ends; the outer two then are neighbours, and a fourth comes between.
  EXPECT_TRUE(overlapsOf({{{0, 9, 0}, 64}, {{0, 9, 256}, 64}, {{0, 3, 64}, 192}, {{4, 5, 64}, 192}})
                  .empty());
  EXPECT_EQ(overlapsOf({{{0, 9, 0}, 64}, {{0, 9, 256}, 64}, {{0, 3, 64}, 192}, {{4, 5, 64}, 193}}),
            (std::vector<std::pair<uint32_t, uint32_t>>{{1, 3}}));
}

TEST(LiveRanges, AgreesWithAllPairs) {
  std::mt19937 random(7);
  auto below = [&](int n) { return static_cast<int64_t>(random() % n); };
  int right = 0;
  for (int round = 0; round < 20000; ++round) {
    std::vector<Buffer> buffers(1 + below(7));
    for (Buffer &buffer : buffers) {
      uint32_t first = below(12);
      buffer = {{first, static_cast<uint32_t>(first + below(5)), below(40)}, 1 + below(8)};
    }
    bool sound = true;
    for (size_t i = 0; i < buffers.size(); ++i)
      for (size_t j = 0; j < i; ++j)
        sound &= !meet(buffers[i], buffers[j]);
    right += sound;
    std::vector<std::pair<uint32_t, uint32_t>> found = overlapsOf(buffers);
    ASSERT_EQ(found.empty(), sound);
    for (auto [earlier, later] : found) {
      ASSERT_NE(earlier, later);
      ASSERT_LE(buffers[earlier].range.first, buffers[later].range.first);
    }
  }
  EXPECT_GT(right, 1000);
  EXPECT_LT(right, 19000);
}

TEST(LiveRanges, MillionBuffersInSeconds) {
  // A thousand in use at each step.
  std::vector<Buffer> buffers;
  for (uint32_t i = 0; i < 1000000; ++i)
    buffers.push_back({{i, i + 999, (i % 1000) * 64}, 64});
  auto start = std::chrono::steady_clock::now();
  EXPECT_TRUE(overlapsOf(buffers).empty());
  buffers[500000].bytes = 65;
  EXPECT_FALSE(overlapsOf(buffers).empty());
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
}
} // namespace
