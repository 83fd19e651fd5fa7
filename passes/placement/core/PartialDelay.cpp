// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/placement/core/PartialDelay.h"

#include "passes/placement/core/Claims.h"

#include <algorithm>

namespace shardc {

static bool contains(const std::vector<unsigned> &set, size_t operand) {
  return std::find(set.begin(), set.end(), operand) != set.end();
}

static bool hasFactor(const TensorFactors &dims, unsigned factor) {
  return std::any_of(dims.begin(), dims.end(), [&](const DimFactors &dim) {
    return std::find(dim.begin(), dim.end(), factor) != dim.end();
  });
}

PartialDelay::PartialDelay(const PropagationGraph &graph, Propagation &propagation,
                           ChangeCosts &changes)
    : graph(graph), propagation(propagation), changes(changes),
      origins(graph.tensors.size() * graph.numAxes(), kNone) {
  Claims claims(graph, propagation.states, propagation.sizes);
  claimOf.reserve(graph.ops.size() * graph.numAxes());
  for (OpId op = 0; op < graph.ops.size(); ++op)
    for (unsigned axis = 0; axis < graph.numAxes(); ++axis) {
      unsigned factor = claims.factorOf(op, axis);
      bool reduces = factor != kNone && graph.rule(op).factors[factor].kind == FactorKind::Reducing;
      claimOf.push_back(factor == kNone ? Claimed::Nothing
                        : reduces       ? Claimed::Reducing
                                        : Claimed::Shard);
      claimedFactor.push_back(factor);
    }
  std::vector<bool> reduced;
  for (; rounds < kRounds && predictPartials(reduced); ++rounds) {
    usesDelay.assign(origins.size(), 0);
    for (OpId op = static_cast<OpId>(graph.ops.size()); op-- > 0;)
      for (unsigned axis = 0; axis < graph.numAxes(); ++axis)
        visit(op, axis);
    reduced.assign(origins.size(), false);
    for (TensorId tensor = 0; tensor < graph.tensors.size(); ++tensor)
      for (unsigned axis = 0; axis < graph.numAxes(); ++axis)
        reduced[index(tensor, axis)] = reducedAnyway(tensor, axis);
  }
}

bool PartialDelay::predictPartials(const std::vector<bool> &reduced) {
  std::vector<TensorId> before = std::move(origins);
  origins.assign(before.size(), kNone);
  auto set = [&](TensorId tensor, unsigned axis, TensorId origin) {
    if (reduced.empty() || !reduced[index(tensor, axis)])
      origins[index(tensor, axis)] = origin;
  };
  for (TensorId tensor = 0; tensor < graph.tensors.size(); ++tensor)
    for (unsigned axis = 0; axis < graph.numAxes(); ++axis) {
      const AxisState &state = propagation.states[index(tensor, axis)];
      if (state.isFinal && state.placement.isPartial())
        set(tensor, axis, tensor);
    }
  for (OpId op = 0; op < graph.ops.size(); ++op)
    for (unsigned axis = 0; axis < graph.numAxes(); ++axis) {
      Claimed claim = claimOf[size_t(op) * graph.numAxes() + axis];
      if (claim != Claimed::Reducing && graph.rule(op).linearIn.empty())
        continue;
      std::span<const TensorId> results = graph.results(op);
      for (size_t r = 0; r < results.size(); ++r) {
        bool isReduced = claim == Claimed::Reducing &&
                         !hasFactor(graph.rule(op).results[r],
                                    claimedFactor[size_t(op) * graph.numAxes() + axis]);
        TensorId origin =
            isReduced ? results[r] : originOf(op, axis, results[r], claim != Claimed::Nothing);
        if (origin != kNone)
          set(results[r], axis, origin);
      }
    }
  return origins != before || rounds == 0;
}

TensorId PartialDelay::originOf(OpId op, unsigned axis, TensorId result, bool isSharded) const {
  std::span<const TensorId> operands = graph.operands(op);
  TensorId origin = kNone;
  for (const std::vector<unsigned> &set : graph.rule(op).linearIn) {
    auto isPartial = [&](unsigned i) { return origins[index(operands[i], axis)] != kNone; };
    // Where the op is asked to shard the axis, nothing but a sum of partial values stays one.
    if (isSharded && (set.size() < 2 || !std::all_of(set.begin(), set.end(), isPartial)))
      continue;
    for (unsigned i : set)
      if (TensorId next = origins[index(operands[i], axis)]; next != kNone)
        origin = origin == kNone || origin == next ? next : result;
  }
  return origin;
}

double PartialDelay::reduceNow(TensorId tensor, unsigned axis) const {
  return reduceTo(tensor, axis, propagation.states[index(tensor, axis)].placement);
}

double PartialDelay::reduceTo(TensorId tensor, unsigned axis, const AxisPlacement &to) const {
  row.clear();
  for (unsigned a = 0; a < graph.numAxes(); ++a)
    row.push_back(propagation.states[index(tensor, a)].placement);
  return changes.ofAxis(tensor, axis, row, AxisPlacement::partial(Reduction::Sum), to);
}

const AxisPlacement *PartialDelay::reducedAnyway(TensorId tensor, unsigned axis) const {
  static const AxisPlacement whole = AxisPlacement::replicate();
  const AxisPlacement &wanted = propagation.states[index(tensor, axis)].placement;
  const AxisPlacement &to = wanted.isShard() ? wanted : whole;
  if (usesDelay[index(tensor, axis)] == 0)
    return nullptr; // nothing costs less
  return usesDelay[index(tensor, axis)] > reduceTo(tensor, axis, to) ? &to : nullptr;
}

double PartialDelay::delay(TensorId tensor, unsigned axis) const {
  const AxisState &state = propagation.states[index(tensor, axis)];
  if (state.annotated && !state.placement.isPartial())
    return reduceNow(tensor, axis); // it may not be partial
  double uses = usesDelay[index(tensor, axis)];
  return uses == 0 ? 0 : std::min(reduceNow(tensor, axis), uses);
}

/// Whether operand `other` is partial also if `operand` is reduced.
bool PartialDelay::staysPartial(OpId op, unsigned axis, size_t operand, size_t other) const {
  TensorId mine = origins[index(graph.operands(op)[operand], axis)];
  TensorId theirs = origins[index(graph.operands(op)[other], axis)];
  return theirs != kNone && theirs != mine;
}

void PartialDelay::visit(OpId op, unsigned axis) {
  const ShardingRule &rule = graph.rule(op);
  std::span<const TensorId> operands = graph.operands(op);
  if (graph.isFinalRedistribution(op)) {
    TensorId result = graph.results(op)[0];
    const AxisPlacement &to = propagation.states[index(result, axis)].placement;
    double cost = reduceTo(operands[0], axis, to);
    if (to.isPartial()) // what needs the total of the result reduces it
      cost += std::min(reduceTo(result, axis, AxisPlacement::replicate()),
                       usesDelay[index(result, axis)]);
    usesDelay[index(operands[0], axis)] += cost;
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
        if (joint && staysPartial(op, axis, i, j))
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
