// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Dims that are not worth sharding, because of what the program does with them next.
#ifndef SHARDC_PASSES_PLACEMENT_CORE_DEADENDS_H
#define SHARDC_PASSES_PLACEMENT_CORE_DEADENDS_H

#include "passes/placement/core/Uses.h"

#include <map>
#include <optional>

namespace shardc {

/// A fused projection of queries, keys and values is viewed as [batch, length, 3, heads, size], and
/// one of the three is selected at a time: an axis that shards the 3 has to gather them, one that
/// shards the heads has not.
class DeadEnds {
public:
  explicit DeadEnds(const PropagationGraph &graph) : graph(graph) {}

  /// Whether each op that uses the tensor, through ops that only move data, selects from the dim or
  /// needs it whole.
  bool isDeadEnd(TensorId tensor, unsigned dim) { return look(tensor, dim, 0); }

  /// The factors of dim `dim` of operand 0 of a view whose dims of the result are dead ends.
  std::vector<unsigned> factorsOf(OpId view, unsigned dim);

private:
  bool look(TensorId tensor, unsigned dim, unsigned depth);
  bool endsIn(OpId op, unsigned dim, unsigned depth);

  const PropagationGraph &graph;
  std::optional<Uses> uses; ///< made when the first question is asked
  std::map<std::pair<TensorId, unsigned>, bool> known;
};

} // namespace shardc

#endif // SHARDC_PASSES_PLACEMENT_CORE_DEADENDS_H
