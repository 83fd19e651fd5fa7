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

/// Percent of the base order's peak that schedules are made for, beside that peak itself; from
/// there on doubled until memory is no obstacle. A limit gets the best of all schedules for the
/// levels at or below it, so that more memory never makes a program slower.
constexpr uint64_t memoryLevels[] = {102, 105, 110, 120, 150, 200};
/// Levels of their own, unless they are among the lowest above: room for so many collectives of the
/// largest size beside the base order's peak.
constexpr uint64_t collectivesAhead[] = {1, 2};
constexpr uint64_t leastLevelAhead = 102;

/// More than any program takes; a program that takes nothing needs no second level.
constexpr uint64_t largestLevel = uint64_t(1) << 60;

/// By how much a schedule must be shorter to be worth more memory than is free.
constexpr double worthMemory = 0.99;

/// Steps that differ by less are equal: the same kernels, added in another order.
constexpr double rounding = 1e-9;

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
    if (!options.everyLevel) {
      tryLevel(std::max(base, options.memoryLimit));
      return;
    }
    // Schedules for the base order's own peak may come out below it.
    if (tryLevel(base))
      return;
    uint64_t last = base;
    for (uint64_t level : levels(base)) {
      if (level > options.memoryLimit || tryLevel(level))
        return;
      last = level;
    }
    for (; last != 0 && last <= options.memoryLimit / 2 && last <= largestLevel; last *= 2)
      if (tryLevel(2 * last))
        return;
  }

  /// The best that meets the limit, and until there is one what takes least memory.
  std::optional<ScheduleResult> best, leanest;
  unsigned candidates = 0;

  Decision decide() { return toDecision(problem, std::move(*best)); }

private:
  /// Those above the base order's peak, ascending.
  std::vector<uint64_t> levels(uint64_t base) const {
    auto part = [&](uint64_t percent) { return base / 100 * percent + base % 100 * percent / 100; };
    std::vector<uint64_t> bytes;
    for (uint64_t percent : memoryLevels)
      bytes.push_back(part(percent));
    uint64_t largest = largestInFlightBytes(problem.graph);
    for (uint64_t count : collectivesAhead)
      if (uint64_t level = part(leastLevelAhead) + count * largest; largest > base / 50)
        bytes.push_back(level);
    std::sort(bytes.begin(), bytes.end());
    bytes.erase(std::unique(bytes.begin(), bytes.end()), bytes.end());
    bytes.erase(bytes.begin(), std::upper_bound(bytes.begin(), bytes.end(), base));
    return bytes;
  }

  /// Returns whether memory was no obstacle: higher levels would give the same schedules.
  bool tryLevel(uint64_t level) {
    input.memoryLimit = level;
    refusals = 0;
    const Effort *effort = efforts;
    while (effort->tasks < problem.numTasks())
      ++effort;
    std::vector<SchedulePolicy> policies = orders();
    policies.resize(effort->orders);
    const SchedulePolicy first = policies.front();
    // Of schedules that take equally long, the one in the order of the program is kept: what is
    // produced first is sent first, whatever the link turns out to be.
    std::stable_partition(policies.begin(), policies.end(),
                          [](const SchedulePolicy &policy) { return policy.deferUs == 0; });
    for (const SchedulePolicy &policy : policies)
      tryPolicy(policy);
    if (!options.bucket || keys.numKeys() == 0)
      return refusals == 0;
    for (const MergeChoice &choice : std::span(mergeChoices).first(effort->merges)) {
      SchedulePolicy policy = first;
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
    if (result.peakBytes <= options.memoryLimit) {
      if (options.visit)
        options.visit(problem, result);
      if (!best || isBetter(result, *best))
        best = std::move(result);
    } else if (!best && (!leanest || result.peakBytes < leanest->peakBytes)) {
      leanest = std::move(result);
    }
  }

  bool isBetter(const ScheduleResult &result, const ScheduleResult &than) const {
    if (result.peakBytes > std::max(options.freeBytes, than.peakBytes))
      return result.stepUs < worthMemory * than.stepUs;
    if (than.peakBytes > std::max(options.freeBytes, result.peakBytes))
      return than.stepUs >= worthMemory * result.stepUs;
    if (result.stepUs < than.stepUs * (1 - rounding))
      return true;
    return result.stepUs <= than.stepUs && result.peakBytes < than.peakBytes;
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

Decision shardc::collectives::toDecision(const Problem &problem, ScheduleResult result) {
  Decision decision{std::move(result.plan), std::move(result.closed), std::move(result.capBytes),
                    std::vector(problem.graph.numNodes(), AloneReason::Cost)};
  for (TaskId task = 0; task != problem.numTasks(); ++task)
    decision.alone[problem.nodeOf[task]] = result.alone[task];
  return decision;
}

uint64_t shardc::collectives::largestInFlightBytes(const Graph &graph) {
  uint64_t largest = 0;
  std::vector<bool> isInput(graph.numValues());
  for (ValueId value : graph.graphInputs())
    isInput[value] = true;
  for (NodeId node = 0; node != graph.numNodes(); ++node) {
    if (!graph.isCollective(node))
      continue;
    uint64_t bytes = 0;
    for (ValueId result : graph.results(node))
      bytes += graph.isInPlace(result) ? 0 : graph.bytesOf(result);
    for (ValueId operand : graph.operands(node))
      bytes += isInput[graph.rootOf(operand)] ? 0 : graph.bytesOf(operand);
    largest = std::max(largest, bytes);
  }
  return largest;
}

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
