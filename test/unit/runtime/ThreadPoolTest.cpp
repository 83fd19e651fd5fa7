// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/threads/ThreadPool.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <mutex>
#include <set>

using namespace shardc::rt;

namespace {
struct Ranges {
  std::mutex mutex;
  std::vector<std::pair<int64_t, int64_t>> seen;
  std::set<std::thread::id> threads;
  static void body(void *arg, int64_t begin, int64_t end) {
    auto &self = *static_cast<Ranges *>(arg);
    EXPECT_TRUE(ThreadPool::insideBody());
    std::lock_guard lock(self.mutex);
    self.seen.push_back({begin, end});
    self.threads.insert(std::this_thread::get_id());
  }
};
} // namespace

TEST(ThreadPool, RangesCoverEverythingOnceAndRespectTheGrain) {
  ThreadPool pool(4, 1);
  EXPECT_EQ(pool.threads(), 4);
  for (int64_t n : {0, 1, 2, 7, 64, 1000, 100003})
    for (int64_t grain : {1, 3, 50, 2000}) {
      Ranges ranges;
      pool.parallelFor(Ranges::body, &ranges, n, grain);
      std::sort(ranges.seen.begin(), ranges.seen.end());
      int64_t at = 0;
      for (auto [begin, end] : ranges.seen) {
        ASSERT_EQ(begin, at);
        ASSERT_GT(end, begin);
        ASSERT_TRUE(end == n || end - begin >= grain);
        at = end;
      }
      ASSERT_EQ(at, n);
    }
  EXPECT_FALSE(ThreadPool::insideBody());
}

TEST(ThreadPool, NestedRegionsRunInline) {
  ThreadPool pool(3, 1);
  struct Outer {
    ThreadPool &pool;
    std::atomic<int64_t> sum{0};
  } outer{pool};
  pool.parallelFor(
      [](void *arg, int64_t begin, int64_t end) {
        auto &outer = *static_cast<Outer *>(arg);
        for (int64_t i = begin; i < end; ++i)
          outer.pool.parallelFor(
              [](void *inner, int64_t b, int64_t e) { static_cast<Outer *>(inner)->sum += e - b; },
              arg, 10, 1);
      },
      &outer, 100, 1);
  EXPECT_EQ(outer.sum, 1000);
}

TEST(ThreadPool, ManyShortRegions) {
  // Late workers of one region must not run a part of the next one twice, or read it half written.
  ThreadPool pool(4, 1);
  std::vector<int64_t> data(97);
  for (int64_t round = 1; round <= 20000; ++round)
    pool.parallelFor(
        [](void *arg, int64_t begin, int64_t end) {
          auto &data = *static_cast<std::vector<int64_t> *>(arg);
          for (int64_t i = begin; i < end; ++i)
            ++data[size_t(i)];
        },
        &data, round % 2 ? 97 : 50, 1);
  for (size_t i = 0; i < data.size(); ++i)
    ASSERT_EQ(data[i], i < 50 ? 20000 : 10000) << i;
}

TEST(ThreadPool, OneThreadRunsEverythingOnTheCaller) {
  ThreadPool pool(1, 4);
  Ranges ranges;
  pool.parallelFor(Ranges::body, &ranges, 100, 1);
  EXPECT_EQ(ranges.threads, std::set<std::thread::id>{std::this_thread::get_id()});
}

TEST(ThreadPool, WorkersTakePart) {
  ThreadPool pool(2, 1);
  Ranges ranges;
  pool.parallelFor(
      [](void *arg, int64_t begin, int64_t end) {
        Ranges::body(arg, begin, end);
        // The other thread gets its part, however long it takes to wake up.
        auto &self = *static_cast<Ranges *>(arg);
        auto alone = [&] {
          std::lock_guard lock(self.mutex);
          return self.threads.size() < 2;
        };
        for (int i = 0; i < 60000 && alone(); ++i)
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
      },
      &ranges, 8, 1);
  EXPECT_EQ(ranges.threads.size(), 2u);
}
