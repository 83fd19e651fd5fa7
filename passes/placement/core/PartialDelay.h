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
//   anyway;
//   a redistribution that the program has already costs what reduces t to its target.
//
// One pass in reverse order of execution.
#ifndef SHARDC_PASSES_PLACEMENT_CORE_PARTIALDELAY_H
#define SHARDC_PASSES_PLACEMENT_CORE_PARTIALDELAY_H

#include "passes/placement/core/Propagate.h"

namespace shardc {

class PartialDelay {
public:
  PartialDelay(const PropagationGraph &graph, Propagation &propagation);

  /// Bytes moved from here on if `tensor` is P(sum) or P(avg) over `axis`.
  double delay(TensorId tensor, unsigned axis) const;
  /// What a tensor that is partial over `axis` is reduced to if that is what costs least for all
  /// its uses together, so that each of them may as well have it so; null if none needs it, or if
  /// it stays partial.
  const AxisPlacement *reducedAnyway(TensorId tensor, unsigned axis) const;
  /// Bytes of reducing `tensor` over `axis` into the layout that propagation found for it.
  double reduceNow(TensorId tensor, unsigned axis) const;

private:
  /// Bytes of reducing `tensor` over `axis` to a given placement.
  double reduceTo(TensorId tensor, unsigned axis, const AxisPlacement &to) const;
  size_t index(TensorId tensor, unsigned axis) const {
    return size_t(tensor) * graph.numAxes() + axis;
  }
  void predictPartials(SizesPool &sizes);
  void visit(OpId op, unsigned axis);

  const PropagationGraph &graph;
  const Propagation &propagation;
  std::vector<bool> partial;     ///< predicted, by tensor and axis
  std::vector<double> usesDelay; ///< sum over uses
};

} // namespace shardc

#endif // SHARDC_PASSES_PLACEMENT_CORE_PARTIALDELAY_H
