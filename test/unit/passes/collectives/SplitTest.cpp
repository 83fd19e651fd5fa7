// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/collectives/nodes/core/ChooseSplits.h"
#include "passes/cost/core/SimV1.h"
#include "passes/cost/core/TargetDescription.h"
#include "test/unit/passes/collectives/Builder.h"

#include <numeric>
#include <random>
#include <set>

using namespace shardc;
using namespace shardc::collectives;
using shardc::collectives::test::Builder;
using shardc::collectives::test::nodeNamed;

namespace {

using Ranks = std::vector<int64_t>;
using Order = NodeGroups::Order;

std::optional<NodeGroups> splitOf(const Ranks &ranks, uint32_t size, uint32_t ranksPerNode,
                                  WhyFlat expected = WhyFlat::Splits) {
  WhyFlat why = WhyFlat::Splits;
  auto split = splitGroups(ranks, size, ranksPerNode, why);
  EXPECT_EQ(why, expected);
  EXPECT_EQ(split.has_value(), expected == WhyFlat::Splits);
  return split;
}

TEST(NodeGroups, ByNodeAndByPlace) {
  auto split = splitOf({0, 1, 2, 3}, 4, 2);
  EXPECT_EQ(split->within, (Ranks{0, 1, 2, 3}));
  EXPECT_EQ(split->between, (Ranks{0, 2, 1, 3}));
  EXPECT_EQ(split->order, Order::ByNode);
  split = splitOf({0, 2, 1, 3}, 4, 2);
  EXPECT_EQ(split->within, (Ranks{0, 1, 2, 3}));
  EXPECT_EQ(split->between, (Ranks{0, 2, 1, 3}));
  EXPECT_EQ(split->order, Order::ByPlace);
  split = splitOf({0, 2, 3, 1}, 4, 2);
  EXPECT_EQ(split->order, Order::Neither);
  // The later node comes first, and lists are by their first rank all the same.
  split = splitOf({6, 7, 2, 3}, 4, 4);
  EXPECT_EQ(split->order, Order::ByNode);
  EXPECT_EQ(split->within, (Ranks{2, 3, 6, 7}));
  EXPECT_EQ(split->between, (Ranks{6, 2, 7, 3}));
}

TEST(NodeGroups, WhatStaysWhole) {
  splitOf({}, 4, 2, WhyFlat::UnknownRank);
  splitOf({0, 1, 2, 3}, 4, 4, WhyFlat::OneNode);
  splitOf({0, 2, 4, 6}, 4, 2, WhyFlat::OneNode);
  splitOf({0, 1, 2, 3}, 4, 1, WhyFlat::OneNode);
  splitOf({5}, 1, 2, WhyFlat::OneNode);
  splitOf({0, 1, 2}, 3, 2, WhyFlat::Unequal);
  splitOf({0, 1, 2, 4, 5, 6}, 6, 4, WhyFlat::Splits);
  splitOf({0, 1, 2, 4, 5, 8}, 6, 4, WhyFlat::Unequal);
  // Each group for itself would split, but not alike.
  splitOf({0, 1, 4, 5, 2, 6, 8, 12}, 4, 4, WhyFlat::Unequal);
  EXPECT_EQ(splitOf({0, 1, 2, 3, 4, 6, 5, 7}, 4, 2)->order, Order::Neither);
}

/// What each rank of a group gets by a gather between nodes and then within them, as positions of
/// the group: by place, and within a place by node.
Ranks gatheredPositions(const NodeGroups &split, const Ranks &group, int64_t rank) {
  auto groupOf = [](const Ranks &ranks, uint32_t size, int64_t rank) {
    size_t at = std::find(ranks.begin(), ranks.end(), rank) - ranks.begin();
    auto first = ranks.begin() + static_cast<ptrdiff_t>(at / size * size);
    return Ranks(first, first + size);
  };
  Ranks positions;
  for (int64_t neighbour : groupOf(split.within, split.ranksOnNode, rank))
    for (int64_t other : groupOf(split.between, split.nodes, neighbour))
      positions.push_back(std::find(group.begin(), group.end(), other) - group.begin());
  return positions;
}

TEST(NodeGroups, RandomGroups) {
  std::mt19937 random(1);
  unsigned byNode = 0, byPlace = 0;
  for (int round = 0; round != 2000; ++round) {
    uint32_t ranksPerNode = 2 + random() % 3, nodes = 2 + random() % 3;
    Ranks world(size_t(ranksPerNode * nodes));
    std::iota(world.begin(), world.end(), 0);
    if (round % 3 == 0) // a transposed mesh
      std::sort(world.begin(), world.end(), [&](int64_t a, int64_t b) {
        return std::pair(a % ranksPerNode, a) < std::pair(b % ranksPerNode, b);
      });
    else if (round % 3 == 1)
      std::shuffle(world.begin(), world.end(), random);
    uint32_t size = random() % 2 ? world.size() : 4;
    world.resize(world.size() / size * size);
    WhyFlat why = WhyFlat::Splits;
    auto split = splitGroups(world, size, ranksPerNode, why);
    if (!split)
      continue;
    ASSERT_EQ(split->nodes * split->ranksOnNode, size);
    byNode += split->order == Order::ByNode;
    byPlace += split->order == Order::ByPlace;
    for (size_t first = 0; first < world.size(); first += size) {
      Ranks group(world.begin() + ptrdiff_t(first), world.begin() + ptrdiff_t(first + size));
      for (int64_t rank : group) {
        Ranks positions = gatheredPositions(*split, group, rank);
        // Each rank of the group takes part once.
        ASSERT_EQ(std::set(positions.begin(), positions.end()).size(), size);
        for (uint32_t i = 0; i != size; ++i) {
          uint32_t place = i / split->nodes, node = i % split->nodes;
          if (split->order == Order::ByPlace)
            ASSERT_EQ(positions[i], i);
          if (split->order == Order::ByNode)
            ASSERT_EQ(positions[i], node * split->ranksOnNode + place);
        }
      }
    }
    for (size_t first = 0; first < split->within.size(); first += split->ranksOnNode)
      for (uint32_t i = 0; i != split->ranksOnNode; ++i)
        ASSERT_EQ(split->within[first + i] / ranksPerNode, split->within[first] / ranksPerNode);
  }
  EXPECT_GT(byNode, 300u);
  EXPECT_GT(byPlace, 100u);
}

TEST(NodeGroups, WhatMayBeRoundedInBetween) {
  for (NumberClass numbers : {NumberClass::Wide, NumberClass::Narrow, NumberClass::Integer}) {
    EXPECT_TRUE(mayReduceTwice(Reduction::Min, numbers));
    EXPECT_TRUE(mayReduceTwice(Reduction::Max, numbers));
    EXPECT_EQ(mayReduceTwice(Reduction::Sum, numbers), numbers != NumberClass::Narrow);
    EXPECT_EQ(mayReduceTwice(Reduction::Prod, numbers), numbers != NumberClass::Narrow);
    EXPECT_EQ(mayReduceTwice(Reduction::Avg, numbers), numbers != NumberClass::Integer);
  }
}

/// Nodes of two ranks: by hand, a group within one has 200 GB/s after 2 us, and two nodes of one
/// rank each have 10 after 10 us (all-reduce: half of either).
std::unique_ptr<cost::CostModel> pairs() {
  std::string errors;
  auto target = cost::parseTargetDescription("name = pairs\nranks_per_node = 2\n"
                                             "memory_gb_per_s = 2000\nlaunch_us = 1\n"
                                             "[all_gather intra busbw]\n2 2 100\n"
                                             "[all_gather inter busbw]\n2 10 10\n",
                                             "pairs", errors);
  EXPECT_EQ(errors, "");
  return std::make_unique<cost::TargetModel>(*target);
}

SplitFacts factsOf(const Graph &graph, uint32_t elementBytes = 4, bool copies = false) {
  return {std::vector<CollectiveFacts>(graph.numNodes(), {WhyFlat::Splits, elementBytes}), copies};
}

constexpr uint64_t MB = 1'000'000;

/// One collective of 8 MB of operands over ranks 0 to 3, and a kernel that reads the result.
Graph one(CollectiveKind kind, const Ranks &ranks = {0, 1, 2, 3}, uint64_t bytes = 8 * MB,
          uint64_t resultBytes = 8 * MB) {
  Builder b;
  GroupId dp = b.group("dp", ranks);
  ValueId x = b.input(bytes);
  ValueId y = b.run("c", kind, dp, x, resultBytes, kind == CollectiveKind::AllGather ? "" : "sum");
  b.output(b.kernel("k", {y}, 5, 8));
  return b.finish();
}

std::string describe(const Graph &graph) {
  std::string text;
  for (NodeId node = 0; node != graph.numNodes(); ++node) {
    text += graph.nameOf(node);
    if (graph.isCollective(node)) {
      text += " " + std::string(shortNameOf(graph.kindOf(node)));
      for (int64_t rank : graph.group(graph.groupOf(node)).shape().ranks)
        text += "," + std::to_string(rank);
      text += " " + std::to_string(graph.operandBytes(node)) + ">" +
              std::to_string(graph.resultBytes(node));
    }
    text += "\n";
  }
  return text;
}

TEST(SplitGraph, AllReduce) {
  Graph graph = one(CollectiveKind::AllReduce);
  auto model = pairs();
  NodeSplits splits(graph, *model, factsOf(graph));
  NodeId c = nodeNamed(graph, "c");
  ASSERT_EQ(splits.whyFlat(c), WhyFlat::Splits);
  EXPECT_EQ(splits.whyFlat(nodeNamed(graph, "k")), WhyFlat::OtherKind);
  SplitCost cost = splits.costOf(c);
  EXPECT_NEAR(cost.flatUs, 10 + 1.5 * 8000 / 10, 1e-6);
  EXPECT_NEAR(cost.withinUs, 2 * (2 + 8000 / 200.0), 1e-6);
  EXPECT_NEAR(cost.betweenUs, 10 + 4000 / 5.0, 1e-6);
  EXPECT_EQ(cost.copyUs, 0);
  EXPECT_EQ(cost.launches, 2u);
  SplitGraph split = splitGraph(splits, std::vector{c});
  EXPECT_EQ(describe(split.graph), "c.first RS,0,1 8000000>4000000\nc.first.wait\n"
                                   "c.between AR,0,2 4000000>4000000\nc.between.wait\n"
                                   "c AG,0,1 4000000>8000000\nc.wait\nk\n");
  EXPECT_EQ(split.originOf, (std::vector<NodeId>{0, 0, 0, 0, 0, 1, 2}));
  EXPECT_EQ(split.graph.reductionOf(0), "sum");
  EXPECT_EQ(split.graph.reductionOf(4), "");
  // The two parts within nodes share a communicator.
  EXPECT_EQ(split.graph.groupOf(0), split.graph.groupOf(4));
  EXPECT_NEAR(simulate(split.graph, *model).stepUs, 3 + 84 + 810 + 6, 1e-6);
}

TEST(SplitGraph, GathersAndScatters) {
  auto model = pairs();
  for (bool byNode : {true, false}) {
    Ranks ranks = byNode ? Ranks{0, 1, 2, 3} : Ranks{0, 2, 1, 3};
    for (bool copies : {true, false}) {
      // Blocks come in the order of places; where collectives only know the outermost dim, a copy
      // of 2 x 8 MB at 2 TB/s turns it.
      std::string order = byNode && copies ? ".order\n" : "";
      Graph graph = one(CollectiveKind::AllGather, ranks, 2 * MB, 8 * MB);
      NodeSplits gathers(graph, *model, factsOf(graph, 4, copies));
      EXPECT_NEAR(gathers.costOf(0).copyUs, order.empty() ? 0 : 8, 1e-6);
      EXPECT_EQ(gathers.costOf(0).launches, order.empty() ? 1u : 2u);
      EXPECT_EQ(describe(splitGraph(gathers, std::vector<NodeId>{0}).graph),
                "c.first AG,0,2 2000000>4000000\nc.first.wait\nc AG,0,1 4000000>8000000\nc.wait\n" +
                    (order.empty() ? "" : "c.wait" + order) + "k\n");
      graph = one(CollectiveKind::ReduceScatter, ranks, 8 * MB, 2 * MB);
      NodeSplits scatters(graph, *model, factsOf(graph, 4, copies));
      EXPECT_EQ(describe(splitGraph(scatters, std::vector<NodeId>{0}).graph),
                (order.empty() ? "" : "c" + order) +
                    "c.first RS,0,1 8000000>4000000\nc.first.wait\nc RS,0,2 4000000>2000000\n"
                    "c.wait\nk\n");
    }
  }
}

TEST(SplitGraph, BuffersScalarsAndGroupsStay) {
  Builder b;
  GroupId dp = b.group("dp", {0, 1, 2, 3}), tp = b.group("tp", {0, 1});
  ValueId x = b.input(2 * MB), buffer = b.input(8 * MB), size = b.graph.addScalar();
  b.graph.addInput(size);
  ValueId future = b.graph.addTensor(8 * MB);
  b.graph.addCollective({CollectiveKind::AllGather, dp, "", 1}, "c", std::vector{x, buffer, size},
                        std::vector{future});
  ValueId y = b.wait("c.wait", future);
  b.output(b.run("t", CollectiveKind::AllReduce, tp, y, 8 * MB, "sum"));
  b.output(y);
  Graph graph = b.finish();
  auto model = pairs();
  NodeSplits splits(graph, *model, factsOf(graph));
  EXPECT_EQ(splits.whyFlat(nodeNamed(graph, "t")), WhyFlat::OneNode);
  SplitGraph split = splitGraph(splits, std::vector<NodeId>{0});
  NodeId last = nodeNamed(split.graph, "c"), first = nodeNamed(split.graph, "c.first");
  EXPECT_EQ(split.graph.outBuffers(last), 1u);
  EXPECT_EQ(split.graph.operands(last).size(), 2u);
  EXPECT_EQ(split.graph.outBuffers(first), 0u);
  EXPECT_EQ(split.graph.operands(first).size(), 1u);
  EXPECT_EQ(split.graph.scalarOperands(first).size(), 1u);
  // The result still lives in the buffer, and what runs within the node has the stream of "tp",
  // of which only this rank's group is known.
  EXPECT_EQ(split.graph.rootOf(split.graph.results(last)[0]),
            split.graph.rootOf(split.graph.operands(last)[1]));
  EXPECT_EQ(split.graph.groupOf(last), tp);
  EXPECT_EQ(split.graph.graphOutputs().size(), 2u);
}

TEST(SplitGraph, WhatStaysWhole) {
  auto model = pairs();
  Graph graph = one(CollectiveKind::AllReduce, {0, 1, 2, 3}, 12, 12);
  EXPECT_EQ(NodeSplits(graph, *model, factsOf(graph, 4)).whyFlat(0), WhyFlat::Indivisible);
  EXPECT_EQ(NodeSplits(graph, *model, factsOf(graph, 2)).whyFlat(0), WhyFlat::Splits);
  SplitFacts facts = factsOf(graph, 2);
  facts.of[0].why = WhyFlat::Inexact;
  EXPECT_EQ(NodeSplits(graph, *model, facts).whyFlat(0), WhyFlat::Inexact);
  graph = one(CollectiveKind::AllReduce, {0, 2, 3, 1});
  EXPECT_EQ(NodeSplits(graph, *model, factsOf(graph)).whyFlat(0), WhyFlat::Splits);
  graph = one(CollectiveKind::ReduceScatter, {0, 2, 3, 1}, 8 * MB, 2 * MB);
  EXPECT_EQ(NodeSplits(graph, *model, factsOf(graph)).whyFlat(0), WhyFlat::Unequal);
  graph = one(CollectiveKind::AllToAll);
  EXPECT_EQ(NodeSplits(graph, *model, factsOf(graph)).whyFlat(0), WhyFlat::OtherKind);
}

TEST(ChooseSplits, Modes) {
  std::string error;
  EXPECT_EQ(parseSplitMode("off", error), SplitMode::Off);
  EXPECT_EQ(parseSplitMode("auto", error), SplitMode::Auto);
  EXPECT_EQ(parseSplitMode("all", error), SplitMode::All);
  EXPECT_EQ(error, "");
  EXPECT_FALSE(parseSplitMode("2", error));
  EXPECT_EQ(error, "'2' is neither off, auto nor all");
  EXPECT_EQ(describeMissingNodes(*pairs()), "");
  EXPECT_NE(describeMissingNodes(cost::SimV1()), "");
}

TEST(ChooseSplits, WhatPays) {
  auto model = pairs();
  auto decide = [&](const Graph &graph, SplitMode mode, std::optional<uint64_t> limit = 1000 * MB) {
    SplitOptions options;
    options.mode = mode;
    options.optimize.memoryLimit = limit;
    return chooseSplits(NodeSplits(graph, *model, factsOf(graph)), options);
  };
  Graph large = one(CollectiveKind::AllReduce),
        small = one(CollectiveKind::AllReduce, {0, 1, 2, 3}, 8000, 8000);
  SplitDecision decision = decide(large, SplitMode::Auto);
  EXPECT_EQ(decision.choices.size(), 1u);
  EXPECT_NEAR(decision.stepBeforeUs, 1 + 1210 + 6, 1e-6);
  EXPECT_NEAR(decision.stepAfterUs, 3 + 84 + 810 + 6, 1e-6);
  EXPECT_EQ(decision.count(WhyFlat::Splits), 1u);
  EXPECT_TRUE(decide(small, SplitMode::Auto).choices.empty());
  EXPECT_EQ(decide(small, SplitMode::All).choices.size(), 1u);
  EXPECT_TRUE(decide(large, SplitMode::Off).choices.empty());
  // The parts hold 4 MB more than the whole.
  EXPECT_TRUE(decide(large, SplitMode::Auto, 17 * MB).choices.empty());
}

TEST(ChooseSplits, SlowNodesAreTooCostly) {
  std::string errors;
  auto target = cost::parseTargetDescription("name = slow\nranks_per_node = 2\n"
                                             "memory_gb_per_s = 2000\nlaunch_us = 1\n"
                                             "[all_gather intra busbw]\n2 2 5\n"
                                             "[all_gather inter busbw]\n2 10 10\n",
                                             "slow", errors);
  ASSERT_EQ(errors, "");
  cost::TargetModel model(*target);
  Graph graph = one(CollectiveKind::AllReduce);
  SplitDecision decision = chooseSplits(NodeSplits(graph, model, factsOf(graph)), {});
  EXPECT_EQ(decision.tooCostly, 1u);
  EXPECT_EQ(decision.candidates, 0u);
}

/// Parts of one collective beside parts of another: eight in a row take less than eight times the
/// parts of one.
TEST(ChooseSplits, PartsOverlap) {
  auto model = pairs();
  Builder b;
  GroupId dp = b.group("dp", {0, 1, 2, 3});
  std::vector<ValueId> futures;
  for (int i = 0; i != 8; ++i)
    futures.push_back(b.start("c" + std::to_string(i), CollectiveKind::AllReduce, dp,
                              b.input(8 * MB), 8 * MB, "sum"));
  for (int i = 0; i != 8; ++i)
    b.output(b.wait("w" + std::to_string(i), futures[i]));
  Graph graph = b.finish();
  SplitOptions options;
  options.optimize.memoryLimit = 1000 * MB;
  options.optimize.bucket = false;
  SplitDecision decision = chooseSplits(NodeSplits(graph, *model, factsOf(graph)), options);
  EXPECT_EQ(decision.choices.size(), 8u);
  EXPECT_NEAR(decision.stepBeforeUs, 8 * 1210, 8 * 2);
  // The stream between nodes is busy but for the first scatter and the last gather.
  EXPECT_NEAR(decision.stepAfterUs, 8 * 810 + 84, 100);
}

} // namespace
