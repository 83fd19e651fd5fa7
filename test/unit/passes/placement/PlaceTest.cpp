// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is communicated after placement, by hand from how Megatron, FSDP and sequence parallelism
// work.
#include "passes/placement/core/Place.h"

#include "passes/redistribute/core/Planner.h"
#include "test/unit/passes/placement/Models.h"

#include <gtest/gtest.h>

using namespace shardc;
using namespace shardc::test;

namespace {
struct Placed {
  explicit Placed(const Model &model) : model(model), placed(placeGraph(model.graph)) {
    for (const Refusal &error : placed.errors)
      ADD_FAILURE() << error.text;
    if (placed.errors.empty())
      check();
  }
  std::string layout(TensorId t) const { return placed.tensorLayout(t).str(); }
  std::string layout(const std::string &name) const { return layout(model.names.at(name)); }

  /// How many steps of each kind all redistributions take, e.g. "all_gather 1, all_reduce 2"; local
  /// steps are left out.
  std::string collectives() const {
    std::map<std::string, int> counts;
    for (const Redistribution &r : placed.redistributions) {
      RedistributePlan plan = planGreedily(placed.tensorLayout(r.tensor), placed.layouts[r.to],
                                           model.graph.shape(r.tensor));
      EXPECT_TRUE(plan.errors.empty());
      for (const RedistributeStep &step : plan.steps)
        if (collectiveOf(step.kind))
          ++counts[std::string(stepKindName(step.kind))];
    }
    std::string text;
    for (auto &[kind, count] : counts)
      text += (text.empty() ? "" : ", ") + kind + " " + std::to_string(count);
    return text;
  }

  /// What holds for every placed program: layouts are valid, and annotations are kept.
  void check() const {
    const PropagationGraph &g = model.graph;
    for (TensorId t = 0; t < g.tensors.size(); ++t)
      for (const std::string &error : placed.tensorLayout(t).validate(g.shape(t)))
        ADD_FAILURE() << error;
    for (OpId op = 0; op < g.ops.size(); ++op)
      for (unsigned i = 0; i < g.ops[op].numOperands; ++i)
        for (const std::string &error :
             placed.operandLayout(g, op, i).validate(g.shape(g.operands(op)[i])))
          ADD_FAILURE() << error;
    for (const Annotation &a : g.annotations)
      for (unsigned axis = 0; axis < g.numAxes(); ++axis) {
        const Placement &asked = a.layout.placements[axis];
        const Placement &kept = placed.tensorLayout(a.tensor).placements[axis];
        bool same = asked.isShard() ? kept.isShard(asked.dim) : asked.isOpen() || asked == kept;
        EXPECT_TRUE(same) << a.layout.str() << " became " << placed.tensorLayout(a.tensor).str();
      }
  }

  const Model &model;
  PlacedGraph placed;
};
} // namespace

static const Mesh kTp({{"tp", 4}});

static void megatron(Model &m, const std::string &prefix, Strength strength = Strength::Normal) {
  for (const char *name : {"q", "k", "v", "up", "qkv"})
    if (m.names.count(prefix + name))
      m.annotate(prefix + name, "[S(0)]", {strength});
  for (const char *name : {"o", "down"})
    if (m.names.count(prefix + name))
      m.annotate(prefix + name, "[S(1)]", {strength});
}

TEST(Place, MegatronTakesOneAllReducePerBlock) {
  Model m(kTp);
  TensorId x = m.input("x", {2, 5, 384});
  x = m.selfAttention(x, "0.", 6);
  x = m.mlp(x, "0.", 1000);
  x = m.fusedAttention(x, "1.", 6);
  x = m.mlp(x, "1.", 1000);
  TensorId out = m.constrain(x, "[R]");
  for (const char *name : {"0.q", "0.k", "0.v", "0.up", "1.qkv", "1.up"})
    m.annotate(name, "[S(0)]");
  Placed p(m);
  EXPECT_EQ(p.collectives(), "all_reduce 4");
  EXPECT_EQ(p.layout("0.out"), "[P(sum)]");
  EXPECT_EQ(p.layout(x), "[R]");
  EXPECT_EQ(p.layout(out), "[R]");
  // The bias of the row-parallel layer counts once. (G1)
  OpId down = m.graph.tensors[m.names["0.out"]].producer;
  EXPECT_EQ(p.placed.operandLayout(m.graph, down, 2).str(), "[P(sum)]");
  EXPECT_EQ(p.layout("0.down.bias"), "[R]");
}

TEST(Place, SequenceParallelTakesOneGatherAndOneScatterPerBlock) {
  for (bool fused : {false, true}) {
    Model m(kTp);
    TensorId x = m.constrain(m.input("x", {3, 13, 384}), "[S(1)]");
    TensorId y = fused ? m.fusedAttention(x, "", 6) : m.selfAttention(x, "", 6);
    TensorId z = m.constrain(m.mlp(y, "", 1000), "[?]");
    megatron(m, "", Strength::Pinned);
    Placed p(m);
    EXPECT_EQ(p.collectives(), "all_gather 2, reduce_scatter 2");
    EXPECT_EQ(p.layout(y), "[S(1)]");
    EXPECT_EQ(p.layout(z), "[S(1)]");
  }
}

TEST(Place, ParallelBlocksAreReducedTogether) {
  Model m(kTp);
  TensorId x = m.input("x", {2, 5, 64});
  // x + attention(x) + mlp(x), the sums in either order: one all-reduce.
  TensorId a = m.linear(m.gelu(m.linear(x, "up", 256)), "down", 64);
  TensorId b = m.linear(m.gelu(m.linear(x, "up2", 256)), "down2", 64);
  m.gelu(m.add(m.add(x, a), b));
  m.annotate("up", "[S(0)]");
  m.annotate("up2", "[S(0)]");
  EXPECT_EQ(Placed(m).collectives(), "all_reduce 1");
}

TEST(Place, PartialValuesAreReducedWhereTheyAreSmall) {
  Model m(kTp);
  TensorId x = m.input("x", {2, 8, 64});
  TensorId y = m.linear(m.gelu(m.linear(x, "up", 256)), "down", 64);
  std::vector<TensorId> halves = m.split(y, 1, 2);
  TensorId last = m.gelu(halves[1]);
  m.annotate("up", "[S(0)]");
  Placed p(m);
  EXPECT_EQ(p.layout(y), "[P(sum)]");
  EXPECT_EQ(p.layout(halves[1]), "[P(sum)]");
  EXPECT_EQ(p.layout(last), "[R]");
  ASSERT_EQ(p.placed.redistributions.size(), 2u); // the other: bias R -> P
}

TEST(Place, VocabularyShardedEmbeddingAndHead) {
  Model m(kTp);
  TensorId ids = m.input("ids", {2, 6});
  TensorId x = m.embedding(ids, "table", 1003, 32);
  TensorId y = m.mlp(x, "", 64);
  TensorId logits = m.linear(m.norm(y, "last"), "head", 1003, false);
  TensorId out = m.constrain(logits, "[R]");
  m.annotate("table", "[S(0)]", {Strength::Pinned});
  m.annotate("head", "[S(0)]");
  megatron(m, "");
  Placed p(m);
  EXPECT_EQ(p.layout(x), "[P(sum)]");
  EXPECT_EQ(p.layout(logits), "[S(2)]");
  EXPECT_EQ(p.layout(out), "[R]");
  EXPECT_EQ(p.collectives(), "all_gather 1, all_reduce 2");
}

TEST(Place, FullyShardedParametersAreGathered) {
  Model m(Mesh({{"dp", 4}}));
  TensorId x = m.input("x", {8, 5, 64});
  TensorId y = m.mlp(x, "", 100);
  m.annotate("x", "[S(0)]");
  for (const char *name : {"norm", "up", "up.bias", "down", "down.bias"})
    m.annotate(name, "[S(0)]", {Strength::Weak});
  Placed p(m);
  EXPECT_EQ(p.layout(y), "[S(0)]");
  EXPECT_EQ(p.collectives(), "all_gather 5");
  EXPECT_TRUE(p.placed.remarks.empty());
}

TEST(Place, FullyShardedUnderTensorParallel) {
  Model m(Mesh({{"dp", 2}, {"tp", 2}}));
  TensorId x = m.input("x", {8, 5, 64});
  TensorId y = m.constrain(m.fusedAttention(x, "", 4), "[?, ?]");
  m.annotate("x", "[S(0), ?]");
  m.annotate("qkv", "[S(0), S(0)]", {Strength::Weak, Strength::Pinned});
  m.annotate("o", "[S(0), S(1)]", {Strength::Weak, Strength::Pinned});
  Placed p(m);
  EXPECT_EQ(p.layout("qkv"), "[S(0), S(0, blocks = 3)], order = [1, 0]");
  EXPECT_EQ(p.layout(y), "[S(0), R]");
  EXPECT_EQ(p.collectives(), "all_gather 2, all_reduce 1");
}

TEST(Place, NormOverAShardedDimIsNotGathered) {
  Model m(kTp);
  TensorId x = m.input("x", {4, 64});
  TensorId y = m.norm(x, "w");
  m.annotate("x", "[S(1)]");
  Placed p(m);
  EXPECT_EQ(p.layout(y), "[S(1)]");
  EXPECT_EQ(p.layout("w"), "[S(0)]");
  EXPECT_EQ(p.collectives(), "");
}

TEST(Place, AGatherThatNoPlanAskedForIsSaid) {
  Model m(kTp);
  TensorId x = m.input("x", {6, 4});
  TensorId y = m.view(x, {4, 6}); // only the common factor 2 of the outer dims could be followed
  m.annotate("x", "[S(1)]");
  Placed p(m);
  EXPECT_EQ(p.layout(y), "[R]");
  ASSERT_EQ(p.placed.remarks.size(), 1u);
  EXPECT_EQ(p.placed.remarks[0].text,
            "operand 0 is sharded over tp on dim 1, which the op needs whole; it is gathered");
}

TEST(Place, AnAnnotationThatLosesIsKeptAndSaid) {
  Model m(kTp);
  TensorId x = m.input("x", {4096, 64});
  m.constrain(m.linear(x, "w", 4, false), "[?]");
  m.annotate("x", "[S(0)]");
  m.annotate("w", "[S(0)]");
  Placed p(m);
  EXPECT_EQ(p.layout("w"), "[S(0)]");
  EXPECT_EQ(p.collectives(), "all_gather 1");
  ASSERT_EQ(p.placed.remarks.size(), 1u);
  EXPECT_EQ(p.placed.remarks[0].tensor, m.names["w"]);
  EXPECT_EQ(
      p.placed.remarks[0].text,
      "operand 1 is sharded over tp on dim 0, but the op uses the axis otherwise, which moves "
      "fewer bytes; the operand is gathered");
}

/// y = linear(x, w), kept + y, whose value is that of `kept` in the next run.
struct Stateful : Model {
  explicit Stateful(const char *weight) : Model(kTp) {
    TensorId y = linear(input("x", {8, 400}), "w", 6, /*bias=*/false);
    input("kept", {8, 6});
    names["next"] = constrain(add(names["kept"], y), "[?]");
    graph.tie(names["next"], names["kept"]);
    annotate("w", weight);
  }
};

TEST(Place, ANewValueIsWhereTheOldOneWas) {
  Stateful columns("[S(0)]"), rows("[S(1)]"), whole("[S(0)]"), uneven("[S(0)]");
  Placed sharded(columns);
  EXPECT_EQ(sharded.layout("kept"), "[S(1)]");
  EXPECT_EQ(sharded.layout("next"), "[S(1)]");
  EXPECT_EQ(sharded.collectives(), "");

  Placed reduced(rows); // y is partial
  EXPECT_EQ(reduced.layout("kept"), "[R]");
  EXPECT_EQ(reduced.layout("next"), "[R]");
  EXPECT_EQ(reduced.collectives(), "all_reduce 1");

  whole.annotate("kept", "[R]");
  Placed gathered(whole);
  EXPECT_EQ(gathered.layout("next"), "[R]");
  EXPECT_EQ(gathered.collectives(), "all_gather 1");

  uneven.annotate("kept", "[S(1, sizes = [3, 0, 2, 1])]");
  Placed followed(uneven);
  EXPECT_EQ(followed.layout("next"), "[S(1, sizes = [3, 0, 2, 1])]");
}

TEST(Place, AShardReachesBuffersThroughBuffers) { // three runs later
  Model m(kTp);
  TensorId y = m.linear(m.input("x", {8, 4}), "w", 6, /*bias=*/false);
  TensorId kept[3];
  for (int i = 0; i < 3; ++i)
    kept[i] = m.input("kept" + std::to_string(i), {8, 6});
  for (int i = 0; i < 3; ++i)
    m.graph.tie(m.constrain(i ? m.gelu(kept[i - 1]) : y, "[?]"), kept[i]);
  m.annotate("w", "[S(0)]");
  Placed p(m);
  for (TensorId tensor : kept)
    EXPECT_EQ(p.layout(tensor), "[S(1)]");
  EXPECT_EQ(p.collectives(), "");
}

TEST(Place, OnlyInputsAndConstraintsOfOneShapeAreTied) {
  Stateful m("[S(0)]");
  m.graph.tie(m.names["kept"], m.names["x"]);
  EXPECT_EQ(placeGraph(m.graph).errors.size(), 1u);
}

TEST(Place, UnknownBatch) {
  Model m(Mesh({{"dp", 2}, {"tp", 2}}));
  TensorId x = m.input("x", {kDynamic, 16, 64});
  TensorId y = m.constrain(m.fusedAttention(x, "", 4), "[?, ?]");
  m.annotate("x", "[S(0), ?]");
  m.annotate("qkv", "[?, S(0)]");
  Placed p(m);
  EXPECT_EQ(p.layout(y), "[S(0), R]");
  EXPECT_EQ(p.layout("out"), "[S(0, granule = 16), P(sum)]");
  EXPECT_EQ(p.collectives(), "all_reduce 1");
}
