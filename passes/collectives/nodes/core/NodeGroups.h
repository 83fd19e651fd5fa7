// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Groups of ranks that span several nodes of a machine, as groups within the nodes and groups
// between them.

#ifndef SHARDC_PASSES_COLLECTIVES_NODES_CORE_NODEGROUPS_H
#define SHARDC_PASSES_COLLECTIVES_NODES_CORE_NODEGROUPS_H

#include "support/Reduction.h"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace shardc::collectives {

/// Why a collective stays one over all of its ranks.
enum class WhyFlat : uint8_t {
  Splits,      ///< it does not
  OneNode,     ///< its ranks are on one node, or each on a node of its own
  Unequal,     ///< nodes hold different numbers of its ranks, or not in an order of nodes
  UnknownRank, ///< nobody says which ranks take part
  Symbolic,    ///< a size is symbolic
  Indivisible, ///< the ranks of a node cannot have equal shares
  Inexact,     ///< what is reduced within nodes is no value of the element type
  OtherKind,   ///< no all-gather, reduce-scatter or all-reduce
};
inline constexpr size_t numWhyFlat = 8;

/// Equal groups that lie alike on their nodes.
struct NodeGroups {
  /// How many nodes a group spans, and how many of its ranks each of them holds: at least 2.
  uint32_t nodes = 2, ranksOnNode = 2;
  /// Where the ranks of all groups are in order of nodes. The position of rank `place` of node
  /// `node` is node * ranksOnNode + place (ByNode) or place * nodes + node (ByPlace).
  enum class Order : uint8_t { ByNode, ByPlace, Neither };
  Order order = Order::ByNode;
  /// The ranks of one node, in order of position: groups of `ranksOnNode`, one after the other,
  /// those with the lowest first rank first.
  std::vector<int64_t> within;
  /// The ranks of equal place, in order of node: groups of `nodes`.
  std::vector<int64_t> between;
};

/// Splits groups of `size` ranks, listed one after the other, where rank r is on node
/// r / ranksPerNode. Sets `why` and returns nothing where that is impossible.
std::optional<NodeGroups> splitGroups(std::span<const int64_t> ranks, uint32_t size,
                                      uint32_t ranksPerNode, WhyFlat &why);

/// Numbers, by what becomes of them when they are reduced in two steps.
enum class NumberClass : uint8_t {
  Wide,    ///< floating point with the range of f32 or more
  Narrow,  ///< floating point with less: sums within a node may overflow where the whole does not
  Integer, ///< and booleans
};

/// Whether a reduction may be rounded to the element type once more in between: a sum within a node
/// must not overflow where that of all ranks does not, and integer averages would be cut twice.
bool mayReduceTwice(Reduction reduction, NumberClass numbers);

} // namespace shardc::collectives

#endif // SHARDC_PASSES_COLLECTIVES_NODES_CORE_NODEGROUPS_H
