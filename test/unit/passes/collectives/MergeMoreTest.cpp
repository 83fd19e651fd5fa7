// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Merging in a finished plan.
#include "passes/collectives/core/MergeMore.h"
#include "passes/collectives/core/CheckPlan.h"
#include "passes/collectives/core/Optimize.h"
#include "passes/cost/core/SimV1.h"
#include "test/unit/passes/collectives/Builder.h"
#include "test/unit/passes/collectives/RandomGraph.h"
#include "test/unit/passes/collectives/RoundModel.h"

using namespace shardc;
using namespace shardc::collectives;
using shardc::collectives::test::Builder;
using shardc::collectives::test::RoundModel;

namespace {

constexpr auto AG = CollectiveKind::AllGather, RS = CollectiveKind::ReduceScatter;

/// The plan of the graph's own order.
Decision asItIs(const Graph &graph) {
  return {identityPlan(graph), {}, {}, std::vector(graph.numNodes(), AloneReason::Cost)};
}

std::optional<Decision> merge(const Graph &graph, const MergeOptions &options) {
  Problem problem(graph);
  return mergeMore(problem, BucketKeys(problem, options.buckets), RoundModel(), asItIs(graph),
                   options);
}

/// Gathers of these bytes start in a row; the first kernel runs for so long before it uses the
/// first, and kernels of 100 us use the others.
Graph gathers(std::vector<uint64_t> bytes, double firstUs) {
  Builder b;
  GroupId g = b.group("g", 2);
  ValueId x = b.input(10);
  std::vector<ValueId> started;
  for (size_t i = 0; i != bytes.size(); ++i)
    started.push_back(b.start("g" + std::to_string(i), AG, g, b.input(bytes[i] / 2), bytes[i]));
  x = b.kernel("first", {x}, firstUs, 10);
  for (size_t i = 0; i != bytes.size(); ++i)
    x = b.kernel("k" + std::to_string(i), {x, b.wait("w" + std::to_string(i), started[i])}, 100,
                 10);
  b.output(x);
  return b.finish();
}

std::vector<std::vector<std::string>> bucketsOf(const Graph &graph,
                                                const std::optional<Decision> &decision) {
  std::vector<std::vector<std::string>> names;
  if (decision)
    for (const std::vector<NodeId> &members : decision->plan.buckets) {
      names.emplace_back();
      for (NodeId member : members)
        names.back().push_back(graph.nameOf(member));
    }
  return names;
}

using Names = std::vector<std::vector<std::string>>;

TEST(MergeMore, WhatIsThereInTimeIsMerged) {
  // Each gather takes its latency of 10 and its bytes; the kernel hides all of them.
  Graph graph = gathers({100, 100, 100}, 1000);
  std::optional<Decision> merged = merge(graph, {.packingUs = 1e9});
  EXPECT_EQ(bucketsOf(graph, merged), (Names{{"g0", "g1", "g2"}}));
  EXPECT_EQ(checkPlan(graph, merged->plan), "");
  ASSERT_EQ(merged->closed.size(), 1u);
  EXPECT_EQ(merged->closed.front(), CloseReason::Cost);
  EXPECT_EQ(merged->capBytes, std::vector<uint64_t>{UINT64_MAX});
  // Started where the last one was, waited for and unpacked where the first was.
  std::vector<std::string> order;
  for (auto [kind, id] : merged->plan.items)
    if (kind == PlanItem::Kind::Op && graph.isKernel(id))
      order.push_back(graph.nameOf(id));
    else if (kind != PlanItem::Kind::Op)
      order.push_back(kind == PlanItem::Kind::Pack    ? "pack"
                      : kind == PlanItem::Kind::Start ? "start"
                      : kind == PlanItem::Kind::Wait  ? "wait"
                                                      : "unpack");
  EXPECT_EQ(order, (std::vector<std::string>{"pack", "start", "first", "wait", "unpack", "k0", "k1",
                                             "k2"}));
}

TEST(MergeMore, NominalTimesComeFirst) {
  // Behind 215 us the first two are there, all three are not: what waits for the first would wait
  // for the third.
  EXPECT_EQ(bucketsOf(gathers({100, 100, 100}, 215),
                      merge(gathers({100, 100, 100}, 215), {.packingUs = 1e9, .patience = 1e9})),
            (Names{{"g0", "g1"}}));
  EXPECT_FALSE(merge(gathers({100, 100, 100}, 0), {.packingUs = 1e9, .patience = 1e9}));
}

TEST(MergeMore, PatienceIsForTheSlowNetwork) {
  // On nominal times the kernel hides everything, where the network takes twice as long nothing:
  // the second gather holds up what waits for the first by 2 * 100.
  Graph graph = gathers({100, 100}, 212);
  EXPECT_FALSE(merge(graph, {.packingUs = 1e9, .patience = 0.5}));
  EXPECT_TRUE(merge(graph, {.packingUs = 1e9, .patience = 100}));
}

TEST(MergeMore, WhatSavesMostForItsPackingIsMerged) {
  Graph graph = gathers({400, 40, 400, 40}, 5000);
  auto packing = [&](NodeId a, NodeId b) {
    Problem problem(graph);
    RoundModel model;
    double us = 2 * model.launchUs();
    for (NodeId node : {a, b})
      us += packUs(problem, problem.taskOf[node], model) +
            unpackUs(problem, problem.taskOf[node], model);
    return us;
  };
  NodeId g1 = test::nodeNamed(graph, "g1"), g3 = test::nodeNamed(graph, "g3");
  double us = packing(g1, g3);
  EXPECT_EQ(bucketsOf(graph, merge(graph, {.packingUs = us})), (Names{{"g1", "g3"}}));
  EXPECT_FALSE(merge(graph, {.packingUs = us * 0.99}));
  EXPECT_EQ(bucketsOf(graph, merge(graph, {.packingUs = 1e9})), (Names{{"g0", "g1", "g2", "g3"}}));
  // Without packing everything is free.
  EXPECT_EQ(bucketsOf(graph, merge(graph, {.flat = true, .packingUs = 0})),
            (Names{{"g0", "g1", "g2", "g3"}}));
}

TEST(MergeMore, CapsAndBytesHold) {
  Graph graph = gathers({1 << 19, 1 << 19, 1 << 19}, 1e9);
  MergeOptions options{.packingUs = 1e9};
  options.buckets.caps = BucketCaps({1});
  EXPECT_EQ(bucketsOf(graph, merge(graph, options)), (Names{{"g0", "g1"}}));
  options.buckets.caps = BucketCaps({0.75});
  EXPECT_FALSE(merge(graph, options));
}

TEST(MergeMore, KeysAreKeptApart) {
  Builder b;
  GroupId g = b.group("g", 2), h = b.group("h", 2);
  ValueId p = b.input(100), q = b.input(100), r = b.input(100), s = b.input(100);
  ValueId a = b.start("a", AG, g, p, 200), c = b.start("c", RS, g, q, 50, "sum");
  ValueId d = b.start("d", AG, h, r, 200), e = b.start("e", AG, g, s, 200);
  ValueId x = b.kernel("k", {p}, 1e5, 10);
  b.output(b.kernel("use", {x, b.wait("wa", a), b.wait("wc", c), b.wait("wd", d), b.wait("we", e)},
                    1, 10));
  Graph graph = b.finish();
  EXPECT_EQ(bucketsOf(graph, merge(graph, {.packingUs = 1e9})), (Names{{"a", "e"}}));
}

TEST(MergeMore, WhatDependsOnAMemberIsNotMergedWithIt) {
  Builder b;
  GroupId g = b.group("g", 2);
  ValueId x = b.run("a", AG, g, b.input(50), 100);
  x = b.run("b", AG, g, b.kernel("k", {x}, 1e5, 50), 100);
  b.output(b.kernel("use", {x}, 1e5, 10));
  EXPECT_FALSE(merge(b.finish(), {.packingUs = 1e9, .patience = 1e9}));
}

/// Plans of any graph stay valid, and on nominal times they are longer by what packing takes.
TEST(MergeMore, PlansStayValid) {
  cost::SimV1 model;
  int some = 0;
  for (uint32_t seed = 0; seed != 120; ++seed) {
    SCOPED_TRACE(seed);
    Graph graph = test::randomGraph(seed, {40 + seed % 90, 1 + seed % 3, seed % 2 == 0});
    OptimizeOptions options;
    options.memoryLimit = UINT64_MAX;
    options.bucket = seed % 3 != 0;
    options.flat = seed % 5 == 0;
    OptimizeResult result = optimize(graph, model, options);
    ASSERT_EQ(result.error, "");
    Decision decision{result.plan, {}, {}, std::vector(graph.numNodes(), AloneReason::Cost)};
    for (const BucketRecord &bucket : result.buckets) {
      decision.closed.push_back(bucket.closed);
      decision.capBytes.push_back(bucket.capBytes);
    }
    Problem problem(graph);
    BucketKeys keys(problem, {});
    double us = double(seed % 4) * 100;
    std::optional<Decision> merged =
        mergeMore(problem, keys, model, decision, {.flat = options.flat, .packingUs = us});
    if (!merged)
      continue;
    ++some;
    EXPECT_EQ(checkPlan(graph, merged->plan), "");
    EXPECT_EQ(merged->closed.size(), merged->plan.buckets.size());
    EXPECT_EQ(merged->capBytes.size(), merged->plan.buckets.size());
    Figures before = simulate(graph, decision.plan, model, {options.flat});
    Figures after = simulate(graph, merged->plan, model, {options.flat});
    EXPECT_LT(after.launches, before.launches + 2 * after.buckets + 1);
    EXPECT_LE(after.stepUs, before.stepUs + us + 2 * double(after.buckets + 1));
  }
  EXPECT_GE(some, 20);
}

} // namespace
