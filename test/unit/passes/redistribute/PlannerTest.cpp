// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which sequence the planner takes, and how much work it is to find it.
#include "passes/redistribute/core/Planner.h"
#include "passes/cost/core/TargetDescription.h"

#include <gtest/gtest.h>

using namespace shardc;
using Shape = std::vector<int64_t>;
using Text = std::vector<std::string>;

static const Mesh kMesh({{"a", 2}, {"b", 2}});

static Layout layoutOf(const Mesh &mesh, const char *text) {
  Parsed<Layout> layout = parseLayout(mesh, text);
  EXPECT_TRUE(layout) << layout.error;
  return *layout.value;
}

static Text cheapest(const Mesh &mesh, const char *from, const char *to, Shape shape,
                     PlannerOptions options = {}) {
  RedistributePlan plan = planCheapest(layoutOf(mesh, from), layoutOf(mesh, to), shape, options);
  Text result = plan.errors;
  for (const RedistributeStep &step : plan.steps)
    result.push_back(step.str());
  return result;
}

static double bytes(const Mesh &mesh, const char *from, const char *to, Shape shape) {
  double total = 0;
  for (const RedistributeStep &step :
       planCheapest(layoutOf(mesh, from), layoutOf(mesh, to), shape).steps)
    total += bytesMoved(step, shape, 4);
  return total;
}

TEST(Cheapest, MisalignedAxesAreNotGatheredWhole) { // (R1)
  EXPECT_EQ(cheapest(kMesh, "[S(0), S(0)]", "[R, S(0)]", {5, 3}),
            Text{"exchange over a, b: [S(0), S(0)] -> [R, S(0)]"});
  // Rank 2 has row 3 and needs rows 0 to 2 of three floats.
  EXPECT_EQ(bytes(kMesh, "[S(0), S(0)]", "[R, S(0)]", {5, 3}), 3 * 3 * 4);
  // Half of the tensor, where a gather is three quarters of it.
  EXPECT_EQ(bytes(kMesh, "[S(0), S(0)]", "[R, S(0)]", {8, 4}), 8 * 4 * 4 / 2);
}

TEST(Cheapest, AxisOrderChangesInOneExchange) { // (L2)
  EXPECT_EQ(cheapest(kMesh, "[S(0), S(0)]", "[S(0), S(0)], order = [1, 0]", {8, 4}),
            Text{"exchange over a, b: [S(0), S(0)] -> [S(0), S(0)], order = [1, 0]"});
  // The two ranks in the middle swap their quarters.
  EXPECT_EQ(bytes(kMesh, "[S(0), S(0)]", "[S(0), S(0)], order = [1, 0]", {8, 4}), 8 * 4 * 4 / 4);
}

TEST(Cheapest, OneDimIsSplitAnewInOneExchange) { // (L3b, L4)
  Mesh mesh({{"a", 4}});
  EXPECT_EQ(cheapest(mesh, "[S(0)]", "[S(0, blocks = 3)]", {24, 2}),
            Text{"exchange over a: [S(0)] -> [S(0, blocks = 3)]"});
  EXPECT_EQ(cheapest(mesh, "[S(0)]", "[S(0, sizes = [5, 3, 0, 2])]", {10, 2}),
            Text{"exchange over a: [S(0)] -> [S(0, sizes = [5, 3, 0, 2])]"});
  // 3, 3, 3, 1 to 5, 3, 0, 2: rank 2 gives its three rows away, two of them to rank 1.
  EXPECT_EQ(bytes(mesh, "[S(0)]", "[S(0, sizes = [5, 3, 0, 2])]", {10, 2}), 3 * 2 * 4);
}

TEST(Cheapest, SeveralAxesMoveAtOnce) {
  Mesh mesh({{"a", 2}, {"b", 4}});
  EXPECT_EQ(cheapest(mesh, "[S(0), S(0)]", "[S(1), S(1)]", {16, 16}),
            Text{"exchange over a, b: [S(0), S(0)] -> [S(1), S(1)]"});
  EXPECT_EQ(cheapest(mesh, "[S(0), S(1)]", "[S(1), S(0)]", {16, 16}),
            Text{"exchange over a, b: [S(0), S(1)] -> [S(1), S(0)]"});
  // An axis that keeps its place outside takes no part.
  EXPECT_EQ(cheapest(mesh, "[S(0), S(0)]", "[S(0), S(1)]", {16, 16}),
            Text{"all_to_all dim 0 to dim 1 over b: [S(0), S(0)] -> [S(0), S(1)]"});
}

TEST(Cheapest, AnExchangeIsAmongThoseWhoHaveWhatOthersNeed) {
  Mesh mesh({{"a", 2}, {"b", 2}, {"c", 2}});
  // Rows are cut by a instead of b, and then by c as before: who differ in c have nothing for each
  // other, unless shards are uneven.
  EXPECT_EQ(cheapest(mesh, "[S(1), S(0), S(0)]", "[S(0), S(1), S(0)]", {8, 8}),
            Text{"exchange over a, b: [S(1), S(0), S(0)] -> [S(0), S(1), S(0)]"});
  EXPECT_EQ(
      cheapest(mesh, "[S(0), S(0), S(0)]", "[S(0), S(0), S(0)], order = [1, 0, 2]", {8, 8}),
      Text{"exchange over a, b: [S(0), S(0), S(0)] -> [S(0), S(0), S(0)], order = [1, 0, 2]"});
  EXPECT_EQ(
      cheapest(mesh, "[S(0), S(0), S(0)]", "[S(0), S(0), S(0)], order = [2, 1, 0]", {8, 8}),
      Text{"exchange over a, c: [S(0), S(0), S(0)] -> [S(0), S(0), S(0)], order = [2, 1, 0]"});
  // Twenty rows are five on each rank of a, and these are three and two on c.
  Mesh uneven({{"a", 4}, {"b", 4}, {"c", 2}});
  EXPECT_EQ(cheapest(uneven, "[S(1), S(0), S(0)]", "[S(0), S(1), S(0)]", {20, 8}),
            Text{"exchange over a, b, c: [S(1), S(0), S(0)] -> [S(0), S(1), S(0)]"});
}

TEST(Cheapest, CopiesShareTheReduction) {
  // Each rank of b reduces a part over a, and all gather the parts. As many bytes with two ranks on
  // a, where one all-reduce takes less memory; fewer with four.
  EXPECT_EQ(cheapest(kMesh, "[P(sum), R]", "[R, R]", {8, 4}),
            Text{"all_reduce sum over a: [P(sum), R] -> [R, R]"});
  Mesh mesh({{"a", 4}, {"b", 2}});
  EXPECT_EQ(bytes(mesh, "[P(sum), R]", "[R, R]", {8, 8}), (2 * 3. / 4 / 2 + 1. / 2) * (8 * 8 * 4));
  // Not for a few bytes.
  PlannerOptions slow;
  slow.links = cost::LinkCosts({{1000, 1}, {1000, 1}});
  EXPECT_EQ(cheapest(mesh, "[P(sum), R]", "[R, R]", {8, 8}, slow),
            Text{"all_reduce sum over a: [P(sum), R] -> [R, R]"});
}

TEST(Cheapest, LinksOfDifferentSpeedDecide) {
  // a is between machines: what crosses it is as little as it can be.
  PlannerOptions options;
  options.links = cost::LinkCosts({{0, 100}, {0, 1}});
  EXPECT_EQ(cheapest(kMesh, "[P(sum), P(sum)]", "[R, R]", {8, 4}, options),
            (Text{"reduce_scatter sum dim 0 over b: [P(sum), P(sum)] -> [P(sum), S(0)]",
                  "reduce_scatter sum dim 0 over a: [P(sum), S(0)] -> [S(0), S(0)], order = [1, 0]",
                  "all_gather dim 0 over b, a: [S(0), S(0)], order = [1, 0] -> [R, R]"}));
}

TEST(Cheapest, UnknownSizesAreExchangedUnlessThereAreBlocks) {
  EXPECT_EQ(cheapest(kMesh, "[S(0), S(0)]", "[R, S(0)]", {kDynamic, 4}),
            Text{"exchange over a, b: [S(0), S(0)] -> [R, S(0)]"});
  EXPECT_EQ(cheapest(kMesh, "[S(0), S(0)]", "[S(0), S(0)], order = [1, 0]", {kDynamic, 4}),
            Text{"exchange over a, b: [S(0), S(0)] -> [S(0), S(0)], order = [1, 0]"});
  RedistributePlan blocks =
      planCheapest(layoutOf(kMesh, "[S(0), S(0)]"), layoutOf(kMesh, "[S(0, blocks = 2), S(0)]"),
                   Shape{kDynamic, 4});
  ASSERT_FALSE(blocks.steps.empty());
  for (const RedistributeStep &step : blocks.steps)
    EXPECT_NE(step.kind, StepKind::Exchange) << step.str();
  // An exchange along dims that are known takes blocks too.
  EXPECT_EQ(cheapest(kMesh, "[S(1), S(1)]", "[R, S(1, blocks = 2)]", {kDynamic, 8}),
            Text{"exchange over a, b: [S(1), S(1)] -> [R, S(1, blocks = 2)]"});
}

TEST(Cheapest, LinksByTheModel) {
  std::unique_ptr<cost::CostModel> model = cost::makeBuiltinModel("h100-64");
  ASSERT_TRUE(model);
  Mesh mesh({{"dp", 8}, {"tp", 8}});
  cost::LinkCosts links(*model, mesh);
  cost::LinkCost inside = links.of(CollectiveKind::AllGather, std::vector<unsigned>{1}),
                 between = links.of(CollectiveKind::AllGather, std::vector<unsigned>{0});
  EXPECT_DOUBLE_EQ(inside.latencyUs, 30);
  // 394e9 bytes a second of the whole, of which a rank sends seven eighths.
  EXPECT_NEAR(inside.usPerByte, 1 / 394e3 * 8 / 7, 1e-12);
  EXPECT_GT(between.latencyUs, inside.latencyUs);
}

// Placement decides axis by axis; on one axis with even shards its figures are the planner's.
TEST(Cheapest, OneAxisCostsWhatPlacementTakesItToCost) {
  Mesh mesh({{"a", 4}});
  std::vector<Placement> all{Placement::replicate(), Placement::shard(0), Placement::shard(1),
                             Placement::partial(), Placement::partial(Reduction::Max)};
  for (const Placement &from : all)
    for (const Placement &to : all) {
      double bytes = 0;
      Shape shape{16, 8};
      for (const RedistributeStep &step :
           planCheapest(Layout(mesh, {from}), Layout(mesh, {to}), shape).steps)
        bytes += bytesMoved(step, shape, 4);
      EXPECT_EQ(bytes,
                cost::transitionBytes({from.kind, from.dim, from.reduction},
                                      {to.kind, to.dim, to.reduction}, from == to, 16 * 8 * 4, 4))
          << from.str() << " -> " << to.str();
    }
  // Another split of one dim is an exchange of no more than a shard.
  EXPECT_EQ(cost::transitionBytes({PlacementKind::Shard, 0}, {PlacementKind::Shard, 0}, false,
                                  16 * 8 * 4, 4),
            3. / 16 * 16 * 8 * 4);
}

TEST(Cheapest, WorkOnFourAxes) {
  Mesh mesh({{"a", 2}, {"b", 2}, {"c", 2}, {"d", 2}});
  size_t most = 0;
  const char *ends[] = {"[R, R, R, R]",
                        "[S(0), S(0), S(0), S(0)]",
                        "[S(0), S(0), S(0), S(0)], order = [3, 2, 1, 0]",
                        "[S(0), S(1), S(0), S(1)]",
                        "[S(1), S(0), R, P(sum)]",
                        "[P(sum), R, P(sum), S(0)]",
                        "[P(sum), R, R, R]",
                        "[P(sum), P(max), S(0), S(1)]",
                        "[P(sum), P(sum), P(sum), P(sum)]"};
  std::unique_ptr<cost::CostModel> model = cost::makeBuiltinModel("h100-64");
  PlannerOptions byModel;
  byModel.links = cost::LinkCosts(*model, mesh);
  for (const PlannerOptions &options : {PlannerOptions(), byModel})
    for (const Shape &shape : {Shape{32, 48}, Shape{5, 3}, Shape{kDynamic, 48}})
      for (const char *from : ends)
        for (const char *to : ends) {
          RedistributePlan plan =
              planCheapest(layoutOf(mesh, from), layoutOf(mesh, to), shape, options);
          EXPECT_TRUE(plan.errors.empty());
          most = std::max(most, plan.expanded);
        }
  RecordProperty("most", static_cast<int>(most));
  EXPECT_LE(most, 600u);
  // The bound holds, and what comes out is a plan.
  PlannerOptions few;
  few.maxExpanded = 3;
  RedistributePlan plan =
      planCheapest(layoutOf(mesh, ends[8]), layoutOf(mesh, ends[2]), Shape{32, 48}, few);
  EXPECT_LE(plan.expanded, 3u);
  EXPECT_EQ(plan.steps.back().after, layoutOf(mesh, ends[2]));
}
