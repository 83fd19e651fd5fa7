// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/core/Problem.h"

#include <algorithm>
#include <numeric>

using namespace shardc;
using namespace shardc::collectives;

namespace {

/// Collects what each task must come after.
class DependenceBuilder {
public:
  DependenceBuilder(Problem &problem)
      : problem(problem), graph(problem.graph), source(graph.numValues(), {none, false}),
        listed(graph.numNodes(), none), isWaitedFor(graph.numNodes()), written(graph.numValues()),
        lastWriter(graph.numValues(), none), nextReader(graph.numValues(), none) {
    for (NodeId node = 0; node != graph.numNodes(); ++node) {
      forEachWritten(node, [&](ValueId root) { written[root] = true; });
      if (graph.classOf(node) == NodeClass::Wait)
        for (ValueId value : graph.operands(node))
          if (graph.pendingOf(value) != none)
            isWaitedFor[graph.pendingOf(value)] = true;
    }
  }

  void run(std::span<const NodeId> order) {
    for (NodeId node : order)
      visit(node);
  }

private:
  /// Storages that a node overwrites.
  template <typename Fn> void forEachWritten(NodeId node, Fn fn) {
    if (graph.classOf(node) == NodeClass::InPlace ||
        (graph.isCollective(node) && graph.outBuffers(node)))
      for (ValueId value : graph.results(node))
        fn(graph.rootOf(value));
  }

  void visit(NodeId node) {
    list.clear();
    for (std::span<const ValueId> values : {graph.operands(node), graph.scalarOperands(node)})
      for (ValueId value : values)
        add(source[value]);

    if (graph.classOf(node) == NodeClass::Wait) {
      for (ValueId value : graph.operands(node))
        if (NodeId collective = graph.pendingOf(value); collective != none) {
          TaskId task = problem.taskOf[collective];
          if (problem.waitOf[task] == none)
            problem.waitOf[task] = node;
        }
      setSources(node, [&](size_t i) {
        ValueId operand = graph.operands(node)[i];
        NodeId collective = graph.pendingOf(operand);
        return collective == none ? source[operand] : Dependence{problem.taskOf[collective], true};
      });
      return;
    }
    bool isTask = graph.isKernel(node) || graph.isCollective(node);
    if (!isTask && list.size() <= 1) {
      Dependence only = list.empty() ? Dependence{none, false} : list.front();
      setSources(node, [&](size_t) { return only; });
      return;
    }
    TaskId task = problem.nodeOf.size();
    problem.nodeOf.push_back(node);
    problem.taskOf[node] = task;
    problem.waitOf.push_back(none);
    if (isTask)
      orderWrites(node, task);
    for (const Dependence &d : list)
      problem.before.append(d);
    problem.before.endRow();
    setSources(node, [&](size_t) { return Dependence{task, false}; });
  }

  template <typename Fn> void setSources(NodeId node, Fn sourceOfResult) {
    std::span<const ValueId> results = graph.results(node);
    for (size_t i = 0; i != results.size(); ++i)
      source[results[i]] = sourceOfResult(i);
    for (ValueId value : graph.scalarResults(node))
      source[value] = sourceOfResult(0);
  }

  void add(Dependence d) {
    if (d.task == none)
      return;
    uint32_t index = listed[d.task];
    if (index < list.size() && list[index].task == d.task) {
      list[index].complete |= d.complete;
      return;
    }
    listed[d.task] = list.size();
    list.push_back(d);
  }

  /// Nodes that overwrite a storage keep their order against all that touch it. A collective reads
  /// and writes until its wait: what comes after the wait in the program stays after it.
  void orderWrites(NodeId node, TaskId task) {
    writes.clear();
    forEachWritten(node, [&](ValueId root) { writes.push_back(root); });
    touched.clear();
    for (std::span<const ValueId> values : {graph.operands(node), graph.results(node)})
      for (ValueId value : values)
        if (ValueId root = graph.rootOf(value); written[root])
          touched.push_back(root);
    std::sort(touched.begin(), touched.end());
    touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
    std::sort(writes.begin(), writes.end());
    for (ValueId root : touched) {
      if (lastWriter[root] != none)
        addTouch(lastWriter[root]);
      if (std::binary_search(writes.begin(), writes.end(), root)) {
        uint32_t reader = nextReader[root];
        nextReader[root] = none;
        for (uint32_t next; reader != none; reader = next) {
          next = readers[reader].next;
          addTouch(readers[reader].task);
          keepInFlight(reader, root);
        }
        if (lastWriter[root] != none) {
          readers.push_back({lastWriter[root], none});
          keepInFlight(readers.size() - 1, root);
        }
        lastWriter[root] = task;
      } else {
        readers.push_back({task, nextReader[root]});
        nextReader[root] = readers.size() - 1;
      }
    }
  }

  /// A collective that the program overwrites something of while it is in flight still has to be
  /// complete before what comes after its wait.
  void keepInFlight(uint32_t reader, ValueId root) {
    TaskId task = readers[reader].task;
    if (!isWaitedFor[problem.nodeOf[task]] || problem.waitOf[task] != none)
      return;
    readers[reader].next = nextReader[root];
    nextReader[root] = reader;
  }

  void addTouch(TaskId task) {
    add({task, problem.isCollective(task) && problem.waitOf[task] != none});
  }

  struct Reader {
    TaskId task;
    uint32_t next;
  };

  Problem &problem;
  const Graph &graph;
  /// By value: the task it comes from.
  std::vector<Dependence> source;
  /// By task: where it is in `list`, if it is.
  std::vector<uint32_t> listed;
  std::vector<bool> isWaitedFor; // by collective
  /// By root: whether any node overwrites it, who did last, and a list of those who read it since.
  std::vector<bool> written;
  std::vector<TaskId> lastWriter;
  std::vector<uint32_t> nextReader;
  std::vector<Reader> readers;
  std::vector<Dependence> list;
  std::vector<ValueId> writes, touched;
};

} // namespace

Problem::Problem(const Graph &graph, std::span<const NodeId> order)
    : graph(graph), taskOf(graph.numNodes(), none) {
  std::vector<NodeId> graphOrder;
  if (order.empty()) {
    graphOrder.resize(graph.numNodes());
    std::iota(graphOrder.begin(), graphOrder.end(), 0);
    order = graphOrder;
  }
  findDependences(order);
  findStorages(order);
}

void Problem::findDependences(std::span<const NodeId> order) {
  DependenceBuilder(*this).run(order);
  std::vector<std::pair<uint32_t, Dependence>> pairs;
  pairs.reserve(before.numEntries());
  for (TaskId task = 0; task != numTasks(); ++task)
    for (const Dependence &d : before[task])
      pairs.push_back({d.task, {task, d.complete}});
  after = Rows<Dependence>::fromPairs(numTasks(), pairs);
}

void Problem::findStorages(std::span<const NodeId> order) {
  std::vector<bool> isInput(graph.numValues()), isOutput(graph.numValues());
  for (ValueId value : graph.graphInputs()) {
    isInput[graph.rootOf(value)] = true;
    constantBytes += graph.bytesOf(value);
  }
  for (ValueId value : graph.graphOutputs())
    isOutput[graph.rootOf(value)] = true;

  storageOf.assign(graph.numValues(), none);
  stepOfTask.assign(numTasks(), none);
  stepOfWait.assign(numTasks(), none);
  std::vector<std::pair<uint32_t, StepId>> uses;
  std::vector<StepId> lastStep;
  auto use = [&](ValueId value, StepId step) {
    ValueId root = graph.rootOf(value);
    if (isInput[root])
      return;
    StorageId &storage = storageOf[root];
    if (storage == none) {
      storage = storageBytes.size();
      storageBytes.push_back(graph.bytesOf(root));
      storagePinned.push_back(isOutput[root]);
      lastStep.push_back(none);
    }
    if (lastStep[storage] == step)
      return;
    lastStep[storage] = step;
    uses.push_back({storage, step});
  };
  auto useAll = [&](std::span<const ValueId> values, StepId step) {
    for (ValueId value : values)
      use(value, step);
  };
  for (NodeId node : order) {
    TaskId task = taskOf[node];
    if (task != none) {
      stepOfTask[task] = numSteps;
      if (!graph.isFree(node)) {
        useAll(graph.operands(node), numSteps);
        useAll(graph.results(node), numSteps);
      }
      ++numSteps;
      continue;
    }
    if (graph.classOf(node) != NodeClass::Wait)
      continue;
    for (ValueId value : graph.operands(node)) {
      NodeId collective = graph.pendingOf(value);
      if (collective == none || waitOf[taskOf[collective]] != node)
        continue;
      stepOfWait[taskOf[collective]] = numSteps;
      useAll(graph.operands(collective), numSteps);
      useAll(graph.results(collective), numSteps);
      ++numSteps;
      break;
    }
  }
  for (ValueId value = 0; value != graph.numValues(); ++value) {
    ValueId root = graph.rootOf(value);
    if (value == root && storageOf[root] == none && isOutput[root] && !isInput[root])
      constantBytes += graph.bytesOf(root);
    else if (value != root && root != none)
      storageOf[value] = storageOf[root];
  }
  stepsOfStorage = Rows<StepId>::fromPairs(storageBytes.size(), uses);
  std::vector<std::pair<uint32_t, StorageUse>> pairs;
  pairs.reserve(uses.size());
  for (StorageId storage = 0; storage != storageBytes.size(); ++storage)
    for (uint32_t i = 0; i != stepsOfStorage[storage].size(); ++i)
      pairs.push_back({stepsOfStorage[storage][i], {storage, i}});
  storagesOfStep = Rows<StorageUse>::fromPairs(numSteps, pairs);
}
