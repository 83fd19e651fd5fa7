// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What an optimiser has to know of a graph: tasks (kernels and collectives), what each must come
// after, and which storages each step of the program allocates and uses.
//
// Free nodes are gone: a view stands for what it is a view of. A free node that several tasks lead
// to (arithmetic on sizes, an allocation whose size is computed) stays as a task without cost, so
// that the number of dependences stays linear.

#ifndef SHARDC_PASSES_COLLECTIVES_CORE_PROBLEM_H
#define SHARDC_PASSES_COLLECTIVES_CORE_PROBLEM_H

#include "passes/collectives/core/Graph.h"

namespace shardc::collectives {

using TaskId = uint32_t;
using StorageId = uint32_t;
using StepId = uint32_t;

/// Rows of varying length in one array.
template <typename T> class Rows {
public:
  std::span<const T> operator[](size_t row) const {
    return {entries.data() + begin[row], entries.data() + begin[row + 1]};
  }
  void append(const T &entry) { entries.push_back(entry); }
  void endRow() { begin.push_back(entries.size()); }
  size_t size() const { return begin.size() - 1; }
  size_t numEntries() const { return entries.size(); }
  /// How many entries the rows before this one have.
  size_t offset(size_t row) const { return begin[row]; }

  /// Rows from (row, entry) pairs in any order; entries of a row keep the order of the pairs.
  static Rows fromPairs(size_t numRows, std::span<const std::pair<uint32_t, T>> pairs) {
    Rows rows;
    rows.begin.assign(numRows + 1, 0);
    for (auto &[row, entry] : pairs)
      ++rows.begin[row + 1];
    for (size_t i = 0; i != numRows; ++i)
      rows.begin[i + 1] += rows.begin[i];
    rows.entries.resize(pairs.size());
    std::vector<uint32_t> next(rows.begin.begin(), rows.begin.end() - 1);
    for (auto &[row, entry] : pairs)
      rows.entries[next[row]++] = entry;
    return rows;
  }

private:
  std::vector<uint32_t> begin = {0};
  std::vector<T> entries;
};

/// A task that another one must come after. A collective may have to be complete (waited for), or
/// only started.
struct Dependence {
  TaskId task;
  bool complete;
};

struct Problem {
  /// Tasks and steps are numbered in the order in which `order` lists the nodes of the graph: a
  /// permutation that checkPlan accepts. Without one, in the order of the graph.
  explicit Problem(const Graph &graph, std::span<const NodeId> order = {});

  const Graph &graph;

  /// Tasks in graph order, and back (`none` for nodes that are no task).
  std::vector<NodeId> nodeOf;
  std::vector<TaskId> taskOf;
  Rows<Dependence> before;
  /// The transpose: for each task the tasks that must come after it.
  Rows<Dependence> after;

  /// The first wait for a collective, by task; `none` where the program never waits for it.
  std::vector<NodeId> waitOf;

  size_t numTasks() const { return nodeOf.size(); }
  bool isCollective(TaskId task) const { return graph.isCollective(nodeOf[task]); }
  bool isKernel(TaskId task) const { return graph.isKernel(nodeOf[task]); }

  /// Steps: tasks and first waits, in graph order.
  uint32_t numSteps = 0;
  std::vector<StepId> stepOfTask;
  /// By task; `none` where there is no wait.
  std::vector<StepId> stepOfWait;

  /// Storages that are no inputs. Those of `empty` nodes begin with their first use.
  std::vector<uint64_t> storageBytes;
  /// Outputs are never freed.
  std::vector<bool> storagePinned;
  /// Steps that touch a storage, ascending, without repetition; the first allocates it. The wait
  /// for a collective counts as a use of its operands.
  Rows<StepId> stepsOfStorage;
  /// The transpose: a storage, and which of its steps this one is.
  struct StorageUse {
    StorageId storage;
    uint32_t index;
  };
  Rows<StorageUse> storagesOfStep;
  /// By value; `none` for storages of inputs.
  std::vector<StorageId> storageOf;
  /// Live throughout: inputs, and allocations that no task touches.
  uint64_t constantBytes = 0;

private:
  void findDependences(std::span<const NodeId> order);
  void findStorages(std::span<const NodeId> order);
};

} // namespace shardc::collectives

#endif // SHARDC_PASSES_COLLECTIVES_CORE_PROBLEM_H
