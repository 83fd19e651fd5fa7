// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/core/LeanOrders.h"

#include "passes/collectives/core/Plan.h"

#include <algorithm>
#include <queue>
#include <tuple>

using namespace shardc;
using namespace shardc::collectives;

namespace {

std::span<const Problem::StorageUse> storagesOf(const Problem &problem, TaskId task) {
  return problem.storagesOfStep[problem.stepOfTask[task]];
}

/// What is live while tasks run one after the other, forwards or backwards. Backwards a storage is
/// live from the last task that touches it (an output from the start) to the first.
class Live {
public:
  Live(const Problem &problem, bool backwards)
      : problem(problem), backwards(backwards), left(problem.storageBytes.size()),
        sum(problem.storageBytes.size()), touched(problem.storageBytes.size()) {
    for (TaskId task = 0; task != problem.numTasks(); ++task)
      for (auto [storage, index] : storagesOf(problem, task)) {
        ++left[storage];
        sum[storage] ^= task;
      }
    if (backwards)
      for (StorageId storage = 0; storage != touched.size(); ++storage)
        touched[storage] = problem.storagePinned[storage];
  }

  /// By how many bytes a task makes the live bytes grow, once it is over.
  int64_t growth(TaskId task) const {
    int64_t bytes = 0;
    for (auto [storage, index] : storagesOf(problem, task)) {
      if (!touched[storage])
        bytes += problem.storageBytes[storage];
      if (left[storage] == 1 && isFreed(storage))
        bytes -= problem.storageBytes[storage];
    }
    return bytes;
  }

  /// Runs a task, and calls fn(task) for each other whose growth is less now.
  template <typename Fn> void run(TaskId task, Fn fn) {
    for (auto [storage, index] : storagesOf(problem, task))
      if (!touched[storage])
        current += problem.storageBytes[storage];
    peak = std::max(peak, current);
    for (auto [storage, index] : storagesOf(problem, task)) {
      bool isNew = !touched[storage];
      touched[storage] = true;
      sum[storage] ^= task;
      if (--left[storage] == 0 && isFreed(storage))
        current -= problem.storageBytes[storage];
      if (isNew)
        forEachLeft(storage, task, fn);
      else if (left[storage] == 1)
        fn(static_cast<TaskId>(sum[storage]));
    }
  }

  int64_t current = 0, peak = 0;

private:
  bool isFreed(StorageId storage) const { return backwards || !problem.storagePinned[storage]; }

  template <typename Fn> void forEachLeft(StorageId storage, TaskId task, Fn fn) {
    for (StepId step : problem.stepsOfStorage[storage])
      if (TaskId other = taskAt(step); other != none && other != task)
        fn(other);
  }
  TaskId taskAt(StepId step) {
    if (taskOfStep.empty()) {
      taskOfStep.assign(problem.numSteps, none);
      for (TaskId task = 0; task != problem.numTasks(); ++task)
        taskOfStep[problem.stepOfTask[task]] = task;
    }
    return taskOfStep[step];
  }

  const Problem &problem;
  bool backwards;
  std::vector<TaskId> taskOfStep;
  // By storage: how many tasks that touch it have not run, the exclusive or of these, and whether
  // one has.
  std::vector<uint32_t> left;
  std::vector<uint32_t> sum;
  std::vector<bool> touched;
};

/// Always the ready task with the least growth.
std::vector<TaskId> bestFit(const Problem &problem, bool backwards) {
  const Rows<Dependence> &before = backwards ? problem.after : problem.before;
  const Rows<Dependence> &after = backwards ? problem.before : problem.after;
  // The growth when it was last looked at, then what is older (later, backwards).
  using Entry = std::tuple<int64_t, TaskId, TaskId>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  std::vector<uint32_t> missing(problem.numTasks());
  std::vector<bool> done(problem.numTasks());
  Live live(problem, backwards);
  auto push = [&](TaskId task) {
    if (missing[task] == 0 && !done[task])
      ready.push({live.growth(task), backwards ? problem.numTasks() - task : task, task});
  };
  for (TaskId task = 0; task != problem.numTasks(); ++task)
    missing[task] = before[task].size();
  for (TaskId task = 0; task != problem.numTasks(); ++task)
    push(task);
  std::vector<TaskId> order;
  while (!ready.empty()) {
    TaskId task = std::get<2>(ready.top());
    ready.pop();
    if (done[task])
      continue;
    done[task] = true;
    order.push_back(task);
    live.run(task, push);
    for (const Dependence &d : after[task])
      if (--missing[d.task] == 0)
        push(d.task);
  }
  if (backwards)
    std::reverse(order.begin(), order.end());
  return order;
}

/// Runs what each output needs, and between that what costs no memory.
class DepthFirst {
public:
  DepthFirst(const Problem &problem, bool deepest)
      : problem(problem), live(problem, false), missing(problem.numTasks()),
        done(problem.numTasks()), depth(problem.numTasks()) {
    for (TaskId task = 0; task != problem.numTasks(); ++task) {
      missing[task] = problem.before[task].size();
      if (deepest)
        for (const Dependence &d : problem.before[task])
          depth[task] = std::max(depth[task], depth[d.task] + 1);
    }
  }

  std::vector<TaskId> run() {
    // Without depths in program order.
    std::vector<TaskId> targets;
    for (TaskId task = 0; task != problem.numTasks(); ++task)
      if (isTarget(task))
        targets.push_back(task);
    std::stable_sort(targets.begin(), targets.end(),
                     [&](TaskId a, TaskId b) { return depth[a] < depth[b]; });
    for (TaskId task : targets)
      reach(task);
    return std::move(order);
  }

private:
  bool isTarget(TaskId task) const {
    for (auto [storage, index] : storagesOf(problem, task))
      if (problem.storagePinned[storage])
        return true;
    return problem.after[task].empty();
  }

  void reach(TaskId target) {
    stack.push_back(target);
    while (!stack.empty()) {
      TaskId task = stack.back();
      if (done[task]) {
        stack.pop_back();
      } else if (missing[task] == 0) {
        stack.pop_back();
        runWith(task);
      } else {
        needs.clear();
        for (const Dependence &d : problem.before[task])
          if (!done[d.task])
            needs.push_back(d.task);
        // The first to run is the last on the stack.
        std::sort(needs.begin(), needs.end(), [&](TaskId a, TaskId b) {
          return depth[a] != depth[b] ? depth[a] < depth[b] : a > b;
        });
        stack.insert(stack.end(), needs.begin(), needs.end());
      }
    }
  }

  /// Runs a task, then all that can run and costs no memory, the oldest first.
  void runWith(TaskId task) {
    runOne(task);
    while (!changed.empty()) {
      TaskId next = changed.top();
      changed.pop();
      if (!done[next] && missing[next] == 0 && live.growth(next) <= 0)
        runOne(next);
    }
  }

  void runOne(TaskId task) {
    done[task] = true;
    order.push_back(task);
    live.run(task, [&](TaskId other) { changed.push(other); });
    for (const Dependence &d : problem.after[task])
      if (--missing[d.task] == 0)
        changed.push(d.task);
  }

  const Problem &problem;
  Live live;
  std::vector<uint32_t> missing;
  std::vector<bool> done;
  std::vector<uint32_t> depth; // the longest path to a task, where that counts
  std::vector<TaskId> stack, needs, order;
  std::priority_queue<TaskId, std::vector<TaskId>, std::greater<>> changed;
};

} // namespace

std::vector<TaskId> shardc::collectives::leanOrder(const Problem &problem, LeanOrder kind) {
  switch (kind) {
  case LeanOrder::DepthFirst:
    return DepthFirst(problem, false).run();
  case LeanOrder::DeepestFirst:
    return DepthFirst(problem, true).run();
  case LeanOrder::BestFit:
    return bestFit(problem, false);
  case LeanOrder::BestFitBackwards:
    return bestFit(problem, true);
  }
  return {};
}

uint64_t shardc::collectives::peakOfOrder(const Problem &problem, std::span<const TaskId> order) {
  Live live(problem, false);
  for (TaskId task : order)
    live.run(task, [](TaskId) {});
  return problem.constantBytes + live.peak;
}

std::vector<NodeId> shardc::collectives::nodesInOrder(const Problem &problem,
                                                      std::span<const TaskId> order) {
  Plan plan;
  for (TaskId task : order) {
    plan.items.push_back({PlanItem::Kind::Op, problem.nodeOf[task]});
    if (problem.waitOf[task] != none)
      plan.items.push_back({PlanItem::Kind::Op, problem.waitOf[task]});
  }
  return nodeOrder(problem.graph, plan);
}
