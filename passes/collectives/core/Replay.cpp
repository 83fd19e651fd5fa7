// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/core/Replay.h"

#include <limits>

using namespace shardc;
using namespace shardc::collectives;

/// How many groups get a scenario with a straggler of their own.
static constexpr size_t mostStragglers = 3;

/// From [-1, 1], the same on every machine (the finaliser of splitmix64).
static double noise(uint32_t id, uint32_t seed) {
  uint64_t x = (uint64_t(seed) << 32 | id) + 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  x ^= x >> 31;
  return double(x >> 11) / double(uint64_t(1) << 52) - 1;
}

std::vector<Scenario> shardc::collectives::standardScenarios(const Graph &graph,
                                                             const cost::CostModel &model) {
  std::vector<Scenario> scenarios = {{},
                                     {"network x1.25", 1.25, none, 0, 0},
                                     {"network x1.5", 1.5, none, 0, 0},
                                     {"network x2", 2, none, 0, 0},
                                     {"kernels +-20 % (1)", 1, none, 0.2, 1},
                                     {"kernels +-20 % (2)", 1, none, 0.2, 2}};
  std::vector<std::pair<double, GroupId>> busy;
  for (GroupId group = 0; group != graph.numGroups(); ++group)
    busy.push_back({0, group});
  for (NodeId node = 0; node != graph.numNodes(); ++node)
    if (graph.isCollective(node))
      busy[graph.groupOf(node)].first -= model.collectiveUs(
          graph.kindOf(node), graph.group(graph.groupOf(node)).shape(), graph.fullBytes(node));
  std::erase_if(busy, [](auto &entry) { return entry.first == 0; });
  std::sort(busy.begin(), busy.end());
  // With one group this would be the network that is twice as slow.
  if (busy.size() > 1)
    for (auto [us, group] : std::span(busy).first(std::min(busy.size(), mostStragglers)))
      scenarios.push_back({"straggler on " + graph.group(group).name, 2, group, 0, 0});
  return scenarios;
}

Replay::Replay(const Graph &graph, const Plan &plan, const cost::CostModel &model, bool flat)
    : launchUs(model.launchUs()), numGroups(graph.numGroups()) {
  events.reserve(plan.items.size());
  std::vector<uint32_t> indexOf(graph.numNodes(), none), indexOfBucket(plan.buckets.size(), none);
  std::vector<bool> waited;
  auto start = [&](NodeId first, uint64_t bytes) {
    GroupId group = graph.groupOf(first);
    double us = model.collectiveUs(graph.kindOf(first), graph.group(group).shape(), bytes);
    events.push_back({Event::What::Start, group, static_cast<uint32_t>(collectives.size()), us});
    collectives.push_back(first);
    waited.push_back(false);
    return collectives.size() - 1;
  };
  auto wait = [&](uint32_t index) {
    if (!waited[index])
      events.push_back({Event::What::Wait, none, index, 0});
    waited[index] = true;
  };
  auto sum = [&](BucketId id, auto bytesOf) {
    uint64_t bytes = 0;
    for (NodeId member : plan.buckets[id])
      bytes += bytesOf(member);
    return bytes;
  };
  auto copy = [&](uint64_t bytes) {
    events.push_back({Event::What::Kernel, none, none, model.memoryUs(2.0 * double(bytes))});
  };
  for (auto [kind, id] : plan.items) {
    switch (kind) {
    case PlanItem::Kind::Op:
      if (graph.isKernel(id))
        events.push_back({Event::What::Kernel, none, id, graph.durationUs(id)});
      else if (graph.isCollective(id))
        indexOf[id] = start(id, graph.fullBytes(id));
      else if (graph.classOf(id) == NodeClass::Wait)
        for (ValueId value : graph.operands(id))
          if (NodeId collective = graph.pendingOf(value);
              collective != none && indexOf[collective] != none)
            wait(indexOf[collective]);
      break;
    case PlanItem::Kind::Pack: // runs with its start
      break;
    case PlanItem::Kind::Start:
      if (!flat)
        copy(sum(id, [&](NodeId member) { return graph.operandBytes(member); }));
      indexOfBucket[id] = start(plan.buckets[id].front(),
                                sum(id, [&](NodeId member) { return graph.fullBytes(member); }));
      break;
    case PlanItem::Kind::Wait:
      wait(indexOfBucket[id]);
      break;
    case PlanItem::Kind::Unpack:
      if (!flat && needsUnpack(graph.kindOf(plan.buckets[id].front())))
        copy(sum(id, [&](NodeId member) { return graph.resultBytes(member); }));
      break;
    }
  }
}

template <typename OnWait> double Replay::run(const Scenario &scenario, OnWait onWait) const {
  std::vector<double> free(numGroups), end(collectives.size());
  double now = 0;
  for (const Event &event : events) {
    switch (event.what) {
    case Event::What::Kernel: {
      double factor = 1;
      if (scenario.jitter != 0 && event.id != none)
        factor += scenario.jitter * noise(event.id, scenario.seed);
      now += launchUs + event.us * factor;
      break;
    }
    case Event::What::Start: {
      bool slow = scenario.group == none || scenario.group == event.group;
      now += launchUs;
      end[event.id] = free[event.group] =
          std::max(now, free[event.group]) + event.us * (slow ? scenario.network : 1);
      break;
    }
    case Event::What::Wait:
      onWait(event.id, now - end[event.id]);
      now = std::max(now, end[event.id]);
      break;
    }
  }
  for (double us : free)
    now = std::max(now, us);
  return now;
}

double Replay::stepUs(const Scenario &scenario) const {
  return run(scenario, [](uint32_t, double) {});
}

std::vector<double> Replay::stepsUs(std::span<const Scenario> scenarios) const {
  std::vector<double> steps;
  for (const Scenario &scenario : scenarios)
    steps.push_back(stepUs(scenario));
  return steps;
}

std::vector<double> Replay::slackUs(size_t numNodes) const {
  std::vector<double> slack(numNodes, std::numeric_limits<double>::infinity());
  run({}, [&](uint32_t id, double us) { slack[collectives[id]] = us; });
  return slack;
}
