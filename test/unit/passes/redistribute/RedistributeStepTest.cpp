// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/redistribute/core/Planner.h"

#include <gtest/gtest.h>

using namespace shardc;
using Shape = std::vector<int64_t>;

static std::vector<std::string> steps(const Mesh &mesh, const char *from, const char *to,
                                      Shape shape) {
  RedistributePlan plan =
      planGreedily(*parseLayout(mesh, from).value, *parseLayout(mesh, to).value, shape);
  std::vector<std::string> result = plan.errors;
  for (const RedistributeStep &step : plan.steps)
    result.push_back(step.str());
  return result;
}

static const Mesh kMesh({{"a", 2}, {"b", 2}});
using Text = std::vector<std::string>;

TEST(Steps, MisalignedAxesAreTakenApart) { // (R1)
  EXPECT_EQ(steps(kMesh, "[S(0), S(0)]", "[R, S(0)]", {5, 3}),
            (Text{"all_gather dim 0 over a, b: [S(0), S(0)] -> [R, R]",
                  "slice dim 0 over b: [R, R] -> [R, S(0)]"}));
  EXPECT_EQ(steps(kMesh, "[S(0), S(0)]", "[S(0), S(0)], order = [1, 0]", {5, 3}),
            (Text{"all_gather dim 0 over a, b: [S(0), S(0)] -> [R, R]",
                  "slice dim 0 over b: [R, R] -> [R, S(0)]",
                  "slice dim 0 over a: [R, S(0)] -> [S(0), S(0)], order = [1, 0]"}));
}

TEST(Steps, ReduceBeforeGatherAndAfterSlice) {
  EXPECT_EQ(steps(kMesh, "[P(sum), S(0)]", "[R, R]", {8, 8}),
            (Text{"all_reduce sum over a: [P(sum), S(0)] -> [R, S(0)]",
                  "all_gather dim 0 over b: [R, S(0)] -> [R, R]"}));
  EXPECT_EQ(steps(kMesh, "[P(sum), R]", "[R, S(1)]", {8, 8}),
            (Text{"slice dim 1 over b: [P(sum), R] -> [P(sum), S(1)]",
                  "all_reduce sum over a: [P(sum), S(1)] -> [R, S(1)]"}));
}

TEST(Steps, OneAllReduceOverBothAxes) {
  EXPECT_EQ(steps(kMesh, "[P(sum), P(sum)]", "[R, R]", {8}),
            Text{"all_reduce sum over a, b: [P(sum), P(sum)] -> [R, R]"});
  EXPECT_EQ(steps(kMesh, "[P(sum), P(max)]", "[R, R]", {8}).size(), 2u);
}

TEST(Steps, ExchangedDimsNeedOneGather) {
  EXPECT_EQ(steps(kMesh, "[S(0), S(1)]", "[S(1), S(0)]", {8, 8}),
            (Text{"all_gather dim 0 over a: [S(0), S(1)] -> [R, S(1)]",
                  "all_to_all dim 1 to dim 0 over b: [R, S(1)] -> [R, S(0)]",
                  "slice dim 1 over a: [R, S(0)] -> [S(1), S(0)]"}));
  EXPECT_EQ(steps(kMesh, "[S(0), S(1)]", "[S(1), R]", {8, 8}),
            (Text{"all_gather dim 1 over b: [S(0), S(1)] -> [S(0), R]",
                  "all_to_all dim 0 to dim 1 over a: [S(0), R] -> [S(1), R]"}));
}

TEST(Steps, ErrorsNameTheLayouts) {
  EXPECT_EQ(
      steps(kMesh, "[?, R]", "[R, R]", {8}),
      Text{"cannot redistribute [?, R] to [R, R]: axis \"a\": the placement is open, expected "
           "R, S or P"});
  RedistributePlan plan = planGreedily(Layout(kMesh), Layout(Mesh({{"c", 4}})), Shape{8});
  EXPECT_EQ(plan.errors,
            Text{"no sequence of steps leads from mesh [\"a\" = 2, \"b\" = 2] to [\"c\" = 4]"});
}

TEST(Steps, BytesByTheTable) {
  Mesh mesh({{"dp", 2}, {"tp", 4}});
  auto cost = [&](const char *from, const char *to, Shape shape) {
    double bytes = 0;
    RedistributePlan plan =
        planGreedily(*parseLayout(mesh, from).value, *parseLayout(mesh, to).value, shape);
    EXPECT_TRUE(plan.errors.empty());
    for (const RedistributeStep &step : plan.steps)
      bytes += bytesMoved(step, shape, 4);
    return bytes;
  };
  // 16 x 32 elements of 4 bytes: 2048 bytes, over tp, n = 4.
  EXPECT_EQ(cost("[R, P(sum)]", "[R, R]", {16, 32}), 2 * 3. / 4 * 2048);
  EXPECT_EQ(cost("[R, P(sum)]", "[R, S(0)]", {16, 32}), 3. / 4 * 2048);
  EXPECT_EQ(cost("[R, S(0)]", "[R, R]", {16, 32}), 3. / 4 * 2048);
  EXPECT_EQ(cost("[R, S(0)]", "[R, S(1)]", {16, 32}), 3. / 16 * 2048);
  EXPECT_EQ(cost("[R, R]", "[R, S(1)]", {16, 32}), 0);
  EXPECT_EQ(cost("[R, R]", "[P(sum), P(max)]", {16, 32}), 0);
  EXPECT_EQ(cost("[R, S(0)]", "[R, P(sum)]", {16, 32}), 0);
  // B counts what is left after sharding by the other axes; the largest shard where uneven.
  EXPECT_EQ(cost("[S(0), S(1)]", "[S(0), R]", {16, 32}), 3. / 4 * 1024);
  EXPECT_EQ(cost("[S(0), S(1)]", "[S(0), R]", {5, 32}), 3. / 4 * (3 * 32 * 4));
  EXPECT_EQ(cost("[R, S(0)]", "[R, R]", {kDynamic, 2}), 3. / 4 * (128 * 2 * 4));
}

TEST(Steps, SplitRangeOfAnInnerAxis) {
  Layout layout(kMesh, {Placement::shard(0), Placement::shard(0, 2)});
  // 12 over a: 6 each; over b in two blocks of 3: pieces of 2 and 1.
  SplitRange range = splitRange(layout, 1, Shape{12}, 0, Coordinate{1, 0});
  EXPECT_EQ(range.n, 6);
  EXPECT_EQ(range.pieces,
            (std::vector<std::vector<shardc::Run>>{{{0, 2}, {3, 5}}, {{2, 3}, {5, 6}}}));
  EXPECT_EQ(range.extent(1), 2);
  // The same 12 in blocks of 8 and 4, cut in units of 4 and of 1.
  layout.placements[0] = Placement::shardBlocks(0, {{8, 4}, {4, 1}});
  EXPECT_EQ(splitRange(layout, 0, Shape{12}, 0, Coordinate{0, 0}).pieces,
            (std::vector<std::vector<shardc::Run>>{{{0, 4}, {8, 10}}, {{4, 8}, {10, 12}}}));
}
