// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/core/IdealSchedule.h"

#include <algorithm>
#include <queue>

using namespace shardc;
using namespace shardc::collectives;

TaskTimes::TaskTimes(const Problem &problem, const cost::CostModel &model) {
  const Graph &graph = problem.graph;
  us.resize(problem.numTasks());
  latencyUs.resize(problem.numTasks());
  for (TaskId task = 0; task != problem.numTasks(); ++task) {
    NodeId node = problem.nodeOf[task];
    if (graph.isCollective(node)) {
      cost::Group shape = graph.group(graph.groupOf(node)).shape();
      us[task] = model.collectiveUs(graph.kindOf(node), shape, graph.fullBytes(node));
      latencyUs[task] = model.latencyUs(graph.kindOf(node), shape);
    } else if (graph.isKernel(node)) {
      us[task] = model.launchUs() + graph.durationUs(node);
    }
  }
}

std::vector<double> shardc::collectives::tailLengths(const Problem &problem,
                                                     std::span<const double> us) {
  std::vector<double> tail(problem.numTasks());
  for (TaskId task = problem.numTasks(); task-- != 0;) {
    for (const Dependence &d : problem.after[task])
      tail[task] = std::max(tail[task], tail[d.task]);
    tail[task] += us[task];
  }
  return tail;
}

Schedule shardc::collectives::idealSchedule(const Problem &problem, std::span<const double> us,
                                            Direction direction, std::span<const double> priority) {
  bool forward = direction == Direction::Forward;
  const Rows<Dependence> &before = forward ? problem.before : problem.after;
  const Rows<Dependence> &after = forward ? problem.after : problem.before;
  const Graph &graph = problem.graph;
  size_t n = problem.numTasks();

  Schedule schedule;
  schedule.startUs.resize(n);
  schedule.endUs.resize(n);

  struct Event {
    double us;
    TaskId task;
    bool ends; // else becomes ready
    bool operator>(const Event &other) const {
      if (us != other.us)
        return us > other.us;
      if (ends != other.ends)
        return !ends;
      return task > other.task;
    }
  };
  auto later = [&](TaskId a, TaskId b) {
    if (priority[a] != priority[b])
      return priority[a] > priority[b];
    return forward ? a > b : a < b;
  };
  // Stream 0 is compute, 1 + group a group's.
  using Queue = std::priority_queue<TaskId, std::vector<TaskId>, decltype(later)>;
  std::vector<Queue> ready(1 + graph.numGroups(), Queue(later));
  std::vector<bool> busy(ready.size());
  std::vector<uint32_t> missing(n);
  std::vector<double> readyUs(n);
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events;
  auto streamOf = [&](TaskId task) -> size_t {
    NodeId node = problem.nodeOf[task];
    return graph.isCollective(node) ? 1 + graph.groupOf(node) : 0;
  };
  for (TaskId task = 0; task != n; ++task) {
    missing[task] = before[task].size();
    if (missing[task] == 0)
      events.push({0, task, false});
  }
  std::vector<size_t> touched;
  while (!events.empty()) {
    double now = events.top().us;
    touched.clear();
    while (!events.empty() && events.top().us == now) {
      Event event = events.top();
      events.pop();
      size_t stream = streamOf(event.task);
      touched.push_back(stream);
      if (!event.ends) {
        ready[stream].push(event.task);
        continue;
      }
      busy[stream] = false;
      for (const Dependence &d : after[event.task]) {
        readyUs[d.task] = std::max(readyUs[d.task], now);
        if (--missing[d.task] == 0)
          events.push({readyUs[d.task], d.task, false});
      }
    }
    for (size_t stream : touched) {
      if (busy[stream] || ready[stream].empty())
        continue;
      TaskId task = ready[stream].top();
      ready[stream].pop();
      busy[stream] = true;
      schedule.startUs[task] = now;
      schedule.endUs[task] = now + us[task];
      schedule.makespanUs = std::max(schedule.makespanUs, now + us[task]);
      events.push({now + us[task], task, true});
    }
  }
  if (!forward)
    for (TaskId task = 0; task != n; ++task) {
      double start = schedule.makespanUs - schedule.endUs[task];
      schedule.endUs[task] = schedule.makespanUs - schedule.startUs[task];
      schedule.startUs[task] = start;
    }
  return schedule;
}

/// Stream times with the latency taken off where it alone makes a stream the bottleneck.
static std::vector<double> attainableTimes(const Problem &problem, const TaskTimes &times) {
  const Graph &graph = problem.graph;
  std::vector<double> noLatency(times.us.size());
  std::vector<double> busy(graph.numGroups()), busyNoLatency(graph.numGroups());
  double bound = 0;
  for (TaskId task = 0; task != problem.numTasks(); ++task) {
    noLatency[task] = times.us[task] - times.latencyUs[task];
    if (!problem.isCollective(task)) {
      bound += times.us[task];
      continue;
    }
    GroupId group = graph.groupOf(problem.nodeOf[task]);
    busy[group] += times.us[task];
    busyNoLatency[group] += noLatency[task];
  }
  for (double us : busyNoLatency)
    bound = std::max(bound, us);
  for (double us : tailLengths(problem, noLatency))
    bound = std::max(bound, us);
  // A stream that is busy nearly all the time is late somewhere.
  constexpr double nearlyAll = 0.9;
  std::vector<double> us = times.us;
  for (TaskId task = 0; task != problem.numTasks(); ++task)
    if (problem.isCollective(task) && busy[graph.groupOf(problem.nodeOf[task])] > nearlyAll * bound)
      us[task] = noLatency[task];
  return us;
}

Reference shardc::collectives::makeReference(const Problem &problem, const TaskTimes &times,
                                             ReferenceKind kind) {
  std::vector<double> us = attainableTimes(problem, times);
  std::vector<double> priority(problem.numTasks());
  if (kind == ReferenceKind::LongestPath) {
    priority = tailLengths(problem, us);
    for (double &value : priority)
      value = -value;
    priority = idealSchedule(problem, us, Direction::Forward, priority).endUs;
    for (double &value : priority)
      value = -value;
  } else {
    for (TaskId task = 0; task != problem.numTasks(); ++task)
      priority[task] = -static_cast<double>(task);
  }
  Schedule late = idealSchedule(problem, us, Direction::Backward, priority);

  Reference reference;
  reference.latestStartUs = std::move(late.startUs);
  reference.makespanUs = late.makespanUs;
  reference.neededUs.assign(problem.numTasks(), late.makespanUs);
  for (TaskId task = 0; task != problem.numTasks(); ++task) {
    for (const Dependence &d : problem.after[task])
      reference.neededUs[task] =
          std::min(reference.neededUs[task], reference.latestStartUs[d.task]);
    if (!problem.isCollective(task))
      reference.kernels.push_back(task);
  }
  std::sort(reference.kernels.begin(), reference.kernels.end(), [&](TaskId a, TaskId b) {
    return std::pair(reference.latestStartUs[a], a) < std::pair(reference.latestStartUs[b], b);
  });
  return reference;
}
