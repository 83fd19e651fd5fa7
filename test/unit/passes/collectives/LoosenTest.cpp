// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How far starts and waits move, and that memory limits it.
#include "passes/collectives/core/Loosen.h"
#include "passes/collectives/core/CheckPlan.h"
#include "passes/collectives/core/Optimize.h"
#include "passes/collectives/core/Replay.h"
#include "test/unit/passes/collectives/Builder.h"
#include "test/unit/passes/collectives/RandomGraph.h"
#include "test/unit/passes/collectives/RoundModel.h"
#include "test/unit/passes/collectives/UnseenGraphs.h"

using namespace shardc;
using namespace shardc::collectives;
using shardc::collectives::test::Builder;
using shardc::collectives::test::RoundModel;

namespace {

constexpr auto AR = CollectiveKind::AllReduce;

/// A backward of `layers` kernels, each of which makes a gradient that is reduced and returned; the
/// last reduction is of a value that a kernel uses. All are waited for at once. In place: gradients
/// are reduced where they were made.
Graph backward(int layers, uint64_t bytes, bool inPlace = false) {
  Builder b;
  GroupId g = b.group("g", 2);
  ValueId x = b.input(10);
  for (int i = 0; i < layers; ++i) {
    std::string name = std::to_string(i);
    ValueId gradient = b.kernel("dw" + name, {x}, 100, bytes);
    ValueId reduced = b.graph.addTensor(bytes);
    b.graph.addCollective({AR, g, "sum", 0, {inPlace}}, "r" + name, std::vector{gradient},
                          std::vector{reduced});
    b.output(b.wait("w" + name, reduced));
    x = b.kernel("dx" + name, {x}, 100, 10);
  }
  ValueId norm = b.wait("wn", b.start("rn", AR, g, x, 10));
  b.output(b.kernel("clip", {norm}, 100, 10));
  return b.finish();
}

std::string order(const Graph &graph, const Plan &plan) {
  auto textOf = [&](const PlanItem &item) {
    switch (item.kind) {
    case PlanItem::Kind::Op:
      return graph.nameOf(item.id);
    case PlanItem::Kind::Start:
      return "start" + std::to_string(item.id);
    case PlanItem::Kind::Wait:
      return "wait" + std::to_string(item.id);
    case PlanItem::Kind::Unpack:
      return "unpack" + std::to_string(item.id);
    default:
      return std::string("pack") + std::to_string(item.id);
    }
  };
  std::string text;
  for (const PlanItem &item : plan.items)
    if (item.kind != PlanItem::Kind::Op || !graph.isFree(item.id))
      text += (text.empty() ? "" : " ") + textOf(item);
  return text;
}

Plan loose(const Graph &graph, const Plan &plan, uint64_t limit = UINT64_MAX,
           StartOrder order = StartOrder::Kept) {
  Problem problem(graph);
  return loosen(problem, plan, {limit, false, order});
}

TEST(Loosen, ReturnedResultsAreWaitedForAtTheEnd) {
  Graph graph = backward(3, 10);
  EXPECT_EQ(order(graph, loose(graph, identityPlan(graph))),
            "dw0 r0 dx0 dw1 r1 dx1 dw2 r2 dx2 rn wn clip w0 w1 w2");
}

/// `layers` kernels, each of which reads what is gathered right before it; the last needs the
/// gather of a kernel's result.
Graph forward(int layers, uint64_t bytes) {
  Builder b;
  GroupId g = b.group("g", 2);
  ValueId x = b.input(10);
  for (int i = 0; i < layers; ++i) {
    std::string name = std::to_string(i);
    ValueId weight = b.run("g" + name, CollectiveKind::AllGather, g, b.input(bytes / 2), bytes);
    x = b.kernel("k" + name, {x, weight}, 100, 10);
  }
  ValueId gathered = b.run("gx", CollectiveKind::AllGather, g, x, 20);
  b.output(b.kernel("last", {gathered}, 100, 10));
  return b.finish();
}

TEST(Loosen, StartsEarlyWhereMemoryAllows) {
  Graph graph = forward(4, 1000);
  Plan plan = identityPlan(graph);
  EXPECT_EQ(order(graph, loose(graph, plan)),
            "g0 g1 g2 g3 g0.wait k0 g1.wait k1 g2.wait k2 g3.wait k3 gx gx.wait last");
  // Room for one more gathered weight, and for none.
  uint64_t peak = simulate(graph, RoundModel()).peakHoldBytes;
  EXPECT_EQ(order(graph, loose(graph, plan, peak + 1000)),
            "g0 g1 g0.wait k0 g2 g1.wait k1 g3 g2.wait k2 g3.wait k3 gx gx.wait last");
  EXPECT_EQ(order(graph, loose(graph, plan, peak)),
            "g0 g0.wait k0 g1 g1.wait k1 g2 g2.wait k2 g3 g3.wait k3 gx gx.wait last");
}

TEST(Loosen, StartsFollowNeed) {
  Builder b;
  GroupId g = b.group("g", 2);
  ValueId x = b.input(10), late = b.input(500), soon = b.input(500);
  ValueId first = b.kernel("first", {x}, 100, 10);
  ValueId l = b.start("late", CollectiveKind::AllGather, g, late, 1000);
  ValueId s = b.start("soon", CollectiveKind::AllGather, g, soon, 1000);
  ValueId second = b.kernel("second", {first, b.wait("soon.wait", s)}, 100, 10);
  b.output(b.kernel("third", {second, b.wait("late.wait", l)}, 100, 10));
  Graph graph = b.finish();
  Plan plan = identityPlan(graph);
  EXPECT_EQ(order(graph, loose(graph, plan)), "late soon first soon.wait second late.wait third");
  EXPECT_EQ(order(graph, loose(graph, plan, UINT64_MAX, StartOrder::Need)),
            "soon late first soon.wait second late.wait third");
}

TEST(Loosen, BucketsMoveAsTheyAre) {
  Graph graph = backward(4, 10);
  using test::nodeNamed;
  Plan plan;
  plan.buckets = {{nodeNamed(graph, "r0"), nodeNamed(graph, "r1")},
                  {nodeNamed(graph, "r2"), nodeNamed(graph, "r3")}};
  auto op = [&](const char *name) {
    plan.items.push_back({PlanItem::Kind::Op, nodeNamed(graph, name)});
  };
  auto bucket = [&](BucketId id, const char *w0, const char *w1) {
    for (auto kind : {PlanItem::Kind::Pack, PlanItem::Kind::Start, PlanItem::Kind::Wait,
                      PlanItem::Kind::Unpack})
      plan.items.push_back({kind, id});
    op(w0);
    op(w1);
  };
  for (const char *name : {"dw0", "dx0", "dw1", "dx1"})
    op(name);
  bucket(0, "w0", "w1");
  for (const char *name : {"dw2", "dx2", "dw3"})
    op(name);
  bucket(1, "w2", "w3");
  for (const char *name : {"dx3", "rn", "wn", "clip"})
    op(name);
  ASSERT_EQ(checkPlan(graph, plan), "");
  Plan late = loose(graph, plan);
  EXPECT_EQ(checkPlan(graph, late), "");
  EXPECT_EQ(order(graph, late), "dw0 dx0 dw1 pack0 start0 dx1 dw2 dx2 dw3 pack1 start1 dx3 rn wn "
                                "clip wait0 unpack0 wait1 unpack1");
}

/// Plans of every kind stay valid, under their limit, and as short; a replay says what the
/// simulation says.
TEST(Loosen, RandomPlans) {
  for (uint32_t seed = 0; seed != 400; ++seed) {
    SCOPED_TRACE(seed);
    test::RandomShape shape;
    shape.nodes = 10 + seed % 80;
    Graph graph = test::randomGraph(seed, shape);
    OptimizeOptions options;
    options.flat = seed % 3 == 0;
    OptimizeResult result = optimize(graph, RoundModel(), options);
    ASSERT_EQ(result.error, "");
    Problem problem(graph);
    for (const Plan &plan : {identityPlan(graph), result.plan})
      for (uint64_t limit : {uint64_t(0), result.before.peakHoldBytes, result.memoryLimit})
        for (StartOrder order : {StartOrder::Kept, StartOrder::Need}) {
          Plan loosened = loosen(problem, plan, {limit, options.flat, order});
          ASSERT_EQ(checkPlan(graph, loosened), "");
          Figures before = simulate(graph, plan, RoundModel(), {options.flat});
          Figures after = simulate(graph, loosened, RoundModel(), {options.flat});
          EXPECT_LE(after.peakHoldBytes, std::max(limit, before.peakHoldBytes));
          // Launches of 1 us may come before a kernel instead of behind it.
          if (order == StartOrder::Kept)
            EXPECT_LE(after.stepUs, before.stepUs + double(graph.numNodes()));
          EXPECT_NEAR(Replay(graph, loosened, RoundModel(), options.flat).stepUs({}), after.stepUs,
                      1e-9 * after.stepUs);
        }
  }
}

/// Launches take nothing, so that a step that is longer for having slack is longer because
/// something waits for more.
struct FreeLaunches : RoundModel {
  double launchUs() const override { return 0; }
};

/// The result of a bucket is needed late, and unpacked while another collective is waited for.
TEST(Loosen, BucketsMayKeepTheirPlaceBeforeALaterStall) {
  Builder b;
  GroupId g = b.group("g", 2), h = b.group("h", 2);
  ValueId one = b.start("one", CollectiveKind::AllGather, g, b.input(50), 100);
  ValueId two = b.start("two", CollectiveKind::AllGather, g, b.input(50), 100);
  ValueId other = b.start("other", CollectiveKind::AllGather, h, b.input(500), 1000);
  ValueId x = b.wait("one.wait", one), y = b.wait("two.wait", two), z = b.wait("other.wait", other);
  ValueId early = b.kernel("early", {z}, 100, 10);
  b.output(b.kernel("late", {early, x, y}, 100, 10));
  Graph graph = b.finish();
  auto node = [&](const char *name) { return test::nodeNamed(graph, name); };
  Plan plan{{{PlanItem::Kind::Pack, 0},
             {PlanItem::Kind::Start, 0},
             {PlanItem::Kind::Op, node("other")},
             {PlanItem::Kind::Wait, 0},
             {PlanItem::Kind::Unpack, 0},
             {PlanItem::Kind::Op, node("other.wait")},
             {PlanItem::Kind::Op, node("early")},
             {PlanItem::Kind::Op, node("late")}},
            {{node("one"), node("two")}}};
  ASSERT_EQ(checkPlan(graph, plan), "");
  FreeLaunches model;
  double before = simulate(graph, plan, model).stepUs;
  // Packed in 100 us, on the way for 210 and unpacked in 200, while the other takes 1010.
  EXPECT_DOUBLE_EQ(before, 100 + 1010 + 200);
  // As late as it can be it is behind the other, whose stall hides it no more.
  EXPECT_DOUBLE_EQ(simulate(graph, loose(graph, plan), model).stepUs, before + 200);
  Problem problem(graph);
  Plan ordered = loosen(problem, plan, {.unpackInOrder = true});
  EXPECT_EQ(checkPlan(graph, ordered), "");
  EXPECT_DOUBLE_EQ(simulate(graph, ordered, model).stepUs, before);
}

/// What is promised where starts keep their order, and buckets are unpacked before what comes
/// after.
TEST(Loosen, NoStepIsLongerWhereEverythingKeepsItsOrder) {
  FreeLaunches model;
  unsigned shorter = 0, buckets = 0;
  for (uint32_t seed = 0; seed != 300; ++seed) {
    SCOPED_TRACE(seed);
    Graph graph = seed % 2 == 0 ? test::randomGraph(seed, {20 + seed % 60, 1 + seed % 3, true})
                                : test::unseenGraph(test::unseenFamilies[seed / 2 % 10], seed, 80);
    Problem problem(graph);
    // A schedule of the search, without slack.
    SearchOptions options;
    options.flat = seed % 5 == 0;
    options.work = 0;
    std::vector<Plan> plans = {identityPlan(graph)};
    options.visit = [&](const Problem &, const ScheduleResult &result) {
      plans.push_back(result.plan);
    };
    searchSchedules(graph, model, options);
    for (const Plan &plan : plans) {
      buckets += plan.buckets.size();
      uint64_t peak = simulate(graph, plan, model, {options.flat}).peakHoldBytes;
      for (uint64_t limit : {peak, UINT64_MAX}) {
        Plan loosened = loosen(problem, plan, {limit, options.flat, StartOrder::Kept, true});
        ASSERT_EQ(checkPlan(graph, loosened), "");
        EXPECT_LE(simulate(graph, loosened, model, {options.flat}).peakHoldBytes, limit);
        for (const Scenario &times : standardScenarios(graph, model)) {
          double before = Replay(graph, plan, model, options.flat).stepUs(times);
          double after = Replay(graph, loosened, model, options.flat).stepUs(times);
          EXPECT_LE(after, before * (1 + 1e-9)) << times.name;
          shorter += after < before * (1 - 1e-9);
        }
      }
    }
  }
  EXPECT_GT(shorter, 1000u);
  EXPECT_GT(buckets, 200u);
}

TEST(Loosen, WhatIsReducedInPlaceNeedsNoRoomToBeWaitedForLate) {
  for (bool flat : {false, true}) {
    Graph graph = backward(6, 1000, /*inPlace=*/true);
    OptimizeOptions options;
    options.flat = flat;
    options.bucket = false;
    // Outputs are held to the end anyway: no byte more than in the order of the program.
    options.memoryLimit = simulate(graph, RoundModel()).peakHoldBytes;
    OptimizeResult result = optimize(graph, RoundModel(), options);
    ASSERT_EQ(result.error, "");
    // Besides: the input, and what the last kernel reads and writes.
    EXPECT_EQ(*options.memoryLimit, 6u * 1000 + 3 * 10);
    std::string text = order(graph, result.plan);
    EXPECT_EQ(text.substr(text.find(" w0")), " w0 w1 w2 w3 w4 w5");
  }
}

TEST(Loosen, OptimizerTakesTheMemoryThatIsFree) {
  Graph graph = backward(6, 1000);
  OptimizeOptions options;
  options.bucket = false;
  auto lastItems = [&](const OptimizeResult &result) {
    size_t waits = 0;
    for (auto item = result.plan.items.rbegin(); item != result.plan.items.rend(); ++item, ++waits)
      if (graph.classOf(item->id) != NodeClass::Wait)
        break;
    return waits;
  };
  options.memoryLimit = 1 << 20;
  OptimizeResult ample = optimize(graph, RoundModel(), options);
  ASSERT_EQ(ample.error, "");
  EXPECT_EQ(lastItems(ample), 6u);
  options.memoryLimit = ample.before.peakHoldBytes + 1500;
  OptimizeResult tight = optimize(graph, RoundModel(), options);
  ASSERT_EQ(tight.error, "");
  EXPECT_LE(tight.after.peakHoldBytes, *options.memoryLimit);
  EXPECT_LT(lastItems(tight), 6u);
  EXPECT_DOUBLE_EQ(tight.after.stepUs, ample.after.stepUs);
}

} // namespace
