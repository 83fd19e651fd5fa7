// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/core/Refine.h"

#include "passes/collectives/core/EventMemory.h"
#include "passes/collectives/core/EventTimes.h"
#include "support/SplitMix.h"

#include <algorithm>
#include <cmath>

using namespace shardc;
using namespace shardc::collectives;

namespace {

/// How far something moves at most, and how far away partners are looked for, in events.
constexpr uint32_t reach = 512;

/// A change must make a plan less bad by more than rounding does.
constexpr double rounding = 1e-9;

/// How often each kind of change is tried, in percent; the rest are moves.
constexpr uint32_t mergePercent = 15, splitPercent = 10, transferPercent = 5;
/// How often something moves as far as it can, in each direction.
constexpr uint32_t farPercent = 15;
/// How often the nearest partner is passed over for one of the next `othersToTry`.
constexpr uint32_t otherPercent = 30;
constexpr uint32_t othersToTry = 4;

class Draw {
public:
  uint32_t below(uint32_t n) { return (bits() >> 32) * n >> 32; }
  bool chance(uint32_t percent) { return below(100) < percent; }
  /// From 1 to `most`, equally likely at every magnitude.
  uint32_t distance(uint32_t most) {
    double share = double(bits() >> 11) / double(uint64_t(1) << 53);
    return std::exp(share * std::log(double(most)));
  }

  /// From an exponential distribution with mean 1.
  double exponential() { return -std::log(double((bits() >> 11) + 1) / double(uint64_t(1) << 53)); }

private:
  uint64_t bits() { return splitMix64(state); }
  uint64_t state = 0;
};

class Refiner {
public:
  Refiner(const Problem &problem, const BucketKeys &keys, const cost::CostModel &model,
          const Decision &decision, std::span<const Scenario> scenarios, const Badness &badness,
          const RefineOptions &options)
      : problem(problem), events(problem, keys, decision),
        times(events, model, scenarios, options.flat), memory(events, options.flat),
        numScenarios(scenarios.size()), badness(badness), options(options),
        limit(std::max(options.memoryLimit, memory.peakBytes())),
        cap(options.buckets.caps.bytesAt(0)) {
    if (options.merge && options.buckets.caps.isUniform())
      for (TaskId task = 0; task != problem.numTasks(); ++task)
        if (events.keyOfTask(task) != none)
          collectives.push_back(task);
  }

  std::optional<Decision> run() {
    if (events.size() < 2)
      return std::nullopt;
    current = least = badnessOf(times.stepsUs());
    size_t failures = 0;
    for (size_t i = 0; i != options.tries && failures != options.failures; ++i) {
      if (times.replayed() > options.events)
        break;
      bool changed = change();
      if (changed && accept()) {
        failures = 0;
        continue;
      }
      if (!changed)
        events.undo();
      ++failures;
    }
    note();
    return std::move(best);
  }

private:
  double badnessOf(const Times &steps) const {
    return badness(std::span(steps).first(numScenarios));
  }

  bool change() {
    uint32_t kind = collectives.size() < 2 ? 100 : draw.below(100);
    if (kind < mergePercent)
      return merge();
    if (kind < mergePercent + splitPercent)
      return split();
    if (kind < mergePercent + splitPercent + transferPercent)
      return transfer();
    return move();
  }
  bool move();
  bool merge();
  bool split();
  bool transfer();
  UnitId partnerOf(UnitId unit);
  bool accept();
  double mostWorse();
  /// Keeps the plan if it is the least bad so far.
  void note() {
    if (current >= least - rounding)
      return;
    least = current;
    best = events.decide(options.buckets);
  }

  const Problem &problem;
  PlanEvents events;
  EventTimes times;
  EventMemory memory;
  size_t numScenarios;
  const Badness &badness;
  const RefineOptions &options;
  uint64_t limit, cap;
  std::vector<TaskId> collectives; // those that can be in buckets
  double current = 0, least = 0;
  std::optional<Decision> best;
  Draw draw;
  std::vector<EventId> changed;
};

/// Another place for a kernel, a start or a wait.
bool Refiner::move() {
  uint32_t from = draw.below(events.size());
  EventId event = events.at(from);
  if ((events.isWait(event) || events.isStart(event)) &&
      events.members(events.unitOfEvent(event)).empty())
    return false;
  uint32_t first = std::max(events.lowest(event), from - std::min(from, reach));
  uint32_t last = std::min(events.highest(event), from + reach);
  uint32_t to = from;
  if (uint32_t kind = draw.below(100); kind < farPercent)
    to = first;
  else if (kind < 2 * farPercent)
    to = last;
  else if (draw.chance(50))
    to = from - std::min(from - first, draw.distance(reach));
  else
    to = from + std::min(last - from, draw.distance(reach));
  events.shift(from, to);
  return to != from;
}

/// A unit of the same key that starts nearby, or `none`.
UnitId Refiner::partnerOf(UnitId unit) {
  uint32_t key = events.keyOf(unit), from = events.positionOf(unit);
  uint32_t skip = draw.chance(otherPercent) ? draw.below(othersToTry) : 0;
  bool up = draw.chance(50);
  uint32_t end =
      up ? std::min<uint32_t>(from + reach, events.size() - 1) : from - std::min(from, reach);
  for (uint32_t at = from; at != end;) {
    at += up ? 1 : -1;
    if (EventId event = events.at(at);
        events.isStart(event) && events.keyOf(event) == key && skip-- == 0)
      return event;
  }
  return none;
}

/// Two units become one, which starts where one of them did and is waited for where it is needed.
bool Refiner::merge() {
  UnitId from = events.unitOf(collectives[draw.below(collectives.size())]);
  UnitId to = partnerOf(from);
  if (to == none || events.fullBytes(from) > cap - std::min(cap, events.fullBytes(to)))
    return false;
  for (std::vector<TaskId> members(events.members(from).begin(), events.members(from).end());
       TaskId member : members)
    events.transfer(member, to);
  return events.settle(to);
}

/// One member leaves a bucket, or its last ones do together.
bool Refiner::split() {
  TaskId first = collectives[draw.below(collectives.size())];
  UnitId from = events.unitOf(first);
  // It goes where the collective was alone.
  if (!events.isBucket(from) || !events.members(first).empty())
    return false;
  auto all = events.members(from);
  auto begin = std::find(all.begin(), all.end(), first);
  auto end = draw.chance(50) ? begin + 1 : all.end();
  if (end - begin == std::ptrdiff_t(all.size()))
    return false;
  for (std::vector<TaskId> members(begin, end); TaskId member : members)
    events.transfer(member, first);
  for (auto [event, beside] :
       {std::pair(first, from), std::pair(events.waitOf(first), events.waitOf(from))})
    events.shift(events.positionOf(event), events.positionOf(beside));
  return events.settle(first);
}

bool Refiner::transfer() {
  TaskId member = collectives[draw.below(collectives.size())];
  UnitId from = events.unitOf(member);
  if (!events.isBucket(from))
    return false;
  UnitId to = partnerOf(from);
  uint64_t bytes = problem.graph.fullBytes(problem.nodeOf[member]);
  if (to == none || bytes > cap - std::min(cap, events.fullBytes(to)))
    return false;
  events.transfer(member, to);
  return events.settle(to);
}

/// By how much the next change may make the plan worse. A change that makes it worse by x is taken
/// with the probability exp(-x / heat), as in simulated annealing.
double Refiner::mostWorse() {
  if (options.heat == 0)
    return -rounding;
  double done = double(times.replayed()) / double(options.events);
  return options.heat * std::pow(1e-3, done) * draw.exponential();
}

/// Whether the plan fits and is better for the changes, or little enough worse; otherwise they are
/// undone.
bool Refiner::accept() {
  std::vector<UnitId> regrouped;
  changed.clear();
  uint32_t first = events.size(), last = 0;
  auto include = [&](uint32_t position) {
    first = std::min(first, position);
    last = std::max(last, position);
  };
  for (auto [transfers, id, from, to] : events.changes())
    if (transfers) {
      regrouped.push_back(from);
      regrouped.push_back(to);
    } else {
      changed.push_back(id);
      include(from);
      include(to);
    }
  std::sort(regrouped.begin(), regrouped.end());
  regrouped.erase(std::unique(regrouped.begin(), regrouped.end()), regrouped.end());
  for (UnitId unit : regrouped)
    for (EventId event : {unit, events.waitOf(unit)}) {
      changed.push_back(event);
      include(events.positionOf(event));
    }
  auto updateUnits = [&] {
    for (UnitId unit : regrouped)
      times.updateUnit(unit);
  };
  double most = current + mostWorse();
  auto isGood = [&](const Times &steps) { return badnessOf(steps) < most; };

  updateUnits();
  std::optional<Times> steps = times.estimate(first, last, !regrouped.empty() || options.heat > 0);
  bool isPromising = steps && isGood(*steps);
  bool fits = isPromising && memory.update(changed, first, last) <= limit;
  if (fits) {
    times.keep(first);
    if (isGood(times.stepsUs())) {
      current = badnessOf(times.stepsUs());
      events.keep();
      if (options.heat > 0)
        note();
      return true;
    }
  }
  events.undo();
  updateUnits();
  if (isPromising)
    memory.update(changed, first, last);
  if (fits)
    times.keep(first);
  return false;
}

} // namespace

std::optional<Decision> shardc::collectives::refine(const Problem &problem, const BucketKeys &keys,
                                                    const cost::CostModel &model,
                                                    const Decision &decision,
                                                    std::span<const Scenario> scenarios,
                                                    const Badness &badness,
                                                    const RefineOptions &options) {
  return Refiner(problem, keys, model, decision, scenarios, badness, options).run();
}
