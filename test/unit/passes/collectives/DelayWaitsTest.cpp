// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Waits for results that nothing uses: how far they go, and that memory limits it.
#include "passes/collectives/core/DelayWaits.h"
#include "passes/collectives/core/CheckPlan.h"
#include "passes/collectives/core/Optimize.h"
#include "test/unit/passes/collectives/Builder.h"
#include "test/unit/passes/collectives/RoundModel.h"

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

TEST(DelayWaits, MovesOnlyWhatIsReturned) {
  Graph graph = backward(3, 10);
  Plan plan = identityPlan(graph);
  EXPECT_EQ(order(graph, delayWaits(graph, plan, SIZE_MAX)),
            "dw0 r0 dx0 dw1 r1 dx1 dw2 r2 dx2 rn wn clip w0 w1 w2");
  EXPECT_EQ(order(graph, delayWaits(graph, plan, 1)),
            "dw0 r0 dx0 dw1 r1 w0 dx1 dw2 r2 w1 dx2 rn wn clip w2");
  EXPECT_EQ(order(graph, delayWaits(graph, plan, 0)), order(graph, plan));
  EXPECT_EQ(checkPlan(graph, delayWaits(graph, plan, SIZE_MAX)), "");
}

TEST(DelayWaits, BucketsAreUnpackedWhereTheyAreWaitedFor) {
  Graph graph = backward(4, 10);
  using test::nodeNamed;
  Plan plan;
  plan.buckets = {{nodeNamed(graph, "r0"), nodeNamed(graph, "r1")},
                  {nodeNamed(graph, "r2"), nodeNamed(graph, "r3")}};
  auto op = [&](const char *name) {
    plan.items.push_back({PlanItem::Kind::Op, nodeNamed(graph, name)});
  };
  auto bucket = [&](BucketId id, const char *w0, const char *w1) {
    plan.items.push_back({PlanItem::Kind::Pack, id});
    plan.items.push_back({PlanItem::Kind::Start, id});
    plan.items.push_back({PlanItem::Kind::Wait, id});
    plan.items.push_back({PlanItem::Kind::Unpack, id});
    op(w0);
    op(w1);
  };
  for (const char *name : {"dw0", "dx0", "dw1"})
    op(name);
  bucket(0, "w0", "w1");
  for (const char *name : {"dx1", "dw2", "dx2", "dw3"})
    op(name);
  bucket(1, "w2", "w3");
  for (const char *name : {"dx3", "rn", "wn", "clip"})
    op(name);
  ASSERT_EQ(checkPlan(graph, plan), "");
  Plan late = delayWaits(graph, plan, SIZE_MAX);
  EXPECT_EQ(checkPlan(graph, late), "");
  EXPECT_EQ(order(graph, late).substr(order(graph, late).find("clip")),
            "clip wait0 unpack0 w0 w1 wait1 unpack1 w2 w3");
}

TEST(DelayWaits, WhatIsReducedInPlaceNeedsNoRoomToBeWaitedForLate) {
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

TEST(DelayWaits, OptimizerTakesTheMemoryThatIsFree) {
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
