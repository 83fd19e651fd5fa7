// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Redistribution as a sequence of steps (R1, R2).
#ifndef SHARDC_PASSES_REDISTRIBUTE_CORE_PLANNER_H
#define SHARDC_PASSES_REDISTRIBUTE_CORE_PLANNER_H

#include "passes/redistribute/core/StepCost.h"

namespace shardc {

struct RedistributePlan {
  std::vector<RedistributeStep> steps;
  std::vector<std::string> errors; ///< not empty: the plan is not usable, and why
  size_t expanded = 0;             ///< layouts whose next steps the search looked at
};

/// The greedy decomposition: takes dims apart inner to outer and puts them together outer to inner,
/// the step that leaves the least data first: slices, then reduce-scatters, all-to-alls,
/// all-reduces, all-gathers. Steps of one kind in a row are merged where one collective does them.
/// It never re-splits a dim, and knows no exchanges.
RedistributePlan planGreedily(const Layout &from, const Layout &to, std::span<const int64_t> shape);

struct PlannerOptions {
  cost::LinkCosts links;   ///< of the layouts' mesh
  int64_t elementSize = 4; ///< bytes
  CostOptions sizes;
  /// Layouts that the search looks at before it takes the best sequence that it has: a bound on its
  /// work. Exhausted only on meshes with many axes.
  size_t maxExpanded = 4096;
};

/// The cheapest sequence: the shortest path over layouts, where a step costs its latency and its
/// bytes. Ties go to the least memory (what a rank holds before and after a step, once where it
/// works in place; the most of any step), then to fewer steps, then to the order in which steps are
/// tried, which is fixed. Never dearer than the greedy sequence. Where a size is not known, only
/// steps that are right for every size are taken.
RedistributePlan planCheapest(const Layout &from, const Layout &to, std::span<const int64_t> shape,
                              const PlannerOptions &options = {});

/// From a layout of one mesh to a layout of another (R3): what is partial is reduced where it is,
/// one exchange brings every rank the elements that it lacks, and what is to be partial becomes so
/// where it has come. `there` has the links of the other mesh. Needs the size of every dim that
/// either layout splits.
RedistributePlan planBetweenMeshes(const Layout &from, const Layout &to,
                                   std::span<const int64_t> shape,
                                   const PlannerOptions &options = {},
                                   const PlannerOptions &there = {});

/// Bytes that a rank sends where bytes alone decide, on one mesh or between two; infinite where no
/// sequence leads there. Whoever weighs a redistribution before it is planned asks this.
double cheapestBytes(const Layout &from, const Layout &to, std::span<const int64_t> shape,
                     int64_t elementSize);

/// What is wrong with the ends of a redistribution; empty when it can be planned.
std::vector<std::string> checkEnds(const Layout &from, const Layout &to,
                                   std::span<const int64_t> shape);

/// Joins steps of one kind in a row where one collective does them all.
std::vector<RedistributeStep> mergeSteps(std::vector<RedistributeStep> steps,
                                         std::span<const int64_t> shape);

/// What a sequence costs: comparisons go member by member.
struct PlanCost {
  int64_t time = 0;  ///< picoseconds: whole numbers, so that sums do not depend on their order
  double memory = 0; ///< bytes
  size_t steps = 0;
  auto operator<=>(const PlanCost &) const = default;
};
/// Microseconds in the unit of PlanCost.
int64_t ticksOf(double us);
PlanCost costOf(const RedistributeStep &step, std::span<const int64_t> shape,
                const PlannerOptions &options);
PlanCost costOf(std::span<const RedistributeStep> steps, std::span<const int64_t> shape,
                const PlannerOptions &options);

} // namespace shardc

#endif // SHARDC_PASSES_REDISTRIBUTE_CORE_PLANNER_H
