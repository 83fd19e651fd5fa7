// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a search may take: however little it is, there is a plan, it is none the worse for having
// been searched for, and more is never worse.
#include "passes/collectives/core/CheckPlan.h"
#include "passes/collectives/core/Refine.h"
#include "passes/collectives/core/Simulate.h"
#include "passes/cost/core/SimV1.h"
#include "test/unit/passes/collectives/RandomGraph.h"
#include "test/unit/passes/collectives/UnseenGraphs.h"

#include <numeric>

using namespace shardc;
using namespace shardc::collectives;

namespace {

const cost::SimV1 model;

Graph graphOf(uint32_t seed, size_t nodes) {
  return seed % 2 == 0 ? test::unseenGraph(test::unseenFamilies[seed / 2 % 10], seed, nodes)
                       : test::randomGraph(seed, {unsigned(nodes), 2, true});
}

TEST(Budget, ASearchOfAnyLengthGivesAPlan) {
  unsigned fewer = 0;
  for (uint32_t seed = 0; seed != 40; ++seed) {
    SCOPED_TRACE(seed);
    Graph graph = graphOf(seed, 120);
    Figures before = simulate(graph, model);
    unsigned all = 0;
    for (size_t work : {size_t(0), size_t(1), size_t(500), SIZE_MAX}) {
      SCOPED_TRACE(work);
      SearchOptions options;
      options.memoryLimit = before.peakHoldBytes + before.peakHoldBytes / 50;
      options.work = work;
      SearchResult result = searchSchedules(graph, model, options);
      ASSERT_TRUE(result.best);
      EXPECT_EQ(checkPlan(graph, result.best->plan), "");
      Figures after = simulate(graph, result.best->plan, model);
      EXPECT_LE(after.peakHoldBytes, options.memoryLimit);
      EXPECT_EQ(nodeOrder(graph, result.best->plan),
                nodeOrder(graph, searchSchedules(graph, model, options).best->plan));
      if (work == 0)
        all = result.candidates;
      else
        EXPECT_GE(result.candidates, all);
      fewer += work == SIZE_MAX && result.candidates > all;
    }
  }
  EXPECT_GT(fewer, 30u);
}

/// What is tried under a limit is tried under each higher one, also where little may be tried.
TEST(Budget, MoreMemoryIsNeverSlower) {
  unsigned shorter = 0;
  for (uint32_t seed = 0; seed != 30; ++seed) {
    SCOPED_TRACE(seed);
    Graph graph = graphOf(seed, 100);
    uint64_t peak = simulate(graph, model).peakHoldBytes;
    for (size_t work : {0, 1000, 4000}) {
      double last = std::numeric_limits<double>::infinity();
      for (uint64_t percent = 100; percent <= 200; percent += 10) {
        SearchOptions options;
        options.memoryLimit = peak / 100 * percent + peak % 100;
        options.work = work;
        SearchResult result = searchSchedules(graph, model, options);
        ASSERT_TRUE(result.best);
        double step = simulate(graph, result.best->plan, model).stepUs;
        EXPECT_LE(step, last * (1 + 1e-12)) << work << " " << percent;
        shorter += step < last;
        last = step;
      }
    }
  }
  EXPECT_GT(shorter, 90u);
}

double sum(std::span<const double> stepsUs) {
  return std::accumulate(stepsUs.begin(), stepsUs.end(), 0.0);
}

struct Refining {
  explicit Refining(Graph made)
      : graph(std::move(made)), problem(graph), scenarios(standardScenarios(graph, model)),
        start{{}, {}, {}, std::vector(graph.numNodes(), AloneReason::Cost)} {
    for (NodeId node = 0; node != graph.numNodes(); ++node)
      if (!graph.isFree(node)) // these run when they are needed
        start.plan.items.push_back({PlanItem::Kind::Op, node});
  }

  Plan run(const RefineOptions &options, const Badness &badness = sum) const {
    std::optional<Decision> made =
        refine(problem, BucketKeys(problem, {}), model, start, scenarios, badness, options);
    EXPECT_TRUE(!made || checkPlan(graph, made->plan) == "");
    return made ? made->plan : start.plan;
  }
  double badnessOf(const Plan &plan) const {
    return sum(Replay(graph, plan, model).stepsUs(scenarios));
  }
  uint64_t peakOf(const Plan &plan) const { return simulate(graph, plan, model).peakHoldBytes; }

  Graph graph;
  Problem problem;
  std::vector<Scenario> scenarios;
  Decision start;
};

/// The same changes are tried in the same order, however many: with a larger budget the plan is
/// what it was with the smaller one, and then better or the same.
TEST(Budget, MoreChangesAreNeverWorse) {
  unsigned better = 0;
  for (uint32_t seed = 0; seed != 20; ++seed) {
    SCOPED_TRACE(seed);
    Refining refining(graphOf(seed, 100));
    double before = refining.badnessOf(refining.start.plan);
    auto rising = [&](auto set) {
      double last = before;
      for (size_t budget : {0, 1, 3, 10, 30, 100, 300, 1000, 10000}) {
        RefineOptions options{.tries = 600};
        set(options, budget);
        Plan plan = refining.run(options);
        double now = refining.badnessOf(plan);
        EXPECT_LE(now, last * (1 + 1e-12)) << budget;
        better += now < last;
        last = now;
        EXPECT_EQ(nodeOrder(refining.graph, plan),
                  nodeOrder(refining.graph, refining.run(options)));
      }
    };
    rising([](RefineOptions &options, size_t budget) { options.tries = budget; });
    rising([](RefineOptions &options, size_t budget) { options.failures = budget; });
    rising([](RefineOptions &options, size_t budget) { options.events = budget; });
    // What takes no tries, no failures or no time is the plan as it was given.
    for (const RefineOptions &none :
         {RefineOptions{.tries = 0}, RefineOptions{.tries = 600, .failures = 0},
          RefineOptions{.tries = 600, .events = 0}})
      EXPECT_EQ(refining.badnessOf(refining.run(none)), before);
  }
  EXPECT_GT(better, 60u);
}

/// A plan may take what it takes already, even where that is more than the limit, and no more.
TEST(Budget, RefinementKeepsToThePlansOwnPeakOrToTheLimit) {
  unsigned better = 0, larger = 0;
  for (uint32_t seed = 0; seed != 30; ++seed) {
    SCOPED_TRACE(seed);
    Refining refining(graphOf(seed, 80));
    uint64_t peak = refining.peakOf(refining.start.plan);
    Plan atPeak = refining.run({.memoryLimit = peak, .tries = 600});
    EXPECT_LE(refining.peakOf(atPeak), peak);
    better += refining.badnessOf(atPeak) < refining.badnessOf(refining.start.plan);
    // A limit below is as one at the peak.
    for (uint64_t below : {uint64_t(0), peak / 2, peak - 1})
      EXPECT_EQ(nodeOrder(refining.graph, refining.run({.memoryLimit = below, .tries = 600})),
                nodeOrder(refining.graph, atPeak));
    Plan above = refining.run({.memoryLimit = 2 * peak, .tries = 600});
    EXPECT_LE(refining.peakOf(above), 2 * peak);
    larger += refining.peakOf(above) > peak;
  }
  EXPECT_GT(better, 15u);
  EXPECT_GT(larger, 5u);
}

} // namespace
