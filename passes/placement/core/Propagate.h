// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Propagation of shardings over sharding rules, in both directions, to a fixpoint.
//
// The state is one AxisPlacement for each tensor and mesh axis: open, or replicated by annotation,
// or a shard. An op joins the shards of its operands and results that select the same factor, and
// gives the joint split to every operand and result that has the factor and is open. States only go
// from open to shard, and from a split to a coarser one (blocks and granule multiply), so each
// changes at most 1 + log2(size of the dim) times, and every change visits the ops of one tensor:
// the work is linear in the uses of tensors.
//
// Order: annotations of normal strength first, through ops that contract nothing, then through all;
// then the same with weak annotations. Inside a round ops are visited in order of execution, then
// in reverse order, so that an op in the middle of a program sees what both sides ask before it
// decides.
//
// Tensors that have a layout already are sources of the first round, and wishes of the round of
// their strength. What a redistribution to a final layout starts from is asked for in the last
// round only, as a weak wish: it can be had from whatever the ops before make.
//
// Where one axis is asked for on two factors of an op, the factor of a tensor that has a layout
// wins, then that of a pinned one, then the stronger annotation, then the one for which the op's
// tensors move fewer bytes.
#ifndef SHARDC_PASSES_PLACEMENT_CORE_PROPAGATE_H
#define SHARDC_PASSES_PLACEMENT_CORE_PROPAGATE_H

#include "passes/placement/core/Compose.h"
#include "passes/placement/core/Graph.h"

namespace shardc {

/// The state of one tensor on one mesh axis.
struct AxisState {
  AxisPlacement placement;
  Strength strength = Strength::Normal;
  bool annotated = false;
  OpId coarsenedBy = kNone; ///< the op whose factors made open extents coarser, last
  bool isFinal = false;     ///< of a tensor that has a layout already; nothing changes it
};

/// What propagation and placement say about one tensor or op, for people.
struct Remark {
  enum class Kind : uint8_t {
    CoarserExtents, ///< open extents of an annotation follow whole heads, groups or blocks
    Conflict,       ///< an annotated input is gathered for an op that uses the axis otherwise
    Gathered,       ///< a sharded operand is gathered: the op cannot be sharded so
    Unfollowed,     ///< a result is neither made nor used as its state asks
  };
  Kind kind = Kind::Conflict;
  TensorId tensor = kNone;
  OpId op = kNone;
  unsigned axis = 0;
  std::string text;
};

/// What the compiler cannot do as it is told to, and where.
struct Refusal {
  TensorId tensor = kNone;
  OpId op = kNone;
  std::string text;
};

struct Propagation {
  /// By tensor, then axis.
  std::vector<AxisState> states;
  std::vector<Remark> remarks;
  std::vector<std::string> errors;
  int64_t visits = 0; ///< of ops, all rounds
  SizesPool sizes;    ///< owns what the states point to
};

Propagation propagate(const PropagationGraph &graph);

/// Writes what tensors with a final layout have into their states.
void setFinalStates(const PropagationGraph &graph, Propagation &propagation);

/// What each axis of an annotation does by itself. Where no order is given, weak axes chunk what
/// the others leave: gathering them then restores what ops compute with.
std::vector<AxisPlacement> placementsOf(const Annotation &annotation, SizesPool &sizes);

} // namespace shardc

#endif // SHARDC_PASSES_PLACEMENT_CORE_PROPAGATE_H
