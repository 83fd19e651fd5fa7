// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Hand-made models with few annotations; what ends where is known from how Megatron shards them.
#include "passes/placement/core/Claims.h"

#include "test/unit/passes/placement/Models.h"

#include <gtest/gtest.h>

using namespace shardc;
using namespace shardc::test;

namespace {
struct Result {
  explicit Result(const Model &model) : model(model), propagation(propagate(model.graph)) {
    for (const std::string &error : propagation.errors)
      ADD_FAILURE() << error;
  }
  std::string layout(TensorId t) const {
    std::vector<AxisPlacement> axes;
    unsigned n = model.graph.numAxes();
    for (unsigned a = 0; a < n; ++a)
      axes.push_back(propagation.states[t * n + a].placement);
    std::optional<Layout> l = compose(model.graph.mesh, model.graph.shape(t), axes);
    return l ? l->str() : "none";
  }
  std::string layout(const std::string &name) const { return layout(model.names.at(name)); }

  const Model &model;
  Propagation propagation;
};
} // namespace

static const Mesh kTp({{"tp", 4}});

TEST(Propagate, MlpFromOneWeight) {
  for (bool fromUp : {true, false}) {
    Model m(kTp);
    TensorId x = m.input("x", {2, 5, 64});
    TensorId y = m.mlp(x, "", 256);
    fromUp ? m.annotate("up", "[S(0)]") : m.annotate("down", "[S(1)]");
    Result r(m);
    EXPECT_EQ(r.layout("up"), "[S(0)]");
    EXPECT_EQ(r.layout("up.bias"), "[S(0)]");
    EXPECT_EQ(r.layout("down"), "[S(1)]");
    EXPECT_EQ(r.layout("down.bias"), "[R]");
    EXPECT_EQ(r.layout("norm"), "[R]");
    EXPECT_EQ(r.layout(x), "[R]");
    EXPECT_EQ(r.layout(y), "[R]");
    EXPECT_TRUE(r.propagation.remarks.empty());
  }
}

TEST(Propagate, AttentionFromThreeWeights) { // (L3c): six heads over four ranks
  Model m(kTp);
  TensorId x = m.input("x", {2, 5, 384});
  TensorId y = m.selfAttention(x, "", 6);
  for (const char *name : {"q", "k", "v"})
    m.annotate(name, "[S(0)]");
  Result r(m);
  for (const char *name : {"q", "k", "v"})
    EXPECT_EQ(r.layout(name), "[S(0, sizes = [128, 128, 128, 0])]");
  EXPECT_EQ(r.layout("o"), "[S(1, sizes = [128, 128, 128, 0])]");
  EXPECT_EQ(r.layout("o.bias"), "[R]");
  EXPECT_EQ(r.layout(y), "[R]");
  ASSERT_EQ(r.propagation.remarks.size(), 3u);
  EXPECT_EQ(r.propagation.remarks[0].text,
            "S(0) over tp becomes S(0, sizes = [128, 128, 128, 0]): ops need units of 64");
}

TEST(Propagate, SaysNothingOfUnitsThatExtentsHaveAnyway) { // eight heads over four ranks
  Model m(kTp);
  TensorId x = m.input("x", {2, 5, 512});
  m.selfAttention(x, "", 8);
  for (const char *name : {"q", "k", "v"})
    m.annotate(name, "[S(0)]");
  Result r(m);
  EXPECT_EQ(r.layout("q"), "[S(0)]");
  for (const Remark &remark : r.propagation.remarks)
    ADD_FAILURE() << remark.text;
}

TEST(Propagate, FusedAttentionEndsInBlocksOfHeads) { // (L3b), (L3c)
  Model m(kTp);
  TensorId x = m.input("x", {3, 5, 768});
  m.fusedAttention(x, "", 12);
  m.annotate("qkv", "[S(0)]");
  Result r(m);
  EXPECT_EQ(r.layout("qkv"), "[S(0, blocks = 3)]");
  EXPECT_EQ(r.layout("qkv.bias"), "[S(0, blocks = 3)]");
  EXPECT_EQ(r.layout("o"), "[S(1)]");
  ASSERT_EQ(r.propagation.remarks.size(), 1u);
  EXPECT_EQ(r.propagation.remarks[0].text,
            "S(0) over tp becomes S(0, blocks = 3): ops need units of 64 in 3 blocks");
}

TEST(Propagate, GroupsOfQueryHeadsFollowTheirKeys) {
  Model m(Mesh({{"tp", 2}}));
  TensorId x = m.input("x", {2, 5, 96});
  auto repeat = [&](TensorId t) { // [2, 3, 5, 8] -> [2, 12, 5, 8], each head four times
    return m.view(m.expand(m.view(t, {2, 3, 1, 5, 8}), {2, 3, 4, 5, 8}), {2, 12, 5, 8});
  };
  TensorId q = m.toHeads(m.linear(x, "q", 96), 12);
  TensorId k = repeat(m.toHeads(m.linear(x, "k", 24), 3));
  TensorId v = repeat(m.toHeads(m.linear(x, "v", 24), 3));
  m.linear(m.fromHeads(m.attention(q, k, v)), "o", 96);
  m.annotate("q", "[S(0)]");
  Result r(m);
  EXPECT_EQ(r.layout("q"), "[S(0, sizes = [64, 32])]");
  EXPECT_EQ(r.layout("k"), "[S(0, sizes = [16, 8])]");
  EXPECT_EQ(r.layout("v"), "[S(0, sizes = [16, 8])]");
  EXPECT_EQ(r.layout("o"), "[S(1, sizes = [64, 32])]");
}

TEST(Propagate, DataAndTensorParallel) {
  Model m(Mesh({{"dp", 2}, {"tp", 2}}));
  TensorId ids = m.input("ids", {4, 6});
  TensorId x = m.embedding(ids, "table", 100, 32);
  TensorId y = m.fusedAttention(x, "a.", 4);
  TensorId z = m.mlp(y, "m.", 64);
  m.annotate("ids", "[S(0), ?]");
  m.annotate("a.qkv", "[?, S(0)]");
  m.annotate("m.up", "[?, S(0)]");
  Result r(m);
  EXPECT_EQ(r.layout(x), "[S(0), R]");
  EXPECT_EQ(r.layout(y), "[S(0), R]");
  EXPECT_EQ(r.layout(z), "[S(0), R]");
  EXPECT_EQ(r.layout("table"), "[R, R]");
  EXPECT_EQ(r.layout("a.qkv"), "[R, S(0, blocks = 3)]");
  EXPECT_EQ(r.layout("a.out"), "[S(0), R]");
  EXPECT_EQ(r.layout("m.down"), "[R, S(1)]");
}

TEST(Propagate, StoredParametersDoNotDisturbTheBatch) {
  Model m(Mesh({{"dp", 2}, {"tp", 2}}));
  TensorId x = m.input("x", {4, 6, 32});
  TensorId y = m.mlp(x, "", 64);
  m.annotate("x", "[S(0), ?]");
  m.annotate("up", "[S(0), S(0)]", {Strength::Weak, Strength::Normal});
  m.annotate("down", "[S(0), ?]", {Strength::Weak, Strength::Normal});
  m.annotate("norm", "[S(0), ?]", {Strength::Weak, Strength::Weak});
  Result r(m);
  EXPECT_EQ(r.layout(y), "[S(0), R]");
  // Storage is cut out of what tensor parallelism leaves, so that a gather over dp restores it.
  EXPECT_EQ(r.layout("up"), "[S(0), S(0)], order = [1, 0]");
  EXPECT_EQ(r.layout("down"), "[S(0), S(1)]");
  EXPECT_EQ(r.layout("norm"), "[S(0), R]");
}

TEST(Propagate, TransposedStoredParametersStayStored) {
  Model m(Mesh({{"dp", 4}}));
  TensorId x = m.input("x", {4, 6, 32});
  TensorId weight = m.permute(m.input("w", {32, 64}), {1, 0});
  Shape shape{4, 6, 64};
  TensorId y = m.op(m.rule({x, weight}, shape).einsum({"abi", "oi"}, {"abo"}), {x, weight}, shape);
  m.annotate("x", "[S(0)]");
  m.annotate("w", "[S(0)]", {Strength::Weak});
  Result r(m);
  EXPECT_EQ(r.layout(y), "[S(0)]");
  EXPECT_EQ(r.layout(weight), "[R]"); // and not S(1), for which activations would move
}

TEST(Propagate, PinnedWeightsWinOverASequenceShard) {
  Model m(kTp);
  TensorId x = m.constrain(m.input("x", {2, 8, 64}), "[S(1)]");
  TensorId y = m.mlp(x, "", 256);
  m.annotate("up", "[S(0)]", {Strength::Pinned});
  m.annotate("down", "[S(1)]", {Strength::Pinned});
  Result r(m);
  EXPECT_EQ(r.layout("x"), "[S(1)]");
  EXPECT_EQ(r.layout(y), "[S(1)]");
  EXPECT_EQ(r.layout("out"), "[S(1)]"); // what is wanted of the product: a reduce-scatter
  unsigned down = m.graph.tensors[m.names["out"]].producer;
  const ShardingRule &rule = m.graph.rule(down);
  EXPECT_EQ(
      rule.factors[Claims(m.graph, r.propagation.states, r.propagation.sizes).factorOf(down, 0)]
          .kind,
      FactorKind::Reducing);
}

TEST(Propagate, EqualClaimsAreSettledByBytes) {
  for (bool largeWeight : {true, false}) {
    Model m(kTp);
    int64_t rows = largeWeight ? 4 : 4096, out = largeWeight ? 4096 : 4;
    TensorId x = m.input("x", {rows, 64});
    TensorId y = m.linear(x, "w", out, /*bias=*/false);
    m.annotate("x", "[S(0)]");
    m.annotate("w", "[S(0)]");
    Result r(m);
    EXPECT_EQ(r.layout(y), largeWeight ? "[S(1)]" : "[S(0)]");
    EXPECT_EQ(r.layout("x"), "[S(0)]"); // annotations stay
    EXPECT_EQ(r.layout("w"), "[S(0)]");
  }
}

TEST(Propagate, ReplicatedAnnotationsStopPropagation) {
  Model m(kTp);
  TensorId x = m.input("x", {8, 64});
  TensorId y = m.gelu(m.constrain(m.gelu(x), "[R]"));
  m.annotate("x", "[S(0)]");
  Result r(m);
  EXPECT_EQ(r.layout(y), "[R]");
}

TEST(Propagate, ErrorsNameTheAnnotation) {
  Model m(kTp);
  TensorId x = m.input("x", {8, 64});
  TensorId y = m.gelu(x);
  m.graph.annotate({x, *parseLayout(kTp, "[S(2)]").value, {}, {"plan.yaml:7"}});
  m.graph.annotate({y, *parseLayout(kTp, "[S(0)]").value, {}, {}});
  EXPECT_EQ(
      propagate(m.graph).errors,
      (std::vector<std::string>{
          "annotation of tensor 0 (plan.yaml:7): axis \"tp\": S(2): dim 2 is out of range for a "
          "tensor of rank 2",
          "annotation of tensor 1: the tensor is made by an op; put a constraint on it instead",
      }));
}

TEST(Propagate, AnAnnotationThatNoFactorsDescribeIsAnError) {
  Model m(Mesh({{"dp", 2}, {"tp", 2}}));
  m.input("w", {24, 3});
  m.annotate("w", "[S(0, blocks = 3), S(0)]");
  EXPECT_EQ(
      propagate(m.graph).errors,
      std::vector<std::string>{
          "annotation [S(0, blocks = 3), S(0)] of tensor 0: an axis splits pieces of the blocks of "
          "another; give the inner axis the blocks"});
}
