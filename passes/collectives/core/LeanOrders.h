// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Orders of a program that take little memory, for where its own takes too much: an order that was
// made to hide communication (gathers early, reductions late) holds what need not be held. Waits
// stand right behind their starts. Each order is near-linear in the size of the program.

#ifndef SHARDC_PASSES_COLLECTIVES_CORE_LEANORDERS_H
#define SHARDC_PASSES_COLLECTIVES_CORE_LEANORDERS_H

#include "passes/collectives/core/Problem.h"

namespace shardc::collectives {

enum class LeanOrder : uint8_t {
  /// Towards each output, the one that is on the shortest way first, what it needs: of operands the
  /// one at the end of the longest path first (a weight is gathered once what it is multiplied with
  /// is there), and everything that does not add to the live bytes as soon as it can run. The order
  /// of the program hardly counts.
  DeepestFirst,
  /// The same with outputs and operands in program order.
  DepthFirst,
  /// Always the task that adds least to the live bytes, then the oldest.
  BestFit,
  /// The same from the end of the program to its beginning.
  BestFitBackwards,
};
inline constexpr LeanOrder leanOrders[] = {LeanOrder::DeepestFirst, LeanOrder::DepthFirst,
                                           LeanOrder::BestFit, LeanOrder::BestFitBackwards};

/// All tasks, each after those that it depends on.
std::vector<TaskId> leanOrder(const Problem &problem, LeanOrder kind);

/// The peak of an order of all tasks, in bytes (peak_hold_bytes with waits behind starts).
uint64_t peakOfOrder(const Problem &problem, std::span<const TaskId> order);

/// All nodes of the graph in that order, each wait behind its start.
std::vector<NodeId> nodesInOrder(const Problem &problem, std::span<const TaskId> order);

} // namespace shardc::collectives

#endif // SHARDC_PASSES_COLLECTIVES_CORE_LEANORDERS_H
