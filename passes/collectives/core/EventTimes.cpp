// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/core/EventTimes.h"

#include <algorithm>
#include <cmath>

using namespace shardc;
using namespace shardc::collectives;

/// How many events lie between two clocks that are kept.
static constexpr uint32_t stride = 32;

/// Times that differ by less are equal.
static constexpr double sameUs = 1e-6;

static void addTo(Times &times, const Times &more) {
  for (size_t i = 0; i != times.size(); ++i)
    times[i] += more[i];
}
static void addTo(Times &times, double more) {
  for (double &us : times)
    us += more;
}
static void raiseTo(Times &times, const Times &least) {
  for (size_t i = 0; i != times.size(); ++i)
    times[i] = std::max(times[i], least[i]);
}

EventTimes::EventTimes(const PlanEvents &events, const cost::CostModel &model,
                       std::span<const Scenario> scenarios, bool flat)
    : events(events), problem(events.problem), model(model), flat(flat),
      kernelUs(problem.numTasks()), network(problem.graph.numGroups()), units(problem.numTasks()),
      endUs(problem.numTasks()), clocks(events.size() / stride + 1) {
  for (size_t i = 0; i != scenarios.size(); ++i)
    for (GroupId group = 0; group != network.size(); ++group)
      network[group][i] =
          scenarios[i].group == none || scenarios[i].group == group ? scenarios[i].network : 1;
  for (TaskId task = 0; task != problem.numTasks(); ++task) {
    NodeId node = problem.nodeOf[task];
    if (problem.isKernel(task))
      for (size_t i = 0; i != scenarios.size(); ++i)
        kernelUs[task][i] =
            model.launchUs() + problem.graph.durationUs(node) * kernelFactor(scenarios[i], node);
    else if (problem.isCollective(task))
      updateUnit(task);
  }
  clocks.front().freeUs.resize(problem.graph.numGroups());
  keep(0);
}

void EventTimes::updateUnit(UnitId id) {
  Unit &unit = units[id];
  unit = {};
  if (events.members(id).empty())
    return;
  const Graph &graph = problem.graph;
  unit.group = events.groupOf(id);
  unit.us = network[unit.group];
  double us =
      model.collectiveUs(events.kindOf(id), graph.group(unit.group).shape(), events.fullBytes(id));
  for (double &factor : unit.us)
    factor *= us;
  if (flat || !events.isBucket(id))
    return;
  uint64_t operands = 0, results = 0;
  for (TaskId member : events.members(id)) {
    operands += graph.operandBytes(problem.nodeOf[member]);
    results += graph.resultBytes(problem.nodeOf[member]);
  }
  unit.packUs = model.launchUs() + model.memoryUs(2.0 * double(operands));
  if (needsUnpack(events.kindOf(id)))
    unit.unpackUs = model.launchUs() + model.memoryUs(2.0 * double(results));
}

/// Ends that change are noted in `endsBefore`.
void EventTimes::run(Clock &clock, uint32_t begin, uint32_t end) {
  numReplayed += end - begin;
  for (uint32_t at = begin; at != end; ++at) {
    EventId event = events.at(at);
    if (events.isWait(event)) {
      for (UnitId id : events.waitedWith(event))
        if (!events.members(id).empty()) {
          raiseTo(clock.now, endUs[id]);
          addTo(clock.now, units[id].unpackUs);
        }
    } else if (!events.isStart(event)) {
      addTo(clock.now, kernelUs[event]);
    } else if (!events.members(event).empty()) {
      const Unit &unit = units[event];
      addTo(clock.now, unit.packUs + model.launchUs());
      Times &freeUs = clock.freeUs[unit.group];
      raiseTo(freeUs, clock.now);
      addTo(freeUs, unit.us);
      endsBefore.push_back({event, endUs[event]});
      endUs[event] = freeUs;
    }
  }
}

Times EventTimes::stepsOf(const Clock &clock) const {
  Times times = clock.now;
  for (const Times &us : clock.freeUs)
    raiseTo(times, us);
  return times;
}

bool EventTimes::isShifted(const Clock &clock, const Clock &before, Times &by) const {
  for (size_t i = 0; i != by.size(); ++i) {
    by[i] = clock.now[i] - before.now[i];
    for (GroupId group = 0; group != clock.freeUs.size(); ++group) {
      double now = clock.freeUs[group][i], then = before.freeUs[group][i];
      bool idle = now <= clock.now[i] && then <= before.now[i];
      if (!idle && std::abs(now - then - by[i]) > sameUs)
        return false;
    }
  }
  return true;
}

static bool isNoSooner(const Times &now, const Times &before) {
  bool sooner = false;
  for (size_t i = 0; i != now.size(); ++i)
    sooner |= now[i] < before[i];
  return !sooner;
}

bool EventTimes::isNoSooner(const Clock &clock, const Clock &before, uint32_t position) const {
  if (!::isNoSooner(clock.now, before.now))
    return false;
  for (GroupId group = 0; group != clock.freeUs.size(); ++group)
    if (!::isNoSooner(clock.freeUs[group], before.freeUs[group]))
      return false;
  return std::ranges::all_of(endsBefore, [&](const auto &entry) {
    uint32_t wait = events.positionOf(events.waitOf(entry.first));
    return (wait != none && wait < position) || ::isNoSooner(endUs[entry.first], entry.second);
  });
}

std::optional<Times> EventTimes::estimate(uint32_t first, uint32_t last, bool regrouped) {
  uint32_t next = first / stride;
  Clock clock = clocks[next];
  endsBefore.clear();
  std::optional<Times> result;
  Times by;
  while (true) {
    uint32_t begin = next * stride, end = std::min<uint32_t>(begin + stride, events.size());
    run(clock, begin, end);
    if (++next >= clocks.size()) {
      result = stepsOf(clock);
      break;
    }
    if (end <= last)
      continue;
    if (!regrouped && isNoSooner(clock, clocks[next], end))
      break;
    if (isShifted(clock, clocks[next], by)) {
      result = steps;
      addTo(*result, by);
      break;
    }
  }
  // Nothing starts twice, so that the order does not matter.
  for (auto &[unit, end] : endsBefore)
    endUs[unit] = end;
  return result;
}

void EventTimes::keep(uint32_t first) {
  endsBefore.clear();
  uint32_t index = first / stride;
  Clock clock = clocks[index];
  for (; index != clocks.size(); ++index) {
    clocks[index] = clock;
    run(clock, index * stride, std::min<uint32_t>((index + 1) * stride, events.size()));
  }
  steps = stepsOf(clock);
}
