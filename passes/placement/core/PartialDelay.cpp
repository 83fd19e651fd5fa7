// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/placement/core/PartialDelay.h"

#include "passes/placement/core/Claims.h"
#include "passes/placement/core/Transition.h"

#include <algorithm>

namespace shardc {

static constexpr double kInfinite = std::numeric_limits<double>::infinity();

static bool contains(const std::vector<unsigned> &set, size_t operand) {
  return std::find(set.begin(), set.end(), operand) != set.end();
}

PartialDelay::PartialDelay(const PropagationGraph &graph, Propagation &propagation)
    : graph(graph), propagation(propagation),
      partial(graph.tensors.size() * graph.numAxes(), false),
      usesDelay(graph.tensors.size() * graph.numAxes(), 0) {
  predictPartials(propagation.sizes);
  for (OpId op = static_cast<OpId>(graph.ops.size()); op-- > 0;)
    for (unsigned axis = 0; axis < graph.numAxes(); ++axis)
      visit(op, axis);
}

void PartialDelay::predictPartials(SizesPool &sizes) {
  Claims claims(graph, propagation.states, sizes);
  for (size_t i = 0; i < partial.size(); ++i)
    partial[i] = propagation.states[i].isFinal && propagation.states[i].placement.isPartial();
  for (OpId op = 0; op < graph.ops.size(); ++op)
    for (unsigned axis = 0; axis < graph.numAxes(); ++axis) {
      const ShardingRule &rule = graph.rule(op);
      unsigned factor = claims.factorOf(op, axis);
      bool is = factor != kNone && rule.factors[factor].kind == FactorKind::Reducing;
      if (factor == kNone)
        for (const std::vector<unsigned> &set : rule.linearIn)
          for (unsigned operand : set)
            is |= partial[index(graph.operands(op)[operand], axis)];
      if (is)
        for (TensorId result : graph.results(op))
          partial[index(result, axis)] = true;
    }
}

double PartialDelay::reduceNow(TensorId tensor, unsigned axis) const {
  return reduceTo(tensor, axis, propagation.states[index(tensor, axis)].placement);
}

double PartialDelay::reduceTo(TensorId tensor, unsigned axis, const AxisPlacement &to) const {
  const AxisState *states = &propagation.states[index(tensor, 0)];
  double bytes = bytesBesideAxis(graph, tensor, axis, [&](unsigned a) -> const AxisPlacement & {
    return states[a].placement;
  });
  return transitionBytes(AxisPlacement::partial(Reduction::Sum), to, bytes,
                         graph.mesh.axes[axis].size);
}

const AxisPlacement *PartialDelay::reducedAnyway(TensorId tensor, unsigned axis) const {
  static const AxisPlacement whole = AxisPlacement::replicate();
  const AxisPlacement &wanted = propagation.states[index(tensor, axis)].placement;
  const AxisPlacement &to = wanted.isShard() ? wanted : whole;
  return usesDelay[index(tensor, axis)] > reduceTo(tensor, axis, to) ? &to : nullptr;
}

double PartialDelay::delay(TensorId tensor, unsigned axis) const {
  const AxisState &state = propagation.states[index(tensor, axis)];
  double now = reduceNow(tensor, axis);
  if (state.annotated && !state.placement.isPartial())
    return now; // it may not be partial
  return std::min(now, usesDelay[index(tensor, axis)]);
}

void PartialDelay::visit(OpId op, unsigned axis) {
  const ShardingRule &rule = graph.rule(op);
  std::span<const TensorId> operands = graph.operands(op);
  if (graph.isFinalRedistribution(op)) {
    const AxisPlacement &to = propagation.states[index(graph.results(op)[0], axis)].placement;
    usesDelay[index(operands[0], axis)] += reduceTo(operands[0], axis, to);
    return;
  }
  double results = 0;
  if (!rule.linearIn.empty())
    for (TensorId result : graph.results(op))
      results += delay(result, axis);
  for (size_t i = 0; i < operands.size(); ++i) {
    double best = kInfinite;
    for (const std::vector<unsigned> &set : rule.linearIn) {
      if (!contains(set, i))
        continue;
      double cost = results;
      for (size_t j = 0; j < operands.size(); ++j) {
        if (operands[j] == operands[i])
          continue;
        bool joint = contains(set, j);
        if (joint && partial[index(operands[j], axis)])
          cost = std::min(cost, 0.0);
        // A factor of a product must be whole; gathering it is never free.
        if (!joint && propagation.states[index(operands[j], axis)].placement.isShard())
          cost = kInfinite;
      }
      best = std::min(best, cost);
    }
    usesDelay[index(operands[i], axis)] += best;
  }
}

} // namespace shardc
