// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which of several sequences that cost the same time the planner takes, and which steps become one.
#include "passes/redistribute/core/Planner.h"

#include <gtest/gtest.h>

using namespace shardc;
using Shape = std::vector<int64_t>;
using Text = std::vector<std::string>;

static const Mesh kMesh({{"a", 2}, {"b", 2}});

static Layout layoutOf(const char *text) { return *parseLayout(kMesh, text).value; }

static Text textOf(const std::vector<RedistributeStep> &steps) {
  Text result;
  for (const RedistributeStep &step : steps)
    result.push_back(step.str());
  return result;
}
static Text cheapest(const char *from, const char *to, Shape shape, PlannerOptions options = {}) {
  return textOf(planCheapest(layoutOf(from), layoutOf(to), shape, options).steps);
}

/// Steps through these layouts.
static std::vector<RedistributeStep>
stepsThrough(std::vector<std::pair<StepKind, const char *>> way, const char *from,
             const Shape &shape) {
  std::vector<RedistributeStep> steps;
  Layout at = layoutOf(from);
  for (auto [kind, text] : way) {
    std::string why;
    std::optional<RedistributeStep> step = makeStep(kind, at, layoutOf(text), shape, why);
    EXPECT_TRUE(step) << text << ": " << why;
    if (!step)
      return {};
    at = step->after;
    steps.push_back(*step);
  }
  return steps;
}

// Nothing is sent either way. First the slice: a rank has at most a half and a quarter at once.
// First the zeros: a half and the whole.
TEST(PlanTies, GoToLessMemory) { // (R2)
  Shape shape{8, 8};
  const double whole = 8 * 8 * 4;
  std::vector<RedistributeStep> sliceFirst =
      stepsThrough({{StepKind::Slice, "[S(0), S(1)]"}, {StepKind::ZeroFill, "[P(sum), S(1)]"}},
                   "[S(0), R]", shape);
  std::vector<RedistributeStep> zerosFirst =
      stepsThrough({{StepKind::ZeroFill, "[P(sum), R]"}, {StepKind::Slice, "[P(sum), S(1)]"}},
                   "[S(0), R]", shape);
  PlanCost less = costOf(sliceFirst, shape, {}), more = costOf(zerosFirst, shape, {});
  EXPECT_EQ(less.time, more.time);
  EXPECT_EQ(less.steps, more.steps);
  EXPECT_EQ(less.memory, whole * 3 / 4);
  EXPECT_EQ(more.memory, whole * 3 / 2);
  EXPECT_EQ(cheapest("[S(0), R]", "[P(sum), S(1)]", shape), textOf(sliceFirst));
  // The same with the axes the other way round: it is not the order in which steps are tried.
  EXPECT_EQ(cheapest("[R, S(0)]", "[S(1), P(sum)]", shape),
            textOf(stepsThrough(
                {{StepKind::Slice, "[S(1), S(0)]"}, {StepKind::ZeroFill, "[S(1), P(sum)]"}},
                "[R, S(0)]", shape)));
}

TEST(PlanTies, MemoryCountsBeforeSteps) {
  EXPECT_LT((PlanCost{1, 5, 3}), (PlanCost{1, 6, 1}));
  EXPECT_LT((PlanCost{1, 5, 1}), (PlanCost{1, 5, 3}));
  EXPECT_LT((PlanCost{1, 9, 9}), (PlanCost{2, 0, 0}));
  // A collective that works in place holds the tensor once.
  std::vector<RedistributeStep> inPlace =
      stepsThrough({{StepKind::AllReduce, "[R, R]"}}, "[P(sum), R]", {8, 8});
  EXPECT_EQ(costOf(inPlace, Shape{8, 8}, {}).memory, 8 * 8 * 4);
}

TEST(PlanMerge, StepsOfOneKindAreOneCollective) { // (R2)
  Shape shape{8, 8};
  auto merged = [&](std::vector<std::pair<StepKind, const char *>> way, const char *from) {
    return textOf(mergeSteps(stepsThrough(std::move(way), from, shape), shape));
  };
  EXPECT_EQ(
      merged({{StepKind::AllGather, "[S(0), R]"}, {StepKind::AllGather, "[R, R]"}}, "[S(0), S(0)]"),
      Text{"all_gather dim 0 over a, b: [S(0), S(0)] -> [R, R]"});
  EXPECT_EQ(merged({{StepKind::AllReduce, "[R, P(sum)]"}, {StepKind::AllReduce, "[R, R]"}},
                   "[P(sum), P(sum)]"),
            Text{"all_reduce sum over a, b: [P(sum), P(sum)] -> [R, R]"});
  EXPECT_EQ(merged({{StepKind::ReduceScatter, "[S(0), P(sum)]"},
                    {StepKind::ReduceScatter, "[S(0), S(0)]"}},
                   "[P(sum), P(sum)]"),
            Text{"reduce_scatter sum dim 0 over a, b: [P(sum), P(sum)] -> [S(0), S(0)]"});
  // Of different dims, or in different ways, they are not one.
  EXPECT_EQ(
      merged({{StepKind::AllGather, "[S(0), R]"}, {StepKind::AllGather, "[R, R]"}}, "[S(0), S(1)]")
          .size(),
      2u);
  EXPECT_EQ(merged({{StepKind::AllReduce, "[R, P(max)]"}, {StepKind::AllReduce, "[R, R]"}},
                   "[P(sum), P(max)]")
                .size(),
            2u);
}

TEST(PlanMerge, PlansHaveOneStepWhereOneGroupDoes) { // (R2)
  PlannerOptions slow;                               // a latency that is worth many bytes
  slow.links = cost::LinkCosts({{100, 1}, {100, 1}});
  for (const PlannerOptions &options : {PlannerOptions(), slow}) {
    EXPECT_EQ(cheapest("[S(0), S(0)]", "[R, R]", {8, 8}, options),
              Text{"all_gather dim 0 over a, b: [S(0), S(0)] -> [R, R]"});
    EXPECT_EQ(cheapest("[P(sum), P(sum)]", "[S(1), S(1)]", {8, 8}, options),
              Text{"reduce_scatter sum dim 1 over a, b: [P(sum), P(sum)] -> [S(1), S(1)]"});
    EXPECT_EQ(cheapest("[P(max), P(max)]", "[R, R]", {8, 8}, options),
              Text{"all_reduce max over a, b: [P(max), P(max)] -> [R, R]"});
    // Two all-to-alls, one for each axis, are one exchange.
    EXPECT_EQ(cheapest("[S(0), S(0)]", "[S(1), S(1)]", {8, 8}, options),
              Text{"exchange over a, b: [S(0), S(0)] -> [S(1), S(1)]"});
    EXPECT_EQ(cheapest("[S(0), S(1)]", "[S(1), S(0)]", {8, 8}, options),
              Text{"exchange over a, b: [S(0), S(1)] -> [S(1), S(0)]"});
  }
}
