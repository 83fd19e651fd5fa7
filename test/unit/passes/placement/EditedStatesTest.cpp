// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// States of propagation that somebody has changed: placement does what they say, or says why not.
#include "passes/placement/core/Place.h"
#include "passes/placement/core/TensorStates.h"

#include "test/unit/passes/placement/Models.h"

#include <gtest/gtest.h>

using namespace shardc;
using namespace shardc::test;

static const Mesh kTp({{"tp", 4}});

static AxisState shard(int dim, bool given = false) {
  return {AxisPlacement::shard(dim, {}, 0), Strength::Normal, given, kNone};
}

namespace {
/// y = x w', whose states are edited before it is placed.
struct Edited : Model {
  Edited() : Model(kTp) {
    y = linear(input("x", {16, 64}), "w", 32, /*bias=*/false);
    z = gelu(y);
  }
  void run() {
    propagation = propagate(graph);
    if (edit)
      edit(propagation.states);
    refusals = checkStates(graph, propagation);
    if (refusals.empty())
      placed = place(graph, propagation);
  }
  std::string layout(TensorId t) const { return placed.tensorLayout(t).str(); }
  std::vector<std::string> remarks(Remark::Kind kind) const {
    std::vector<std::string> texts;
    for (const Remark &remark : placed.remarks)
      if (remark.kind == kind)
        texts.push_back(remark.text);
    return texts;
  }

  TensorId y, z;
  std::function<void(std::vector<AxisState> &)> edit;
  Propagation propagation;
  std::vector<Refusal> refusals;
  PlacedGraph placed;
};
} // namespace

TEST(EditedStates, WhatIsGivenBinds) {
  for (int dim : {0, 1}) {
    Edited m;
    m.annotate("x", "[S(0)]");
    m.edit = [&](std::vector<AxisState> &states) { states[m.y] = shard(dim, /*given=*/true); };
    m.run();
    ASSERT_TRUE(m.refusals.empty() && m.placed.errors.empty());
    EXPECT_EQ(m.layout(m.y), dim == 0 ? "[S(0)]" : "[S(1)]");
    EXPECT_EQ(m.placed.redistributions.empty(), dim == 0);
    EXPECT_TRUE(m.remarks(Remark::Kind::Unfollowed).empty());
  }
  Edited whole;
  whole.annotate("x", "[S(0)]");
  whole.edit = [&](std::vector<AxisState> &states) {
    states[whole.y] = {AxisPlacement::replicate(), Strength::Normal, true, kNone};
  };
  whole.run();
  ASSERT_TRUE(whole.placed.errors.empty());
  EXPECT_EQ(whole.layout(whole.y), "[R]");
}

TEST(EditedStates, AWishIsWeighedAndSaidWhereItIsNotFollowed) {
  Edited m;
  m.annotate("x", "[S(0)]");
  // To gather x for it moves 16 x 64 elements, and to exchange y 16 x 32.
  m.edit = [&](std::vector<AxisState> &states) {
    states[m.y] = shard(1);
    states[m.z] = {};
  };
  m.run();
  ASSERT_TRUE(m.placed.errors.empty());
  EXPECT_EQ(m.layout(m.y), "[S(0)]");
  EXPECT_EQ(m.remarks(Remark::Kind::Unfollowed),
            std::vector<std::string>{
                "result 0 was to be S(1) over tp, but is S(0), which moves fewer bytes"});
}

TEST(EditedStates, WhatAnOpCannotMakeIsRefused) {
  Edited m;
  m.edit = [&](std::vector<AxisState> &states) {
    states[m.z] = {AxisPlacement::partial(Reduction::Max), Strength::Normal, true, kNone};
  };
  m.run();
  ASSERT_EQ(m.placed.errors.size(), 1u);
  EXPECT_EQ(m.placed.errors[0].op, m.graph.tensors[m.z].producer);
  EXPECT_EQ(m.placed.errors[0].text,
            "result 0 is to be P(max) over tp, but the op cannot make it so from what its operands "
            "are; leave it open, and put a dist.constrain behind the op");
}

TEST(EditedStates, AnAnnotationMustBeKept) {
  Edited m;
  m.graph.annotate({m.names["w"], *parseLayout(kTp, "[S(0)]").value, {}, {"plan.yaml:7"}});
  m.edit = [&](std::vector<AxisState> &states) { states[m.names["w"]] = shard(1, true); };
  m.run();
  ASSERT_EQ(m.refusals.size(), 1u);
  EXPECT_EQ(m.refusals[0].tensor, m.names["w"]);
  EXPECT_EQ(m.refusals[0].text,
            "S(0) over tp is asked for (plan.yaml:7), but its 'dist.sharding' says S(1) given: "
            "change what is asked for as well, or run dist-propagate again");
  m.edit = [&](std::vector<AxisState> &states) { states[m.names["w"]].annotated = false; };
  m.run();
  EXPECT_EQ(m.refusals.size(), 1u);
}

TEST(EditedStates, TiedTensorsMustAgree) {
  Model m(kTp);
  TensorId kept = m.input("kept", {8, 6});
  TensorId next = m.constrain(m.gelu(kept), "[?]");
  m.graph.tie(next, kept);
  Propagation propagation = propagate(m.graph);
  EXPECT_TRUE(checkStates(m.graph, propagation).empty());
  propagation.states[kept] = shard(0);
  std::vector<Refusal> refusals = checkStates(m.graph, propagation);
  ASSERT_EQ(refusals.size(), 1u);
  EXPECT_EQ(refusals[0].tensor, next);
  EXPECT_EQ(refusals[0].text,
            "it is the new value of an argument whose 'dist.sharding' says S(0) over tp, but its "
            "own says ?: the next run starts from it, so both must be the same");
}

TEST(EditedStates, AxesMustMakeALayoutTogether) {
  Model m(Mesh({{"a", 3}, {"b", 2}}));
  TensorId x = m.input("x", {10});
  Propagation propagation = propagate(m.graph);
  propagation.states[2 * x] = shard(0); // 4, 4, 2: b's blocks cannot be counted inside
  propagation.states[2 * x + 1] = shard(0);
  propagation.states[2 * x + 1].placement.split.blocks = 5;
  std::vector<Refusal> refusals = checkStates(m.graph, propagation);
  ASSERT_EQ(refusals.size(), 1u);
  EXPECT_EQ(
      refusals[0].text,
      "no layout can have the placements [S(0), S(0, blocks = 5) level 0]: an axis splits pieces "
      "of the blocks of another, or is inside one whose shards are uneven");
}
