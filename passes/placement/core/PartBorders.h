// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where a program cuts the features that a projection makes, so that they can be sharded in blocks
// of which none is across a cut.
#ifndef SHARDC_PASSES_PLACEMENT_CORE_PARTBORDERS_H
#define SHARDC_PASSES_PLACEMENT_CORE_PARTBORDERS_H

#include "passes/placement/core/Uses.h"

#include <map>
#include <optional>

namespace shardc {

/// A fused projection makes queries, keys and values, or all inputs of a state-space layer, in one
/// matrix; slices and splits take them apart, some of them in several steps.
class PartBorders {
public:
  explicit PartBorders(const PropagationGraph &graph) : graph(graph) {}

  /// The borders of the parts, ascending, with 0 and the size of the dim among them. Nothing where
  /// the dim is not cut, or into parts of one size (which rules describe by factors), or is not the
  /// last dim of a contraction or what ops that keep its order make of that.
  const std::vector<int64_t> *of(TensorId tensor, unsigned dim);

private:
  const std::vector<int64_t> &look(TensorId tensor, unsigned dim, unsigned depth);
  void lookAt(OpId op, unsigned slot, unsigned dim, unsigned depth, std::vector<int64_t> &borders);

  const PropagationGraph &graph;
  std::optional<Uses> uses; ///< made when the first question is asked
  std::map<std::pair<TensorId, unsigned>, std::vector<int64_t>> known;
};

} // namespace shardc

#endif // SHARDC_PASSES_PLACEMENT_CORE_PARTBORDERS_H
