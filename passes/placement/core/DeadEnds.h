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
///
/// A part that all heads share (keys and values of multi-query attention, inputs of a state-space
/// layer of one group) has nothing to shard but the features inside of it. Each head needs all of
/// them: they are gathered before they are repeated for the heads, and not after.
class DeadEnds {
public:
  explicit DeadEnds(const PropagationGraph &graph) : graph(graph) {}

  /// Whether each op that uses the tensor, through ops that only move data, selects from the dim or
  /// needs it whole. Once it is repeated along a dim before this one, also whether all that is made
  /// of it is summed over the dim in the end.
  bool isDeadEnd(TensorId tensor, unsigned dim) { return look({tensor, dim, false}, 0); }
  /// The same, of a tensor that is cut out of another one.
  bool isSharedPart(TensorId tensor, unsigned dim);

  /// The factors of dim `dim` of operand 0 of a view whose dims of the result are dead ends.
  std::vector<unsigned> factorsOf(OpId view, unsigned dim);

private:
  struct Place {
    TensorId tensor;
    unsigned dim;
    bool isRepeated;
    auto operator<=>(const Place &) const = default;
  };
  bool look(Place place, unsigned depth);
  bool endsIn(OpId op, unsigned slot, const Place &place, unsigned depth);

  const PropagationGraph &graph;
  std::optional<Uses> uses; ///< made when the first question is asked
  std::map<Place, bool> known;
};

} // namespace shardc

#endif // SHARDC_PASSES_PLACEMENT_CORE_DEADENDS_H
