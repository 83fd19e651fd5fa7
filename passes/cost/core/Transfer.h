// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What it costs to change where a tensor is: bytes by the table of semantics.md ("Redistribution"),
// and time as latency plus bytes. Placement, the planner of redistributions and reports take their
// figures from here.

#ifndef SHARDC_PASSES_COST_CORE_TRANSFER_H
#define SHARDC_PASSES_COST_CORE_TRANSFER_H

#include "dialects/sharding/Layout.h"
#include "passes/cost/core/CostModel.h"

#include <array>
#include <map>
#include <vector>

namespace shardc::cost {

/// Size that stands for a dim whose size is not known.
inline constexpr int64_t kAssumedDynamicSize = 128;

/// Bytes that a rank sends (and receives) in a collective over n ranks with even shards, by the
/// ring algorithms. `bytes` is the full size: the result of an all-gather, the operand of every
/// other kind, on one rank.
double ringBytes(CollectiveKind kind, double bytes, int64_t n);

/// What one mesh axis does to a tensor, as far as costs go.
struct AxisUse {
  PlacementKind kind = PlacementKind::Replicate;
  int64_t dim = 0;                      ///< Shard
  Reduction reduction = Reduction::Sum; ///< Partial
};

/// Bytes that a rank sends to take a tensor of `bytes` (whole over this axis, sharded by the
/// others) from one use of an axis of n coordinates to another. An open placement counts as
/// replicated. `sameSplit`: whether two shards of one dim have the same extents; where they have
/// not, ranks exchange what lies between.
double transitionBytes(const AxisUse &from, const AxisUse &to, bool sameSplit, double bytes,
                       int64_t n);

/// Latency, and time for each byte that a rank sends.
struct LinkCost {
  double latencyUs = 0;
  double usPerByte = 1;
  bool operator==(const LinkCost &) const = default;
};

/// The links of a mesh, by kind of collective and set of axes.
class LinkCosts {
public:
  /// Bytes alone count: no latency, and a microsecond a byte everywhere.
  LinkCosts() = default;
  /// One entry for each mesh axis. A group over several axes has the sum of their latencies and the
  /// bandwidth of the slowest.
  explicit LinkCosts(std::vector<LinkCost> axes) : axes(std::move(axes)) {}
  /// By the model, for the first group of ranks along each set of axes. The mesh and the model must
  /// outlive this object.
  LinkCosts(const CostModel &model, const Mesh &mesh) : model(&model), mesh(&mesh) {}

  LinkCost of(CollectiveKind kind, std::span<const unsigned> meshAxes) const;
  /// The least time for a byte on any link of a mesh of `numAxes` axes.
  double fastest(unsigned numAxes) const;

private:
  std::vector<LinkCost> axes;
  const CostModel *model = nullptr;
  const Mesh *mesh = nullptr;
  mutable std::map<std::pair<CollectiveKind, std::vector<unsigned>>, LinkCost> known;
};

} // namespace shardc::cost

#endif // SHARDC_PASSES_COST_CORE_TRANSFER_H
