// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef SHARDC_PASSES_PLACEMENT_CORE_USES_H
#define SHARDC_PASSES_PLACEMENT_CORE_USES_H

#include "passes/placement/core/Graph.h"

namespace shardc {

/// The ops that use each tensor, in order; an op that uses a tensor twice occurs twice.
class Uses {
public:
  explicit Uses(const PropagationGraph &graph) : begin(graph.tensors.size() + 1, 0) {
    for (TensorId tensor : graph.operandTensors)
      ++begin[tensor + 1];
    for (size_t t = 0; t < graph.tensors.size(); ++t)
      begin[t + 1] += begin[t];
    users.resize(graph.operandTensors.size());
    std::vector<unsigned> next(begin.begin(), begin.end() - 1);
    for (OpId op = 0; op < graph.ops.size(); ++op)
      for (TensorId tensor : graph.operands(op))
        users[next[tensor]++] = op;
  }
  std::span<const OpId> of(TensorId tensor) const {
    return std::span(users).subspan(begin[tensor], begin[tensor + 1] - begin[tensor]);
  }

private:
  std::vector<unsigned> begin;
  std::vector<OpId> users;
};

} // namespace shardc

#endif // SHARDC_PASSES_PLACEMENT_CORE_USES_H
