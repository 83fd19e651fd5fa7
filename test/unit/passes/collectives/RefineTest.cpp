// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Plans that are being changed: their order, memory and times against what is said of a finished
// plan, and the search that changes them.
#include "passes/collectives/core/Refine.h"
#include "passes/collectives/core/CheckPlan.h"
#include "passes/collectives/core/EventMemory.h"
#include "passes/collectives/core/EventTimes.h"
#include "passes/collectives/core/FormBuckets.h"
#include "passes/collectives/core/Optimize.h"
#include "passes/cost/core/SimV1.h"
#include "test/unit/passes/collectives/Builder.h"
#include "test/unit/passes/collectives/RandomGraph.h"
#include "test/unit/passes/collectives/RoundModel.h"
#include "test/unit/passes/collectives/UnseenGraphs.h"

#include <numeric>

using namespace shardc;
using namespace shardc::collectives;
using shardc::collectives::test::Builder;
using shardc::collectives::test::RoundModel;

namespace {

constexpr auto AG = CollectiveKind::AllGather;

Decision asItIs(const Graph &graph) {
  return {identityPlan(graph), {}, {}, std::vector(graph.numNodes(), AloneReason::Cost)};
}

/// Buckets in program order, as many as fit.
Decision bucketed(const Problem &problem, const cost::CostModel &model, bool flat) {
  FormOptions form;
  form.flat = flat;
  FormResult formed = formBuckets(problem, model, BucketKeys(problem, {}), form);
  return toDecision(problem, {.plan = std::move(formed.plan),
                              .closed = std::move(formed.closed),
                              .capBytes = std::move(formed.capBytes),
                              .alone = std::move(formed.alone)});
}

/// Random changes; whether they may be done.
bool change(PlanEvents &events, std::mt19937 &random) {
  auto pick = [&](size_t n) { return static_cast<uint32_t>(random() % n); };
  uint32_t from = pick(events.size());
  EventId event = events.at(from);
  bool isUnit = events.isWait(event) || events.isStart(event);
  UnitId unit = events.unitOfEvent(event);
  if (isUnit && events.members(unit).empty())
    return false;
  if (pick(2) == 0) {
    uint32_t low = events.lowest(event), high = events.highest(event);
    EXPECT_LE(low, from);
    EXPECT_GE(high, from);
    events.shift(from, low + pick(high - low + 1));
    return true;
  }
  if (!isUnit || events.keyOf(unit) == none)
    return false;
  TaskId member = events.members(unit)[pick(events.members(unit).size())];
  UnitId to = none;
  if (pick(2) == 0 && events.members(member).empty()) {
    // On its own, beside where it was.
    to = member;
    events.transfer(member, to);
    events.shift(events.positionOf(to), events.positionOf(unit));
    events.shift(events.positionOf(events.waitOf(to)), events.positionOf(events.waitOf(unit)));
  } else {
    for (uint32_t at = 0; at != events.size(); ++at)
      if (EventId other = events.at(at); events.isStart(other) && other != unit &&
                                         events.keyOf(other) == events.keyOf(unit) &&
                                         (to == none || pick(2) == 0))
        to = other;
    if (to == none)
      return false;
    events.transfer(member, to);
  }
  return events.settle(to);
}

class PlanEventsTest : public testing::TestWithParam<bool> {};

TEST_P(PlanEventsTest, ChangesAreThoseOfTheFinishedPlan) {
  bool flat = GetParam();
  cost::SimV1 model;
  unsigned buckets = 0, undone = 0, refused = 0;
  for (uint32_t seed = 0; seed != 100; ++seed) {
    SCOPED_TRACE(seed);
    Graph graph = seed % 3 == 0 ? test::unseenGraph("random", seed, 60) : test::randomGraph(seed);
    Problem problem(graph);
    BucketKeys keys(problem, {});
    Decision decision = seed % 2 == 0 ? asItIs(graph) : bucketed(problem, model, flat);
    PlanEvents events(problem, keys, decision);
    EventMemory memory(events, flat);
    std::vector<Scenario> scenarios = standardScenarios(graph, model);
    EventTimes times(events, model, scenarios, flat);
    std::mt19937 random(seed);
    auto compare = [&] {
      Plan plan = events.decide({}).plan;
      ASSERT_EQ(checkPlan(graph, plan), "");
      EXPECT_EQ(memory.peakBytes(), simulate(graph, plan, model, {flat}).peakHoldBytes);
      std::vector<double> steps = Replay(graph, plan, model, flat).stepsUs(scenarios);
      for (size_t i = 0; i != steps.size(); ++i)
        EXPECT_NEAR(times.stepsUs()[i], steps[i], 1e-6 * steps[i]);
      buckets += plan.buckets.size();
    };
    compare();
    for (int i = 0; i != 60 && !HasFailure(); ++i) {
      uint64_t before = memory.peakBytes();
      if (!change(events, random)) {
        events.undo();
        continue;
      }
      std::vector<EventId> changed;
      std::vector<UnitId> regrouped;
      uint32_t first = events.size(), last = 0;
      for (auto [transfers, id, from, to] : events.changes())
        if (transfers) {
          for (UnitId unit : {from, to}) {
            regrouped.push_back(unit);
            for (EventId event : {unit, events.waitOf(unit)}) {
              changed.push_back(event);
              first = std::min(first, events.positionOf(event));
              last = std::max(last, events.positionOf(event));
            }
          }
        } else {
          changed.push_back(id);
          first = std::min({first, from, to});
          last = std::max({last, from, to});
        }
      if (changed.empty())
        continue;
      auto update = [&] {
        for (UnitId unit : regrouped)
          times.updateUnit(unit);
        return memory.update(changed, first, last);
      };
      uint64_t most = update();
      EXPECT_LE(most, memory.peakBytes());
      if (memory.peakBytes() > before) {
        EXPECT_EQ(most, memory.peakBytes());
      }
      std::optional<Times> estimate = times.estimate(first, last, !regrouped.empty());
      Times unchanged = times.stepsUs();
      times.keep(first);
      for (size_t lane = 0; lane != unchanged.size(); ++lane)
        if (!estimate)
          EXPECT_GE(times.stepsUs()[lane], unchanged[lane] - 1e-6);
        else // it may be off where something is in flight, but it is no guess
          EXPECT_LE(std::abs((*estimate)[lane] - times.stepsUs()[lane]),
                    0.2 * unchanged[lane] + 1e-6);
      refused += !estimate;
      compare();
      if (random() % 3 == 0) {
        events.undo();
        update();
        times.keep(first);
        EXPECT_EQ(times.stepsUs(), unchanged);
        EXPECT_EQ(memory.peakBytes(), before);
        compare();
        ++undone;
      }
      events.keep();
    }
  }
  EXPECT_GT(buckets, 500u);
  EXPECT_GT(undone, 100u);
  EXPECT_GT(refused, 100u);
}

TEST(PlanEvents, ArithmeticComesBehindAllThatItNeeds) {
  // Sizes that depend on several kernels, one of them through another size.
  Builder b;
  auto scalar = [&](const char *name, std::vector<ValueId> operands) {
    ValueId value = b.graph.addScalar();
    b.graph.addNode(NodeClass::Scalar, name, operands, std::vector{value});
    return value;
  };
  ValueId x = b.input(10);
  ValueId size = scalar("sum", {b.kernel("a", {x}, 10, 10), b.kernel("b", {x}, 10, 10)});
  ValueId other = scalar("product", {size, b.kernel("c", {x}, 10, 10)});
  ValueId buffer = b.graph.addTensor(10);
  b.graph.addNode(NodeClass::Empty, "buffer", std::vector{other}, std::vector{buffer});
  b.output(b.inPlace("fill", {buffer}, 10));
  Graph graph = b.finish();
  Problem problem(graph);
  BucketKeys keys(problem, {});
  Decision decision = asItIs(graph);
  PlanEvents events(problem, keys, decision);
  TaskId fill = problem.taskOf[test::nodeNamed(graph, "fill")];
  ASSERT_NE(events.positionOf(fill), none);
  for (const char *name : {"a", "b", "c"})
    EXPECT_GT(events.lowest(fill), events.positionOf(problem.taskOf[test::nodeNamed(graph, name)]));
}

INSTANTIATE_TEST_SUITE_P(, PlanEventsTest, testing::Bool());

//===----------------------------------------------------------------------===//
// The search
//===----------------------------------------------------------------------===//

/// The step of the first scenario.
double nominal(std::span<const double> stepsUs) { return stepsUs.front(); }

std::optional<Decision> refined(const Graph &graph, const RefineOptions &options,
                                const Badness &badness = nominal) {
  Problem problem(graph);
  RoundModel model;
  return refine(problem, BucketKeys(problem, options.buckets), model, asItIs(graph),
                standardScenarios(graph, model), badness, options);
}

double stepUs(const Graph &graph, const Plan &plan) {
  return simulate(graph, plan, RoundModel()).stepUs;
}

/// Two small gathers are waited for one after the other, though a kernel could hide them.
Graph lateGathers() {
  Builder b;
  GroupId g = b.group("g", 2);
  ValueId x = b.kernel("first", {b.input(10)}, 100, 10);
  ValueId one = b.run("one", AG, g, b.input(10), 20);
  ValueId two = b.run("two", AG, g, b.input(10), 20);
  b.output(b.kernel("last", {x, one, two}, 10, 10));
  return b.finish();
}

TEST(Refine, StartsEarlyWhereThatHidesSomething) {
  Graph graph = lateGathers();
  std::optional<Decision> made = refined(graph, {.merge = false, .tries = 200});
  ASSERT_TRUE(made);
  EXPECT_EQ(checkPlan(graph, made->plan), "");
  EXPECT_TRUE(made->plan.buckets.empty());
  // The kernels and four launches.
  EXPECT_NEAR(stepUs(graph, made->plan), 110 + 4 * RoundModel().launchUs(), 1e-9);
}

TEST(Refine, MergesWhereThatIsShorter) {
  // Nothing can hide them, so that one latency is better than two.
  Builder b;
  GroupId g = b.group("g", 2);
  ValueId one = b.run("one", AG, g, b.input(1), 2);
  ValueId two = b.run("two", AG, g, b.input(1), 2);
  b.output(b.kernel("last", {one, two}, 10, 10));
  Graph graph = b.finish();
  std::optional<Decision> made = refined(graph, {.tries = 200});
  ASSERT_TRUE(made);
  EXPECT_EQ(checkPlan(graph, made->plan), "");
  EXPECT_EQ(made->plan.buckets.size(), 1u);
  EXPECT_EQ(made->closed, std::vector{CloseReason::Cost});
  EXPECT_EQ(made->capBytes, std::vector<uint64_t>{UINT64_MAX});
  EXPECT_LT(stepUs(graph, made->plan), stepUs(graph, identityPlan(graph)));
  // Not above a cap, and not where buckets have different caps.
  RefineOptions capped{.tries = 200};
  capped.buckets.caps = BucketCaps({3.0 / 1048576});
  EXPECT_FALSE(refined(graph, capped) && !refined(graph, capped)->plan.buckets.empty());
  capped.buckets.caps = BucketCaps({4.0 / 1048576});
  EXPECT_EQ(refined(graph, capped)->plan.buckets.size(), 1u);
  capped.buckets.caps = BucketCaps({4.0 / 1048576, 1});
  EXPECT_TRUE(!refined(graph, capped) || refined(graph, capped)->plan.buckets.empty());
}

TEST(Refine, MergesWhatNeedNotMove) {
  // Both are started, and both are waited for, where the bucket would be.
  Builder b;
  GroupId g = b.group("g", 2);
  ValueId one = b.start("one", AG, g, b.input(1), 2), two = b.start("two", AG, g, b.input(1), 2);
  ValueId x = b.kernel("first", {b.wait("w1", one), b.wait("w2", two)}, 10, 10);
  for (int i = 0; i != 100; ++i) // times are kept for every few of them
    x = b.kernel("next" + std::to_string(i), {x}, 10, 10);
  b.output(x);
  Graph graph = b.finish();
  std::optional<Decision> made = refined(graph, {.tries = 60});
  ASSERT_TRUE(made);
  EXPECT_EQ(checkPlan(graph, made->plan), "");
  EXPECT_EQ(made->plan.buckets.size(), 1u);
}

TEST(Refine, TakesBucketsApart) {
  // The kernel would hide both gathers, if they were not packed before it and unpacked behind it.
  Builder b;
  GroupId g = b.group("g", 2);
  ValueId one = b.start("one", AG, g, b.input(500), 1000);
  ValueId two = b.start("two", AG, g, b.input(500), 1000);
  ValueId x = b.kernel("long", {b.input(10)}, 5000, 10);
  b.output(b.kernel("last", {x, b.wait("one.wait", one), b.wait("two.wait", two)}, 10, 10));
  Graph graph = b.finish();
  Problem problem(graph);
  RoundModel model;
  auto node = [&](const char *name) { return test::nodeNamed(graph, name); };
  Decision start = asItIs(graph);
  start.plan = {{{PlanItem::Kind::Pack, 0},
                 {PlanItem::Kind::Start, 0},
                 {PlanItem::Kind::Op, node("long")},
                 {PlanItem::Kind::Wait, 0},
                 {PlanItem::Kind::Unpack, 0},
                 {PlanItem::Kind::Op, node("last")}},
                {{node("one"), node("two")}}};
  start.closed = {CloseReason::Complete};
  start.capBytes = {UINT64_MAX};
  ASSERT_EQ(checkPlan(graph, start.plan), "");
  std::optional<Decision> made = refine(problem, BucketKeys(problem, {}), model, start,
                                        standardScenarios(graph, model), nominal, {.tries = 500});
  ASSERT_TRUE(made);
  EXPECT_EQ(checkPlan(graph, made->plan), "");
  EXPECT_TRUE(made->plan.buckets.empty());
  EXPECT_NEAR(stepUs(graph, made->plan), stepUs(graph, identityPlan(graph)), 1e-9);
  // Without packing there is nothing to gain, and without merging nothing is taken apart.
  EXPECT_FALSE(refine(problem, BucketKeys(problem, {}), model, start,
                      standardScenarios(graph, model), nominal, {.flat = true, .tries = 500}));
  std::optional<Decision> ordered =
      refine(problem, BucketKeys(problem, {}), model, start, standardScenarios(graph, model),
             nominal, {.merge = false, .tries = 500});
  EXPECT_TRUE(!ordered || ordered->plan.buckets.size() == 1);
}

TEST(Refine, BadnessDecides) {
  // Packing the gathers takes longer on nominal times, where the kernel hides both, but not where
  // the network takes twice as long.
  Builder b;
  GroupId g = b.group("g", 2);
  std::vector<ValueId> started;
  for (const char *name : {"one", "two", "three", "four"})
    started.push_back(b.start(name, AG, g, b.input(1), 2));
  std::vector<ValueId> all = {b.kernel("first", {b.input(10)}, 60, 10)};
  for (ValueId value : started)
    all.push_back(b.wait("w" + std::to_string(value), value));
  b.output(b.kernel("last", all, 10, 10));
  Graph graph = b.finish();
  size_t slow = 3; // network x2
  ASSERT_EQ(standardScenarios(graph, RoundModel())[slow].network, 2);
  std::optional<Decision> fast = refined(graph, {.tries = 500});
  EXPECT_TRUE(!fast || fast->plan.buckets.empty());
  Badness atTwice = [&](std::span<const double> steps) { return steps[slow]; };
  std::optional<Decision> made = refined(graph, {.tries = 500}, atTwice);
  ASSERT_TRUE(made);
  EXPECT_FALSE(made->plan.buckets.empty());
  // What is of no use is not taken, however good it is elsewhere.
  double most = stepUs(graph, identityPlan(graph));
  Badness bounded = [&](std::span<const double> steps) {
    return steps[0] <= most ? steps[slow] : std::numeric_limits<double>::infinity();
  };
  std::optional<Decision> within = refined(graph, {.tries = 500}, bounded);
  EXPECT_LE(within ? stepUs(graph, within->plan) : 0, most);
}

TEST(Refine, KeepsToMemoryAndIsTheSameEachTime) {
  cost::SimV1 model;
  unsigned better = 0;
  for (uint32_t seed = 0; seed != 40; ++seed) {
    SCOPED_TRACE(seed);
    Graph graph = seed % 2 == 0 ? test::unseenGraph(test::unseenFamilies[seed % 10], seed, 80)
                                : test::randomGraph(seed);
    Problem problem(graph);
    std::vector<Scenario> scenarios = standardScenarios(graph, model);
    Decision start = asItIs(graph);
    for (bool flat : {false, true})
      for (uint64_t percent : {90, 100, 110}) {
        uint64_t peak = simulate(graph, start.plan, model, {flat}).peakHoldBytes;
        RefineOptions options{.flat = flat, .memoryLimit = peak / 100 * percent, .tries = 400};
        Badness mean = [](std::span<const double> steps) {
          return std::accumulate(steps.begin(), steps.end(), 0.0);
        };
        auto run = [&] {
          return refine(problem, BucketKeys(problem, {}), model, start, scenarios, mean, options);
        };
        std::optional<Decision> made = run();
        if (!made)
          continue;
        ++better;
        EXPECT_EQ(checkPlan(graph, made->plan), "");
        EXPECT_LE(simulate(graph, made->plan, model, {flat}).peakHoldBytes,
                  std::max(peak, options.memoryLimit));
        EXPECT_LT(mean(Replay(graph, made->plan, model, flat).stepsUs(scenarios)),
                  mean(Replay(graph, start.plan, model, flat).stepsUs(scenarios)));
        std::vector<NodeId> order = nodeOrder(graph, made->plan);
        EXPECT_EQ(order, nodeOrder(graph, run()->plan));
      }
  }
  EXPECT_GT(better, 100u);
}

} // namespace
