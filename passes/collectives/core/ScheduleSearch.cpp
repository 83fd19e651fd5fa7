// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/core/ScheduleSearch.h"

#include "passes/collectives/core/FormBuckets.h"
#include "passes/collectives/core/ListScheduler.h"
#include "passes/collectives/core/MemoryTracker.h"
#include "passes/collectives/core/Simulate.h"

#include <algorithm>
#include <limits>

using namespace shardc;
using namespace shardc::collectives;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Percent of the base order's peak that schedules are made for. A limit gets the best of all
/// schedules for the levels at or below it, so that more memory never makes a program slower.
constexpr uint64_t memoryLevels[] = {100, 102, 105, 110, 120, 150, 200, 400};

/// How often to start again from the order that takes least memory, if the limit is not met.
constexpr int maxRestarts = 3;

/// Windows of SchedulePolicy, in typical collectives.
constexpr double defer = 2, urgent = 2, prefetch = 16, early = 64;

struct MergeChoice {
  bool wide; // without windows
  double packShare, patience;
};
constexpr MergeChoice mergeChoices[] = {{false, 0.1, 1},   {false, 1, 4},     {false, 0.03, 0.5},
                                        {false, 0.3, 0.5}, {true, 0.01, 0.5}, {true, 0.1, 0.5},
                                        {true, 1, 4},      {true, 0.03, 0.5}};

/// How many orders and merge choices are tried for programs of up to so many tasks: the larger the
/// program, the less there is to gain from one more.
struct Effort {
  size_t tasks, orders, merges;
};
constexpr Effort efforts[] = {{6000, 6, 8}, {50000, 3, 5}, {SIZE_MAX, 1, 3}};

/// Tries schedules that start from one base order.
class Search {
public:
  Search(const Graph &graph, const cost::CostModel &model, const SearchOptions &options,
         std::span<const NodeId> order)
      : options(options), problem(graph, order), times(problem, model),
        programTimes(problem, times), keys(problem, options.buckets),
        program(makeReference(problem, times, ReferenceKind::Program)),
        longestPath(makeReference(problem, times, ReferenceKind::LongestPath)),
        input{problem, times,           programTimes,        model,
              keys,    options.buckets, options.memoryLimit, options.flat},
        typicalUs(typicalCollectiveUs()) {}

  void run() {
    uint64_t base = MemoryTracker(problem, UINT64_MAX, options.flat).basePeakBytes();
    for (uint64_t percent : memoryLevels) {
      uint64_t level = base / 100 * percent + base % 100 * percent / 100;
      // Schedules for the base order's own peak may come out below it.
      if ((level > options.memoryLimit && percent != 100) || tryLevel(level))
        break;
    }
  }

  /// The best that meets the limit, and until there is one what takes least memory.
  std::optional<ScheduleResult> best, leanest;
  unsigned candidates = 0;

  Decision decide() {
    Decision decision{std::move(best->plan), std::move(best->closed), std::move(best->capBytes),
                      std::vector(problem.graph.numNodes(), AloneReason::Cost)};
    for (TaskId task = 0; task != problem.numTasks(); ++task)
      decision.alone[problem.nodeOf[task]] = best->alone[task];
    return decision;
  }

private:
  /// Returns whether memory was no obstacle: higher levels would give the same schedules.
  bool tryLevel(uint64_t level) {
    input.memoryLimit = level;
    refusals = 0;
    const Effort *effort = efforts;
    while (effort->tasks < problem.numTasks())
      ++effort;
    std::vector<SchedulePolicy> policies = orders();
    policies.resize(effort->orders);
    for (const SchedulePolicy &policy : policies)
      tryPolicy(policy);
    if (!options.bucket || keys.numKeys() == 0)
      return refusals == 0;
    for (const MergeChoice &choice : std::span(mergeChoices).first(effort->merges)) {
      SchedulePolicy policy = policies.front();
      if (choice.wide)
        policy.prefetchUs = policy.earlyUs = infinity;
      policy.merge = true;
      policy.packShare = choice.packShare;
      policy.patience = choice.patience;
      tryPolicy(policy);
    }
    tryProgramOrder(level);
    return refusals == 0;
  }

  /// Ways to order kernels and starts, without merging.
  std::vector<SchedulePolicy> orders() const {
    SchedulePolicy narrow;
    narrow.reference = &program;
    narrow.deferUs = defer * typicalUs;
    narrow.urgentUs = urgent * typicalUs;
    narrow.prefetchUs = prefetch * typicalUs;
    narrow.earlyUs = prefetch * typicalUs;
    SchedulePolicy far = narrow;
    far.earlyUs = early * typicalUs;
    SchedulePolicy wide = narrow;
    wide.earlyUs = wide.prefetchUs = infinity;
    SchedulePolicy inOrder = wide, latest = wide, longest = wide;
    inOrder.deferUs = 0;
    latest.deferUs = infinity;
    longest.reference = &longestPath;
    return {narrow, wide, far, inOrder, latest, longest};
  }

  void tryPolicy(const SchedulePolicy &policy) { consider(listSchedule(input, policy)); }

  /// Buckets filled in program order, without regard to what they hide: the best where latency is
  /// all there is to gain.
  void tryProgramOrder(uint64_t level) {
    FormOptions form;
    form.buckets = options.buckets;
    form.memoryLimit = level;
    form.flat = options.flat;
    FormResult formed = formBuckets(problem, input.model, keys, form);
    Figures figures = simulate(problem.graph, formed.plan, input.model, {options.flat});
    uint64_t refused = std::count(formed.closed.begin(), formed.closed.end(), CloseReason::Memory) +
                       std::count(formed.alone.begin(), formed.alone.end(), AloneReason::Memory);
    consider({std::move(formed.plan), figures.stepUs, figures.peakHoldBytes, refused,
              std::move(formed.closed), std::move(formed.capBytes), std::move(formed.alone)});
  }

  void consider(ScheduleResult result) {
    ++candidates;
    refusals += result.memoryRefusals;
    auto key = [](const ScheduleResult &r) { return std::pair(r.stepUs, r.peakBytes); };
    if (result.peakBytes <= options.memoryLimit) {
      if (!best || key(result) < key(*best))
        best = std::move(result);
    } else if (!best && (!leanest || result.peakBytes < leanest->peakBytes)) {
      leanest = std::move(result);
    }
  }

  /// The mean over collectives, weighted by time: what there is to hide at once.
  double typicalCollectiveUs() const {
    double sum = 0, squares = 0;
    for (TaskId task = 0; task != problem.numTasks(); ++task)
      if (problem.isCollective(task)) {
        sum += times.us[task];
        squares += times.us[task] * times.us[task];
      }
    return sum == 0 ? 0 : squares / sum;
  }

  const SearchOptions &options;
  Problem problem;
  TaskTimes times;
  ProgramTimes programTimes;
  BucketKeys keys;
  Reference program, longestPath;
  ScheduleInput input;
  double typicalUs;
  uint64_t refusals = 0;
};

} // namespace

SearchResult shardc::collectives::searchSchedules(const Graph &graph, const cost::CostModel &model,
                                                  const SearchOptions &options) {
  SearchResult result;
  std::vector<NodeId> order;
  for (int restarts = 0;; ++restarts) {
    Search search(graph, model, options, order);
    search.run();
    result.candidates += search.candidates;
    if (search.best) {
      result.leastPeakBytes = std::min(result.leastPeakBytes, search.best->peakBytes);
      result.best = search.decide();
      return result;
    }
    if (search.leanest->peakBytes >= result.leastPeakBytes || restarts == maxRestarts)
      return result;
    result.leastPeakBytes = search.leanest->peakBytes;
    order = nodeOrder(graph, search.leanest->plan);
  }
}
