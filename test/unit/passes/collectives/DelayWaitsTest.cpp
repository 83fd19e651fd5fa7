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
/// last reduction is of a value that a kernel uses. All are waited for at once.
Graph backward(int layers, uint64_t bytes) {
  Builder b;
  GroupId g = b.group("g", 2);
  ValueId x = b.input(10);
  for (int i = 0; i < layers; ++i) {
    std::string name = std::to_string(i);
    ValueId gradient = b.kernel("dw" + name, {x}, 100, bytes);
    b.output(b.wait("w" + name, b.start("r" + name, AR, g, gradient, bytes)));
    x = b.kernel("dx" + name, {x}, 100, 10);
  }
  ValueId norm = b.wait("wn", b.start("rn", AR, g, x, 10));
  b.output(b.kernel("clip", {norm}, 100, 10));
  return b.finish();
}

std::string order(const Graph &graph, const Plan &plan) {
  std::string text;
  for (const PlanItem &item : plan.items)
    if (item.kind == PlanItem::Kind::Op && !graph.isFree(item.id))
      text += (text.empty() ? "" : " ") + graph.nameOf(item.id);
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
