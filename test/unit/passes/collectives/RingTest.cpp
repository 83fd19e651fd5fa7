// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/collectives/chunk/core/ChooseChunks.h"
#include "passes/cost/core/TargetDescription.h"
#include "test/unit/passes/collectives/ChunkProgram.h"

using namespace shardc;
using namespace shardc::collectives;
using namespace shardc::collectives::test;

namespace {

/// Has a price for permutes.
std::unique_ptr<cost::CostModel> model() { return cost::makeBuiltinModel("h100-8"); }

std::vector<ChunkRegion> ringsOf(const Program &p) { return p.regions(ChunkDim::Ring); }

/// A gather, two products and a scatter, between ops on a rank's own rows.
struct Mlp : Program {
  ValueId x, own, g, a, y, r;
  explicit Mlp(int64_t rows = 512) {
    x = input({rows, 16});
    ValueId up = input({16, 8}), down = input({8, 16});
    own = pointwise("before", {x}, 1);
    g = collective("gather", CollectiveKind::AllGather, own, 0);
    a = product("up", g, up, 10);
    y = product("down", pointwise("act", {a}, 1), down, 10);
    r = collective("scatter", CollectiveKind::ReduceScatter, y, 0);
    b.output(pointwise("add", {r, x}, 1));
    finish();
  }
};

ChunkedGraph ring(const Program &p, const ChunkRegion &region) {
  std::vector<ChunkChoice> choices = {{&region, region.ring->size}};
  return chunkGraph(p.graph, *model(), choices);
}

/// The names of all nodes, without the numbers of what has no name of its own.
Names namesOf(const Graph &graph) {
  Names names;
  for (NodeId node = 0; node != graph.numNodes(); ++node) {
    std::string name = graph.nameOf(node);
    for (std::string made : {"cut.", "add.", "join.", "rotate."})
      if (name.starts_with(made))
        name = made.substr(0, made.size() - 1);
    names.push_back(name);
  }
  return names;
}

/// Which blocks of the group's data a value has seen, on each of the ranks: a piece of kernels is
/// about one block, of which it has one rank's part. Follows a chunked graph node by node.
struct Followed {
  uint32_t block;
  std::multiset<uint32_t> parts;
};

} // namespace

TEST(Rings, GoFromGatherToScatter) {
  Mlp p;
  std::vector<ChunkRegion> regions = ringsOf(p);
  ASSERT_EQ(regions.size(), 1u);
  const ChunkRegion &region = regions[0];
  // What follows on a rank's own rows is not part of it.
  EXPECT_EQ(p.names(region.nodes),
            (Names{"gather", "gather.wait", "up", "act", "down", "scatter", "scatter.wait"}));
  ASSERT_TRUE(region.ring);
  EXPECT_EQ(region.ring->group, p.tp);
  EXPECT_EQ(region.ring->size, 4u);
  EXPECT_TRUE(region.ring->sums.contains(p.r));
  EXPECT_EQ(region.extent, 2048u);
  EXPECT_EQ(region.made.at(p.a), (RowBlocks{0, 1, 1}));
  EXPECT_TRUE(region.cuts.empty());
  EXPECT_EQ(region.joins, (std::vector{p.r}));
}

TEST(Rings, SendEachBlockAroundOnce) {
  Mlp p;
  std::vector<ChunkRegion> regions = ringsOf(p);
  ChunkedGraph chunked = ring(p, regions[0]);
  const Graph &graph = chunked.graph;
  EXPECT_EQ(chunked.originOf.size(), graph.numNodes());
  uint64_t share = 512 * 16 * 4;
  size_t hops = 0;
  for (NodeId node = 0; node != graph.numNodes(); ++node)
    if (graph.isCollective(node)) {
      ++hops;
      EXPECT_EQ(graph.kindOf(node), CollectiveKind::Permute);
      EXPECT_EQ(graph.fullBytes(node), share);
    }
  EXPECT_EQ(hops, 6u);
  // Every rank runs this. Rank r's piece t must be block r - t, and the last sum its own block with
  // everyone's part once.
  constexpr uint32_t n = 4;
  std::vector<std::map<ValueId, Followed>> known(n);
  ValueId gathered = graph.operands(nodeNamed(graph, "gather.1"))[0];
  for (uint32_t rank = 0; rank != n; ++rank)
    known[rank][gathered] = {rank, {}};
  ValueId last = none;
  for (NodeId node = 0; node != graph.numNodes(); ++node) {
    std::string name = graph.nameOf(node);
    std::vector<std::map<ValueId, Followed>> before = known;
    for (uint32_t rank = 0; rank != n; ++rank) {
      if (graph.results(node).empty() || !before[rank].contains(graph.operands(node)[0]))
        continue;
      ValueId from = graph.operands(node)[0], to = graph.results(node)[0];
      Followed got = before[rank][from];
      if (graph.isCollective(node)) {
        got = before[(rank + n - 1) % n][from];
      } else if (name.starts_with("down.")) {
        got.parts = {rank};
      } else if (name.starts_with("add.")) {
        const Followed &own = before[rank].at(graph.operands(node)[1]);
        EXPECT_EQ(got.block, own.block) << name << " on rank " << rank;
        got.parts.insert(own.parts.begin(), own.parts.end());
        last = to;
      }
      known[rank][to] = got;
    }
  }
  ASSERT_NE(last, none);
  for (uint32_t rank = 0; rank != n; ++rank) {
    EXPECT_EQ(known[rank][last].block, rank);
    EXPECT_EQ(known[rank][last].parts, (std::multiset<uint32_t>{0, 1, 2, 3}));
  }
  EXPECT_EQ(graph.operands(nodeNamed(graph, "add"))[0], last);
}

TEST(Rings, ComputeTheirOwnBlockLastWhereNothingIsGathered) {
  Program p;
  ValueId x = p.input({512, 16}), w = p.input({16, 8});
  p.b.output(p.collective("scatter", CollectiveKind::ReduceScatter, p.product("mm", x, w, 9), 0));
  p.finish();
  std::vector<ChunkRegion> regions = ringsOf(p);
  ASSERT_EQ(regions.size(), 1u);
  EXPECT_EQ(regions[0].cuts.at(x).rows, (RowBlocks{0, 1, 1}));
  EXPECT_TRUE(regions[0].cuts.at(x).contiguous);
  EXPECT_EQ(namesOf(ring(p, regions[0]).graph),
            (Names{"cut", "mm.1", "scatter.1", "scatter.1.wait", "cut", "mm.2", "add", "scatter.2",
                   "scatter.2.wait", "cut", "mm.3", "add", "scatter.3", "scatter.3.wait", "cut",
                   "mm.0", "add"}));
}

TEST(Rings, PutWhatIsReadOutsideInOrder) {
  Program p;
  ValueId x = p.input({64, 1024}), w = p.input({1024, 16});
  ValueId y = p.product("mm", p.collective("gather", CollectiveKind::AllGather, x, 0), w, 90);
  p.b.output(y);
  p.finish();
  std::vector<ChunkRegion> regions = ringsOf(p);
  ASSERT_EQ(regions.size(), 1u);
  ChunkedGraph chunked = ring(p, regions[0]);
  EXPECT_EQ(namesOf(chunked.graph),
            (Names{"mm.0", "gather.1", "gather.1.wait", "mm.1", "gather.2", "gather.2.wait", "mm.2",
                   "gather.3", "gather.3.wait", "mm.3", "join", "rotate"}));
  // The first piece is what the rank has.
  EXPECT_EQ(chunked.graph.operands(nodeNamed(chunked.graph, "mm.0"))[0],
            chunked.graph.graphInputs()[0]);
  NodeId rotate = chunked.graph.producerOf(chunked.graph.graphOutputs()[0]);
  EXPECT_DOUBLE_EQ(chunked.graph.durationUs(rotate), copyUs(p.graph, *model(), y));
}

TEST(Rings, NeedOneGroupWithKnownRanksAndExactSums) {
  {
    Mlp p;
    p.rounded.insert("scatter");
    std::vector<ChunkRegion> regions = ringsOf(p);
    ASSERT_EQ(regions.size(), 1u); // the gather's ring alone
    EXPECT_TRUE(regions[0].ring->sums.empty());
    EXPECT_EQ(regions[0].joins, (std::vector{p.y}));
  }
  {
    Mlp p(6); // 24 rows: six for each of four ranks
    EXPECT_EQ(ringsOf(p).size(), 1u);
  }
  // Who is next to whom is not known.
  Program p;
  p.tp = p.b.group("named", 4);
  ValueId x = p.input({512, 16}), w = p.input({16, 8});
  ValueId y = p.product("mm", p.collective("gather", CollectiveKind::AllGather, x, 0), w, 9);
  p.b.output(p.collective("scatter", CollectiveKind::ReduceScatter, y, 0));
  p.finish();
  EXPECT_TRUE(ringsOf(p).empty());
}

TEST(Rings, StopAtOtherCollectives) {
  // Ranks that add at once would have different rows.
  Program p;
  ValueId x = p.input({512, 16}), w = p.input({16, 16});
  ValueId y = p.product("mm", p.collective("gather", CollectiveKind::AllGather, x, 0), w, 900);
  ValueId s = p.collective("reduce", CollectiveKind::AllReduce, y, 0);
  p.b.output(p.product("last", s, w, 900));
  p.finish();
  std::vector<ChunkRegion> regions = ringsOf(p);
  ASSERT_EQ(regions.size(), 1u);
  EXPECT_EQ(p.names(regions[0].nodes), (Names{"gather", "gather.wait", "mm"}));
}

namespace {

/// A gather of 64 MiB (172 us in one, 167 us of hops) before a product of so many columns: 64 KiB
/// of results for each.
struct Gathered : Program {
  explicit Gathered(double us, int64_t columns = 16) {
    ValueId x = input({4096, 1024}), w = input({1024, columns});
    b.output(product("mm", collective("gather", CollectiveKind::AllGather, x, 0), w, us));
    finish();
  }
};

double stepOf(const Graph &graph, const cost::CostModel &model, OptimizeOptions options) {
  options.robust = 0;
  return optimize(graph, model, options).after.stepUs;
}

} // namespace

TEST(ChooseRings, WhereTheStepIsShortest) {
  ChunkOptions options;
  options.optimize.memoryLimit = 1 << 30;
  // What a ring puts together is copied once more: 80 us for 2048 columns.
  for (auto [us, columns] : {std::pair(100, 16), {400, 16}, {1600, 2048}}) {
    Gathered p(us, columns);
    std::vector<std::vector<ChunkRegion>> alternatives = findChunkRegions(p.graph, p, *model());
    ASSERT_EQ(alternatives.size(), 3u);
    ASSERT_EQ(alternatives[2].size(), 1u);
    double whole = stepOf(p.graph, *model(), options.optimize);
    std::vector<ChunkChoice> asRing = {{&alternatives[2][0], 4}};
    double best = whole,
           byRing = stepOf(chunkGraph(p.graph, *model(), asRing).graph, *model(), options.optimize);
    EXPECT_GE(mostSavedByRingUs(p.graph, *model(), alternatives[2][0]) + 1e-6, whole - byRing);
    for (uint32_t pieces : {2, 4, 8}) {
      std::vector<ChunkChoice> split = {{&alternatives[0][0], pieces}};
      best = std::min(
          best, stepOf(chunkGraph(p.graph, *model(), split).graph, *model(), options.optimize));
    }
    ChunkDecision decision = chooseChunks(p.graph, *model(), alternatives, options);
    ASSERT_EQ(decision.choices.size(), 1u);
    EXPECT_EQ(decision.choices[0].region->ring.has_value(), byRing < best);
    EXPECT_EQ(byRing < best, columns == 16);
    EXPECT_DOUBLE_EQ(decision.stepAfterUs, std::min(byRing, best));
    EXPECT_DOUBLE_EQ(decision.stepBeforeUs, whole);
  }
}

TEST(ChooseRings, OnlyWithAPriceOrWhenAsked) {
  Gathered p(400);
  EXPECT_EQ(findChunkRegions(p.graph, p, cost::SimV1()).size(), 2u);
  EXPECT_NE(describeNoRings(cost::SimV1()).find("cost model 'sim-v1'"), std::string::npos);
  std::vector<std::vector<ChunkRegion>> alternatives = findChunkRegions(p.graph, p, *model());
  ChunkOptions options;
  options.ring = true;
  ChunkDecision decision = chooseChunks(p.graph, *model(), alternatives, options);
  ASSERT_EQ(decision.choices.size(), 1u);
  EXPECT_TRUE(decision.choices[0].region->ring);
  EXPECT_EQ(decision.choices[0].pieces, 4u);
  options.ring = false;
  options.pieces = 2;
  decision = chooseChunks(p.graph, *model(), alternatives, options);
  ASSERT_EQ(decision.choices.size(), 1u);
  EXPECT_FALSE(decision.choices[0].region->ring);
}
