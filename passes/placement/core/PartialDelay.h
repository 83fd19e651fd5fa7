// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What it costs to leave a partial tensor partial (semantics.md G1).
//
// A partial value must be reduced before the first op that is not linear in it. Until then it may
// pass through linear ops for free, which pays where it meets another partial value (one reduction
// instead of two) or becomes smaller. For each tensor t and axis:
//
//   delay(t) = min(reduce t now, sum over the uses of t of what the use costs)
//   a use in an op that is not linear in t costs infinitely much (t is reduced once, for all uses);
//   a use in a linear op costs delay(results), or nothing where another operand will be partial
//   whatever becomes of t: where its partial sums are not those of the same origin;
//   a redistribution that the program has already costs what reduces t to its target, and where
//   that is partial what its uses cost.
//
// Which operands will be partial follows from delays in turn, since what is reduced for all its
// uses is not: at first nothing is taken to be reduced, then what the delays of the last round say.
// A round is one pass in order of execution and one in reverse order. Rounds end when no origin
// changes, or after kRounds.
#ifndef SHARDC_PASSES_PLACEMENT_CORE_PARTIALDELAY_H
#define SHARDC_PASSES_PLACEMENT_CORE_PARTIALDELAY_H

#include "passes/placement/core/ChangeCosts.h"
#include "passes/placement/core/Propagate.h"

namespace shardc {

class PartialDelay {
public:
  static constexpr unsigned kRounds = 4;

  PartialDelay(const PropagationGraph &graph, Propagation &propagation, ChangeCosts &changes);

  /// Bytes moved from here on if `tensor` is P(sum) or P(avg) over `axis`.
  double delay(TensorId tensor, unsigned axis) const;
  /// What a tensor that is partial over `axis` is reduced to if that is what costs least for all
  /// its uses together, so that each of them may as well have it so; null if none needs it, or if
  /// it stays partial.
  const AxisPlacement *reducedAnyway(TensorId tensor, unsigned axis) const;
  /// Bytes of reducing `tensor` over `axis` into the layout that propagation found for it.
  double reduceNow(TensorId tensor, unsigned axis) const;
  /// Rounds that were made.
  unsigned numRounds() const { return rounds; }

private:
  /// Bytes of reducing `tensor` over `axis` to a given placement.
  double reduceTo(TensorId tensor, unsigned axis, const AxisPlacement &to) const;
  size_t index(TensorId tensor, unsigned axis) const {
    return size_t(tensor) * graph.numAxes() + axis;
  }
  /// Whether that changed anything. `reduced`, which follows from the delays of the last round, may
  /// be empty.
  bool predictPartials(const std::vector<bool> &reduced);
  /// Where the partial sums of a result start if the op is linear in them; kNone if it gets none.
  TensorId originOf(OpId op, unsigned axis, TensorId result, bool isSharded) const;
  bool staysPartial(OpId op, unsigned axis, size_t operand, size_t other) const;
  void visit(OpId op, unsigned axis);

  const PropagationGraph &graph;
  const Propagation &propagation;
  ChangeCosts &changes;
  unsigned rounds = 0;
  /// By op and axis: what propagation asks the axis to do.
  enum class Claimed : uint8_t { Nothing, Shard, Reducing };
  std::vector<Claimed> claimOf;
  std::vector<unsigned> claimedFactor; ///< likewise; kNone where nothing is claimed
  /// By tensor and axis, predicted: the tensor whose reduction would make this one whole, for sums
  /// of several partial values the sum itself; kNone for what is not partial.
  std::vector<TensorId> origins;
  std::vector<double> usesDelay;          ///< sum over uses
  mutable std::vector<AxisPlacement> row; ///< scratch
};

} // namespace shardc

#endif // SHARDC_PASSES_PLACEMENT_CORE_PARTIALDELAY_H
