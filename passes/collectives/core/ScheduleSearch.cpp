// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/core/ScheduleSearch.h"

#include "passes/collectives/core/FormBuckets.h"
#include "passes/collectives/core/LeanOrders.h"
#include "passes/collectives/core/ListScheduler.h"
#include "passes/collectives/core/MemoryTracker.h"
#include "passes/collectives/core/SchedulePolicies.h"
#include "passes/collectives/core/Simulate.h"

#include <algorithm>

using namespace shardc;
using namespace shardc::collectives;

namespace {

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

/// Choices that are tried at each level, however large the program is.
constexpr size_t leastChoices = 4, leastFurtherChoices = 2;

/// Schedules that a search from one order needs that should be one of several.
constexpr size_t wholeSearch = 50;

/// For how many levels the work that is allowed should suffice.
constexpr size_t levelsToTry = 2;

/// Percent of the program's peak at which an order is worth a search of its own.
constexpr uint64_t notablyLess = 98;

/// How often to start again from the order that takes least memory, if the limit is not met.
constexpr int maxRestarts = 3;

struct Cost {
  explicit Cost(const ScheduleResult &result)
      : stepUs(result.stepUs), peakBytes(result.peakBytes) {}
  double stepUs;
  uint64_t peakBytes;
};

bool isBetter(const SearchOptions &options, const Cost &result, const Cost &than) {
  if (result.peakBytes > std::max(options.freeBytes, than.peakBytes))
    return result.stepUs < worthMemory * than.stepUs;
  if (than.peakBytes > std::max(options.freeBytes, result.peakBytes))
    return than.stepUs >= worthMemory * result.stepUs;
  if (result.stepUs < than.stepUs * (1 - stepRounding))
    return true;
  return result.stepUs <= than.stepUs && result.peakBytes < than.peakBytes;
}

/// Tries schedules that start from one base order.
class Search {
public:
  Search(const Graph &graph, const cost::CostModel &model, const SearchOptions &options,
         std::span<const NodeId> order)
      : options(options), problem(graph, order),
        choices((order.empty() ? options.work : options.work / 3) /
                std::max<size_t>(problem.numSteps, 1)),
        times(problem, model), programTimes(problem, times), keys(problem, options.buckets),
        program(makeReference(problem, times, ReferenceKind::Program)),
        longestPath(makeReference(problem, times, ReferenceKind::LongestPath)),
        input{problem, times,           programTimes,        model,
              keys,    options.buckets, options.memoryLimit, options.flat},
        merge(options.bucket && keys.numKeys() != 0) {
    for (SchedulePolicy &policy : schedulePolicies(
             {problem, model, times, program, longestPath, merge, keys, options.packingUs}))
      schedules.push_back({std::move(policy)});
  }

  void run() {
    uint64_t base = MemoryTracker(problem, UINT64_MAX, options.flat).basePeakBytes();
    bool everyLevel = options.everyLevel;
    if (options.limitFirst && everyLevel)
      everyLevel =
          (1 + std::ranges::count_if(
                   levels(base), [&](uint64_t level) { return level <= options.memoryLimit; })) *
              schedules.size() <=
          choices;
    limitChoices();
    if (!everyLevel) {
      tryLevel(std::max(base, options.memoryLimit));
      return;
    }
    // Schedules for the base order's own peak may come out below it.
    if (tryLevel(base))
      return;
    keepBestChoices();
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
  /// Leaves as many choices as there is work for, of all kinds.
  void limitChoices() {
    size_t count = std::max(choices, leastChoices);
    if (count >= schedules.size())
      return;
    for (size_t i = 0; i != count; ++i)
      if (size_t from = i * schedules.size() / count; from != i)
        schedules[i] = std::move(schedules[from]);
    schedules.resize(count);
  }

  /// Leaves for each further level what there is still work for: the choices whose schedules were
  /// the shortest.
  void keepBestChoices() {
    size_t left = choices - std::min<size_t>(choices, candidates);
    size_t count = std::max(left / levelsToTry, leastFurtherChoices);
    if (count >= schedules.size())
      return;
    std::vector<double> steps;
    for (const Candidate &candidate : schedules)
      steps.push_back(candidate.stepUs);
    std::nth_element(steps.begin(), steps.begin() + (count - 1), steps.end());
    formSettled = formSettled || formUs > steps[count - 1];
    std::erase_if(schedules, [&, longest = steps[count - 1]](const Candidate &candidate) {
      return candidate.stepUs > longest || count == 0 || count-- == 0;
    });
  }

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
    bool settled = true;
    for (Candidate &candidate : schedules) {
      if (candidate.settled)
        continue;
      ScheduleResult schedule = listSchedule(input, candidate.policy);
      candidate.settled = schedule.memoryRefusals == 0;
      settled &= candidate.settled;
      candidate.stepUs = schedule.stepUs;
      consider(std::move(schedule));
    }
    if (merge && !formSettled) {
      ScheduleResult form = formInProgramOrder(level);
      formSettled = form.memoryRefusals == 0;
      formUs = form.stepUs;
      settled &= formSettled;
      consider(std::move(form));
    }
    return settled;
  }

  /// Buckets filled in program order, without regard to what they hide: the best where latency is
  /// all there is to gain.
  ScheduleResult formInProgramOrder(uint64_t level) {
    FormOptions form;
    form.buckets = options.buckets;
    form.memoryLimit = level;
    form.flat = options.flat;
    FormResult formed = formBuckets(problem, input.model, keys, form);
    Figures figures = simulate(problem.graph, formed.plan, input.model, {options.flat});
    uint64_t refused = std::count(formed.closed.begin(), formed.closed.end(), CloseReason::Memory) +
                       std::count(formed.alone.begin(), formed.alone.end(), AloneReason::Memory);
    return {std::move(formed.plan),
            figures.stepUs,
            figures.peakHoldBytes,
            level,
            refused,
            std::move(formed.closed),
            std::move(formed.capBytes),
            std::move(formed.alone)};
  }

  void consider(ScheduleResult result) {
    ++candidates;
    result.level = input.memoryLimit;
    if (result.peakBytes <= options.memoryLimit) {
      if (options.visit)
        options.visit(problem, result);
      if (!best || isBetter(options, Cost(result), Cost(*best)))
        best = std::move(result);
    } else if (!best && (!leanest || result.peakBytes < leanest->peakBytes)) {
      leanest = std::move(result);
    }
  }

  const SearchOptions &options;
  Problem problem;
  /// How many schedules there is work for; a third where the order is not the program's.
  size_t choices;
  TaskTimes times;
  ProgramTimes programTimes;
  BucketKeys keys;
  Reference program, longestPath;
  ScheduleInput input;
  bool merge;
  /// A policy that met no obstacle at one level makes the same schedule at all higher ones.
  struct Candidate {
    SchedulePolicy policy;
    bool settled = false;
    double stepUs = 0; // of its last schedule
  };
  std::vector<Candidate> schedules;
  bool formSettled = false;
  double formUs = 0; // of the last schedule that was formed in program order
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

/// The leanest order that is known, if it takes less than `bytes`; sets them to its peak.
static std::optional<std::vector<NodeId>> leanestOrder(const Problem &problem, uint64_t &bytes) {
  std::optional<std::vector<TaskId>> leanest;
  for (LeanOrder kind : leanOrders) {
    std::vector<TaskId> order = leanOrder(problem, kind);
    if (uint64_t peak = peakOfOrder(problem, order); peak < bytes) {
      bytes = peak;
      leanest = std::move(order);
    }
  }
  return leanest ? std::optional(nodesInOrder(problem, *leanest)) : std::nullopt;
}

/// The orders to start from: that of the program (an empty one) and, if that takes too much, the
/// leanest that is known. One that was made to hide communication steers the search less well than
/// it would without, so that the leanest comes second where it takes notably less.
static std::vector<std::vector<NodeId>> firstOrders(const Graph &graph,
                                                    const SearchOptions &options) {
  Problem problem(graph);
  uint64_t bytes = MemoryTracker(problem, UINT64_MAX, options.flat).basePeakBytes();
  bool fits = bytes <= options.memoryLimit;
  std::vector<std::vector<NodeId>> orders(1);
  if (fits)
    bytes = bytes / 100 * notablyLess;
  if (auto lean = leanestOrder(problem, bytes)) {
    if (!fits)
      orders.clear();
    orders.push_back(std::move(*lean));
  }
  return orders;
}

SearchResult shardc::collectives::searchSchedules(const Graph &graph, const cost::CostModel &model,
                                                  const SearchOptions &options) {
  SearchResult result;
  std::optional<Plan> leanest;
  std::optional<Cost> best;
  auto searchFrom = [&](std::span<const NodeId> order) {
    Search search(graph, model, options, order);
    search.run();
    result.candidates += search.candidates;
    if (!search.best) {
      if (search.leanest->peakBytes < result.leastPeakBytes) {
        result.leastPeakBytes = search.leanest->peakBytes;
        leanest = std::move(search.leanest->plan);
      }
    } else if (Cost cost(*search.best); !best || isBetter(options, cost, *best)) {
      best = cost;
      result.leastPeakBytes = cost.peakBytes;
      result.best = search.decide();
    }
  };
  for (const std::vector<NodeId> &order : firstOrders(graph, options)) {
    searchFrom(order);
    if (result.best && options.limitFirst && options.work < wholeSearch * graph.numNodes())
      break;
  }
  for (int restarts = 0; !result.best && leanest && restarts != maxRestarts; ++restarts) {
    std::vector<NodeId> order = nodeOrder(graph, *leanest);
    leanest.reset();
    searchFrom(order);
  }
  return result;
}
