// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the tensors of an op ask of a mesh axis: which of its factors the axis shards.
#ifndef SHARDC_PASSES_PLACEMENT_CORE_CLAIMS_H
#define SHARDC_PASSES_PLACEMENT_CORE_CLAIMS_H

#include "passes/placement/core/DeadEnds.h"
#include "passes/placement/core/PartBorders.h"
#include "passes/placement/core/Propagate.h"

namespace shardc {

/// One factor that an axis is asked for on, in one op.
struct Claim {
  FactorSplit split;
  Strength strength;
  bool isFinal; ///< of a tensor that has a layout already: before all others
  size_t index; ///< among the op's claims, for a stable order
};

/// Reads states, which may change between calls. Tied tensors share the state of the input.
class Claims {
public:
  Claims(const PropagationGraph &graph, const std::vector<AxisState> &states, SizesPool &sizes)
      : graph(graph), states(states), sizes(sizes), deadEnds(graph), borders(graph) {}

  /// The claims of one op on one axis, operands first; valid until the next call.
  std::vector<Claim> &collect(OpId op, unsigned axis);
  /// The factor that wins among the claims that were collected for `op` and `axis`, of which there
  /// must be one: the strongest, then the one for which fewer bytes move.
  unsigned chooseFactor(OpId op, unsigned axis) const;

  /// Of the op that was asked for last.
  std::span<const FactorPart> parts() const { return partsOfOp; }

  /// The factor of the op that the axis shards, or kNone.
  unsigned factorOf(OpId op, unsigned axis) {
    return collect(op, axis).empty() ? kNone : chooseFactor(op, axis);
  }

  /// Smaller is followed first.
  static std::pair<bool, Strength> rank(const Claim &claim) {
    return {!claim.isFinal, claim.strength};
  }

private:
  const AxisState &state(TensorId tensor, unsigned axis) const {
    if (TensorId input = graph.tiedInput(tensor); input != kNone)
      tensor = input;
    return states[size_t(tensor) * graph.numAxes() + axis];
  }
  void findRange(OpId op, unsigned axis);
  bool isInProportion(const RuleDim &dim, const Split &split, const FactorSplit &claimed);
  double bytesMoved(OpId op, unsigned axis, unsigned factor) const;

  const PropagationGraph &graph;
  const std::vector<AxisState> &states;
  SizesPool &sizes;
  DeadEnds deadEnds;
  PartBorders borders;
  std::vector<FactorPart> partsOfOp;
  /// Of the op being asked: the factor whose range is sharded in blocks of parts, or kNone, and the
  /// borders of these that are known beside what claims say.
  unsigned rangeFactor = kNone;
  std::vector<int64_t> rangeBorders;
  std::vector<Claim> claims;
};

} // namespace shardc

#endif // SHARDC_PASSES_PLACEMENT_CORE_CLAIMS_H
