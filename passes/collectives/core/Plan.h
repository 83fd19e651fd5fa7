// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the optimiser decides: an order in which the nodes of a graph are issued, with some
// collectives merged into buckets. A bucket is packed (its operands copied side by side), started,
// waited for, and unpacked; the results of a reduce-scatter are used where they land.

#ifndef SHARDC_PASSES_COLLECTIVES_CORE_PLAN_H
#define SHARDC_PASSES_COLLECTIVES_CORE_PLAN_H

#include "passes/collectives/core/Graph.h"

#include <iosfwd>

namespace shardc::collectives {

using BucketId = uint32_t;

struct PlanItem {
  enum class Kind : uint8_t { Op, Pack, Start, Wait, Unpack };
  Kind kind;
  /// A NodeId for Op, else a BucketId.
  uint32_t id;
};

struct Plan {
  /// Issue order. Nodes of free classes may be left out: they run when a later node needs them. Of
  /// several waits for one collective the first is listed, the others are then free.
  std::vector<PlanItem> items;
  /// Members of each bucket, two or more collectives of one kind, group and reduction.
  std::vector<std::vector<NodeId>> buckets;
};

/// Every node of the graph in its own order.
Plan identityPlan(const Graph &graph);

/// Whether results of a bucket of this kind have to be copied out of it.
inline bool needsUnpack(CollectiveKind kind) { return kind != CollectiveKind::ReduceScatter; }

/// All nodes of the graph in the order in which a plan that checkPlan accepts runs them: members of
/// a bucket one after the other, waits for members where the bucket is waited for, free nodes where
/// they are first needed.
std::vector<NodeId> nodeOrder(const Graph &graph, const Plan &plan);

/// Writes the plan as JSON: an array, in issue order, of {"op": NAME}, {"pack": ID}, {"start": ID,
/// "kind": K, "members": [NAMES]}, {"wait": ID}, {"unpack": ID}. Bucket IDs are "bucket0", ... made
/// unlike any node's name.
void writePlan(const Graph &graph, const Plan &plan, std::ostream &out);

} // namespace shardc::collectives

#endif // SHARDC_PASSES_COLLECTIVES_CORE_PLAN_H
