// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What joining and a barrier cost as worlds grow. Times are printed and not judged: all ranks share
// the cores of this machine, so that they grow with the number of ranks once there are more of them
// than cores. What a rank does for a barrier does not: its processor time is printed as well.
#include "test/unit/runtime/control/Planes.h"

#include "runtime/control/Tree.h"

#include <cstdio>
#include <sys/resource.h>

using namespace shardc::rt;
using namespace test;

namespace {

double processorSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  auto seconds = [](timeval time) { return double(time.tv_sec) + double(time.tv_usec) * 1e-6; };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

void measure(uint32_t size) {
  constexpr int barriers = 30;
  auto start = Clock::now();
  std::vector<Plane> planes = makeWorld(size, 120);
  double joining = secondsSince(start);
  for (const Plane &plane : planes)
    ASSERT_TRUE(plane);
  auto round = [](int count) {
    return [count](ControlPlane &plane) {
      for (int i = 0; i < count; ++i)
        plane.exchange({"the barrier"}, "", in(60));
    };
  };
  onAll(planes, round(1)); // all threads are there
  double before = processorSeconds();
  start = Clock::now();
  for (const std::string &error : onAll(planes, round(barriers)))
    EXPECT_EQ(error, "");
  double barrier = secondsSince(start) / barriers;
  double work = (processorSeconds() - before) / barriers / size;
  start = Clock::now();
  endWorld(planes);
  std::printf("%5u ranks: joining %8.2f ms, a barrier %8.1f us, of it %6.1f us of processor time "
              "on each rank; ending %8.2f ms\n",
              size, joining * 1e3, barrier * 1e6, work * 1e6, secondsSince(start) * 1e3);
}

/// Messages of a barrier that follow each other.
uint32_t rounds(uint32_t size) {
  uint32_t out = 0;
  for (uint32_t rank = size - 1; rank > 0; rank = treeParent(rank))
    out += 2;
  return out;
}

} // namespace

TEST(ControlTree, MessagesInARowGrowWithTheLogarithm) {
  EXPECT_EQ(rounds(2), 2u);
  EXPECT_EQ(rounds(5), 2u);
  EXPECT_EQ(rounds(6), 4u);
  EXPECT_EQ(rounds(64), 6u);
  EXPECT_EQ(rounds(1024), 10u);
  EXPECT_EQ(rounds(1 << 20), 20u);
}

class ControlCost : public testing::TestWithParam<uint32_t> {};

TEST_P(ControlCost, OfWorlds) { measure(GetParam()); }
INSTANTIATE_TEST_SUITE_P(Sizes, ControlCost, testing::Values(2, 4, 8, 16, 32, 64),
                         testing::PrintToStringParamName());
INSTANTIATE_TEST_SUITE_P(DISABLED_LargeSizes, ControlCost, testing::Values(256, 1024),
                         testing::PrintToStringParamName());
