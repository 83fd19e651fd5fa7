// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/collectives/chunk/core/ChooseChunks.h"
#include "test/unit/passes/collectives/ChunkProgram.h"

using namespace shardc;
using namespace shardc::collectives;
using namespace shardc::collectives::test;

TEST(ChunkRegions, GoFromGatherToScatter) {
  Program p;
  ValueId x = p.input({512, 16}), up = p.input({16, 8}), down = p.input({8, 16});
  ValueId g = p.collective("gather", CollectiveKind::AllGather, x, 0);
  ValueId a = p.product("up", g, up, 10);
  ValueId y = p.product("down", p.pointwise("act", {a}, 1), down, 10);
  ValueId r = p.collective("scatter", CollectiveKind::ReduceScatter, y, 0);
  ValueId z = p.pointwise("add", {r, x}, 1);
  p.b.output(z);
  p.finish();
  std::vector<ChunkRegion> regions = p.regions();
  ASSERT_EQ(regions.size(), 1u);
  const ChunkRegion &region = regions[0];
  EXPECT_EQ(p.names(region.nodes), (Names{"gather", "gather.wait", "up", "act", "down", "scatter",
                                          "scatter.wait", "add"}));
  EXPECT_EQ(region.extent, 512u);
  EXPECT_EQ(region.collectives, 2u);
  EXPECT_EQ(region.products, 2u);
  EXPECT_EQ(region.made.at(a), (RowBlocks{0, 4, 1}));
  EXPECT_EQ(region.made.at(r), (RowBlocks{0, 1, 1}));
  ASSERT_EQ(region.cuts.size(), 1u);
  EXPECT_TRUE(region.cuts.at(x).contiguous);
  EXPECT_EQ(region.joins, (std::vector{z}));
  // A dim that only the weights have cannot be taken apart.
  EXPECT_TRUE(p.regions(ChunkDim::Other).empty());
}

TEST(ChunkRegions, CutBlocksForScatter) {
  Program p;
  ValueId x = p.input({512, 16}), w = p.input({16, 8});
  ValueId r = p.collective("scatter", CollectiveKind::ReduceScatter, p.product("mm", x, w, 9), 0);
  p.b.output(r);
  p.finish();
  std::vector<ChunkRegion> regions = p.regions();
  ASSERT_EQ(regions.size(), 1u);
  EXPECT_EQ(regions[0].extent, 128u);
  EXPECT_EQ(regions[0].cuts.at(x).rows, (RowBlocks{0, 4, 1}));
  EXPECT_FALSE(regions[0].cuts.at(x).contiguous);
  EXPECT_EQ(regions[0].made.at(r), (RowBlocks{0, 1, 1}));
  EXPECT_TRUE(p.regions(ChunkDim::Other).empty());
}

TEST(ChunkRegions, TakeNoRowsOfWeights) {
  Program p;
  ValueId x = p.input({64, 16}), w = p.input({16, 8});
  ValueId g = p.collective("gather", CollectiveKind::AllGather, w, 1);
  p.b.output(p.product("mm", x, g, 9));
  p.finish();
  EXPECT_TRUE(p.regions().empty());
  EXPECT_TRUE(p.regions(ChunkDim::Other).empty());
}

TEST(ChunkRegions, LeaveWhatIsOverwritten) {
  Program p;
  ValueId x = p.input({64, 16}), w = p.input({16, 8});
  ValueId g = p.collective("gather", CollectiveKind::AllGather, x, 0);
  ValueId y = p.product("mm", g, w, 9);
  p.b.output(p.b.inPlace("add_", {y}, 1));
  p.finish();
  EXPECT_TRUE(p.regions().empty());
}

TEST(ChunkRegions, ReturnWhatAWaitDelivers) {
  Program p;
  ValueId x = p.input({64, 16}), w = p.input({16, 8});
  ValueId y = p.product("mm", x, w, 9);
  ValueId future = p.b.start("scatter", CollectiveKind::ReduceScatter, p.tp, y, 16 * 8 * 4, "sum");
  ValueId r = p.b.wait("scatter.wait", future);
  p.shapes[future] = p.shapes[r] = {16, 8};
  p.dims["scatter"] = 0;
  p.b.output(future);
  p.finish();
  std::vector<ChunkRegion> regions = p.regions();
  ASSERT_EQ(regions.size(), 1u);
  EXPECT_EQ(regions[0].joins, (std::vector{r}));
  EXPECT_EQ(regions[0].delivered, (std::map<ValueId, ValueId>{{future, r}}));
  std::vector<ChunkChoice> choices = {{&regions[0], 2}};
  ChunkedGraph chunked = chunkGraph(p.graph, cost::SimV1(), choices);
  ASSERT_EQ(chunked.graph.graphOutputs().size(), 1u);
  NodeId join = chunked.graph.producerOf(chunked.graph.graphOutputs()[0]);
  EXPECT_TRUE(chunked.graph.nameOf(join).starts_with("join."));
}

TEST(ChunkRegions, GiveUpAProductThatIsDearToPutTogether) {
  // The copy of 64 MiB takes longer than the gather of 1 MiB.
  Program p;
  ValueId x = p.input({1024, 64}), w = p.input({64, 4096});
  ValueId g = p.collective("gather", CollectiveKind::AllGather, x, 0);
  p.b.output(p.product("mm", g, w, 500));
  p.finish();
  EXPECT_TRUE(p.regions().empty());
}

TEST(ChunkOrder, RunsPieceByPiece) {
  Program p;
  ValueId x = p.input({64, 16}), w = p.input({16, 8}), v = p.input({8, 16});
  ValueId g = p.collective("gather", CollectiveKind::AllGather, x, 0);
  ValueId a = p.product("up", g, w, 9);
  // Not of the region: it comes in front of the first piece that needs it.
  ValueId late = p.mixing("late", v, 1);
  ValueId y = p.product("down", a, late, 9);
  ValueId other = p.mixing("other", v, 1);
  p.b.output(y);
  p.b.output(other);
  p.finish();
  std::vector<ChunkRegion> regions = p.regions();
  ASSERT_EQ(regions.size(), 1u);
  std::vector<ChunkChoice> choices = {{&regions[0], 2}};
  EXPECT_EQ(describe(p.graph, orderChunks(p.graph, choices)),
            (Names{"cut.0", "gather.0", "gather.wait.0", "up.0", "late", "down.0", "cut.1",
                   "gather.1", "gather.wait.1", "up.1", "down.1", "join", "other"}));
}

TEST(ChunkOrder, WaitsForWhatIsPutTogether) {
  // What leaves the region comes back: the pieces of `add` need all of `up`.
  Program p;
  ValueId x = p.input({64, 16}), w = p.input({16, 16});
  ValueId g = p.collective("gather", CollectiveKind::AllGather, x, 0);
  ValueId a = p.product("up", g, w, 9);
  ValueId m = p.mixing("mixing", a, 1);
  ValueId sum = p.pointwise("add", {a, m}, 1);
  p.b.output(p.collective("scatter", CollectiveKind::ReduceScatter, sum, 0));
  p.finish();
  std::vector<ChunkRegion> regions = p.regions();
  ASSERT_EQ(regions.size(), 1u);
  std::vector<ChunkChoice> choices = {{&regions[0], 2}};
  EXPECT_EQ(describe(p.graph, orderChunks(p.graph, choices)),
            (Names{"cut.0", "gather.0", "gather.wait.0", "up.0", "cut.1", "gather.1",
                   "gather.wait.1", "up.1", "join", "mixing", "cut.0", "add.0", "scatter.0",
                   "scatter.wait.0", "cut.1", "add.1", "scatter.1", "scatter.wait.1", "join"}));
}

TEST(ChunkGraph, PiecesShareWorkAndReadWeightsAgain) {
  Program p;
  ValueId x = p.input({64, 1024}), w = p.input({1024, 1024});
  ValueId g = p.collective("gather", CollectiveKind::AllGather, x, 0);
  // 4 MiB of weights and 2 MiB of rows: bound by memory, 1.88 us at 3350 GB/s.
  cost::SimV1 model;
  double us = model.memoryUs(6 * 1048576.0);
  ValueId y = p.product("mm", g, w, us);
  p.b.output(y);
  p.finish();
  std::vector<ChunkRegion> regions = p.regions();
  ASSERT_EQ(regions.size(), 1u);
  EXPECT_DOUBLE_EQ(pieceUs(p.graph, model, regions[0], nodeNamed(p.graph, "mm"), 4),
                   model.memoryUs((4 + 0.5) * 1048576));
  std::vector<ChunkChoice> choices = {{&regions[0], 4}};
  ChunkedGraph chunked = chunkGraph(p.graph, model, choices);
  const Graph &graph = chunked.graph;
  EXPECT_EQ(graph.fullBytes(nodeNamed(graph, "gather.3")), 262144u);
  EXPECT_EQ(graph.resultBytes(nodeNamed(graph, "mm.0")), 262144u);
  // Arithmetic is shared: a kernel bound by it takes a quarter.
  p.graph.setDurationUs(nodeNamed(p.graph, "mm"), 1000);
  EXPECT_DOUBLE_EQ(pieceUs(p.graph, model, regions[0], nodeNamed(p.graph, "mm"), 4), 250);
  // A duration that is below what its bytes take stays below it.
  p.graph.setDurationUs(nodeNamed(p.graph, "mm"), 1);
  EXPECT_DOUBLE_EQ(pieceUs(p.graph, model, regions[0], nodeNamed(p.graph, "mm"), 4), 1);
}

namespace {

/// A gather of 64 MiB (133 us) before 400 us of products whose result is small.
struct Exposed : Program {
  explicit Exposed(bool hide) {
    ValueId x = input({4096, 1024}), w = input({1024, 1024}), v = input({1024, 16});
    ValueId g = collective("gather", CollectiveKind::AllGather, x, 0);
    if (hide)
      b.output(mixing("other", w, 500));
    b.output(product("down", product("up", g, w, 390), v, 10));
    finish();
  }
};

} // namespace

TEST(ChooseChunks, TakesWhatShortensTheSchedule) {
  Exposed p(false);
  cost::SimV1 model;
  std::vector<std::vector<ChunkRegion>> regions = findChunkRegions(p.graph, p, model);
  ChunkOptions options;
  options.optimize.memoryLimit = 1 << 30;
  ChunkDecision decision = chooseChunks(p.graph, model, regions, options);
  ASSERT_EQ(decision.choices.size(), 1u);
  EXPECT_DOUBLE_EQ(decision.stepBeforeUs, optimize(p.graph, model, options.optimize).after.stepUs);
  // No other number of pieces is better.
  double best = decision.stepBeforeUs;
  for (uint32_t pieces : {2, 4, 8}) {
    std::vector<ChunkChoice> choices = {{&regions[0][0], pieces}};
    double step =
        optimize(chunkGraph(p.graph, model, choices).graph, model, options.optimize).after.stepUs;
    best = std::min(best, step);
    if (pieces == decision.choices[0].pieces)
      EXPECT_DOUBLE_EQ(step, decision.stepAfterUs);
  }
  EXPECT_DOUBLE_EQ(best, decision.stepAfterUs);
  EXPECT_LT(decision.stepAfterUs, decision.stepBeforeUs - 50);
  // A limit that even the program as it is does not meet is for the scheduler to report.
  options.optimize.memoryLimit = 1 << 20;
  EXPECT_TRUE(chooseChunks(p.graph, model, regions, options).choices.empty());
  // What is saved must be worth it.
  options.optimize.memoryLimit = 1 << 30;
  options.leastGain = 0.5;
  EXPECT_TRUE(chooseChunks(p.graph, model, regions, options).choices.empty());
}

TEST(ChooseChunks, LeavesWhatIsHidden) {
  Exposed p(true);
  cost::SimV1 model;
  std::vector<std::vector<ChunkRegion>> regions = findChunkRegions(p.graph, p, model);
  ASSERT_EQ(regions[0].size(), 1u);
  EXPECT_GT(mostSavedUs(p.graph, model, regions[0][0], 2), 0);
  ChunkOptions options;
  options.optimize.memoryLimit = 1 << 30;
  EXPECT_TRUE(chooseChunks(p.graph, model, regions, options).choices.empty());
  options.pieces = 2;
  EXPECT_EQ(chooseChunks(p.graph, model, regions, options).choices.size(), 1u);
  options.pieces = 3;
  ChunkDecision decision = chooseChunks(p.graph, model, regions, options);
  EXPECT_TRUE(decision.choices.empty());
  EXPECT_EQ(decision.indivisible, 1u);
}

TEST(ChooseChunks, ParsesModes) {
  std::string error;
  EXPECT_FALSE(ChunkMode::parse("off", error)->enabled);
  EXPECT_TRUE(ChunkMode::parse("auto", error)->enabled);
  EXPECT_FALSE(ChunkMode::parse("auto", error)->pieces);
  EXPECT_EQ(ChunkMode::parse("64", error)->pieces, 64u);
  EXPECT_FALSE(ChunkMode::parse("auto", error)->ring);
  EXPECT_TRUE(ChunkMode::parse("ring", error)->enabled);
  EXPECT_TRUE(ChunkMode::parse("ring", error)->ring);
  EXPECT_FALSE(ChunkMode::parse("ring", error)->pieces);
  for (const char *wrong : {"", "1", "65", "2x", "-2", "on", "rings"}) {
    error.clear();
    EXPECT_FALSE(ChunkMode::parse(wrong, error));
    EXPECT_EQ(error, "'" + std::string(wrong) +
                         "' is neither off, auto, ring nor a number of pieces from 2 to 64");
  }
}
