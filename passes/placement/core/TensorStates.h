// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The states that propagation leaves, as they are written into the IR and read back.
#ifndef SHARDC_PASSES_PLACEMENT_CORE_TENSORSTATES_H
#define SHARDC_PASSES_PLACEMENT_CORE_TENSORSTATES_H

#include "passes/placement/core/Propagate.h"

namespace shardc {

/// The state of one axis, and of all axes of one tensor. What only propagation needs (who made
/// extents coarser) is left out; all else comes back from `stateOf` as it was.
AxisSharding shardingOf(const AxisState &state);
Sharding shardingOf(const Mesh &mesh, std::span<const AxisState> states);
/// What a tensor is to become that belongs to one of layout `layout`, as a gradient does: sharded
/// as it is. Where it is not, nothing is asked.
Sharding wishFor(const Layout &layout, std::span<const int64_t> shape);
/// The layout as something that is given. Nothing where a sharding cannot say it (extents inside of
/// uneven pieces).
std::optional<Sharding> exactlyAs(const Layout &layout, std::span<const int64_t> shape);
std::vector<AxisState> statesOf(const Sharding &sharding, SizesPool &sizes);

/// The entry of one axis as it is written, e.g. `S(0) given`.
std::string textOf(const AxisState &state, unsigned axis);

/// Where the states of a propagation, which may have been written by hand, cannot be placed as they
/// are: an annotation of the graph is not kept, tied tensors differ, or a tensor has no layout that
/// says what its axes say. The work is linear in the tensors.
std::vector<Refusal> checkStates(const PropagationGraph &graph, Propagation &propagation);

} // namespace shardc

#endif // SHARDC_PASSES_PLACEMENT_CORE_TENSORSTATES_H
