// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/core/Replay.h"

#include "support/SplitMix.h"

#include <limits>

using namespace shardc;
using namespace shardc::collectives;

/// How many groups get a scenario with a straggler of their own.
static constexpr size_t mostStragglers = 3;
static constexpr size_t withoutStragglers = 6;
static_assert(withoutStragglers + mostStragglers == mostScenarios);

/// From [-1, 1], the same on every machine.
static double noise(uint32_t id, uint32_t seed) {
  uint64_t state = uint64_t(seed) << 32 | id;
  return double(splitMix64(state) >> 11) / double(uint64_t(1) << 52) - 1;
}

double shardc::collectives::kernelFactor(const Scenario &scenario, NodeId kernel) {
  return scenario.jitter == 0 ? 1 : 1 + scenario.jitter * noise(kernel, scenario.seed);
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

/// All scenarios in one pass over the plan. Calls onWait(index, slack in each scenario).
template <size_t width, typename OnWait>
std::array<double, width> Replay::run(std::span<const Scenario> scenarios, OnWait onWait) const {
  using Times = std::array<double, width>;
  Times now = {}, slower;
  std::vector<Times> free(numGroups), end(collectives.size()), network(numGroups);
  for (GroupId group = 0; group != numGroups; ++group) {
    network[group].fill(1);
    for (size_t i = 0; i != scenarios.size(); ++i)
      if (scenarios[i].group == none || scenarios[i].group == group)
        network[group][i] = scenarios[i].network;
  }
  slower.fill(1);
  for (const Event &event : events) {
    switch (event.what) {
    case Event::What::Kernel:
      for (size_t i = 0; i != scenarios.size(); ++i)
        if (scenarios[i].jitter != 0)
          slower[i] = event.id == none ? 1 : kernelFactor(scenarios[i], event.id);
      for (size_t i = 0; i != width; ++i)
        now[i] += launchUs + event.us * slower[i];
      break;
    case Event::What::Start:
      for (size_t i = 0; i != width; ++i) {
        now[i] += launchUs;
        end[event.id][i] = free[event.group][i] =
            std::max(now[i], free[event.group][i]) + event.us * network[event.group][i];
      }
      break;
    case Event::What::Wait: {
      Times slack;
      for (size_t i = 0; i != width; ++i) {
        slack[i] = now[i] - end[event.id][i];
        now[i] = std::max(now[i], end[event.id][i]);
      }
      onWait(event.id, slack);
      break;
    }
    }
  }
  for (const Times &us : free)
    for (size_t i = 0; i != width; ++i)
      now[i] = std::max(now[i], us[i]);
  return now;
}

double Replay::stepUs(const Scenario &scenario) const {
  return run<1>(std::span(&scenario, 1), [](uint32_t, const auto &) {})[0];
}

std::vector<double> Replay::stepsUs(std::span<const Scenario> scenarios) const {
  std::vector<double> steps;
  while (!scenarios.empty()) {
    size_t count = std::min(scenarios.size(), mostScenarios);
    auto some = run<mostScenarios>(scenarios.first(count), [](uint32_t, const auto &) {});
    steps.insert(steps.end(), some.begin(), some.begin() + count);
    scenarios = scenarios.subspan(count);
  }
  return steps;
}

std::vector<double> Replay::slackUs(size_t numNodes) const {
  std::vector<double> slack(numNodes, std::numeric_limits<double>::infinity());
  Scenario nominal;
  run<1>(std::span(&nominal, 1),
         [&](uint32_t id, const auto &us) { slack[collectives[id]] = us[0]; });
  return slack;
}
