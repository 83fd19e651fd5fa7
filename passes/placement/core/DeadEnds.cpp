// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/placement/core/DeadEnds.h"

#include <algorithm>

namespace shardc {

/// The dim that has a factor.
static std::optional<unsigned> dimOf(const TensorFactors &dims, unsigned factor) {
  for (unsigned d = 0; d < dims.size(); ++d)
    if (std::find(dims[d].begin(), dims[d].end(), factor) != dims[d].end())
      return d;
  return std::nullopt;
}

/// Whether elements of the dim are taken one by one, as `x[..., 1:2]` does.
static bool takesOne(const PropagationGraph &graph, OpId op, unsigned factor) {
  const ShardingRule &rule = graph.rule(op);
  bool isTaken = false;
  for (unsigned r = 0; r < rule.results.size(); ++r)
    if (std::optional<unsigned> dim = dimOf(rule.results[r], factor)) {
      if (graph.shape(graph.results(op)[r])[*dim] != 1)
        return false;
      isTaken = true;
    }
  return isTaken;
}

/// Whether the op repeats its operand along a dim before `dim` of result `r`.
static bool repeatsBefore(const ShardingRule &rule, unsigned r, unsigned dim) {
  if (rule.operands.size() != 1)
    return false;
  const TensorFactors &made = rule.results[r];
  return std::any_of(made.begin(), made.begin() + dim, [&](const DimFactors &factors) {
    return std::any_of(factors.begin(), factors.end(), [&](unsigned f) {
      return rule.factors[f].canShard() && !dimOf(rule.operands[0], f);
    });
  });
}

bool DeadEnds::endsIn(OpId op, unsigned slot, const Place &place, unsigned depth) {
  const ShardingRule &rule = graph.rule(op);
  const DimFactors &factors = rule.operands[slot][place.dim];
  for (unsigned f : factors) {
    const Factor &factor = rule.factors[f];
    bool isReducing = factor.kind == FactorKind::Reducing;
    if (!factor.canShard() || (isReducing && (factor.inOnePiece || place.isRepeated)))
      continue;
    if (graph.ops[op].numOperands != 1 && !place.isRepeated)
      return false;
    if (factor.kind == FactorKind::Neighbouring && takesOne(graph, op, f))
      continue;
    if (factor.kind != FactorKind::Parallel)
      return false;
    bool ends = false; // of a result that has no use, nothing is known
    for (unsigned r = 0; r < rule.results.size(); ++r)
      if (std::optional<unsigned> next = dimOf(rule.results[r], f)) {
        bool isRepeated = place.isRepeated || repeatsBefore(rule, r, *next);
        if (!look({graph.results(op)[r], *next, isRepeated}, depth + 1))
          return false;
        ends = true;
      }
    if (!ends)
      return false;
  }
  return !factors.empty();
}

bool DeadEnds::look(Place place, unsigned depth) {
  // Moves are few between a projection and what is made of it.
  constexpr unsigned mostMoves = 8, mostOpsOnceRepeated = 48;
  if (depth > (place.isRepeated ? mostOpsOnceRepeated : mostMoves))
    return false;
  auto found = known.find(place);
  if (found != known.end())
    return found->second;
  if (!uses)
    uses.emplace(graph);
  std::span<const OpId> users = uses->of(place.tensor);
  bool ends = !users.empty() && std::all_of(users.begin(), users.end(), [&](OpId op) {
    for (unsigned slot = 0; slot < graph.ops[op].numOperands; ++slot)
      if (graph.operands(op)[slot] == place.tensor && !endsIn(op, slot, place, depth))
        return false;
    return true;
  });
  known[place] = ends;
  return ends;
}

bool DeadEnds::isSharedPart(TensorId tensor, unsigned dim) {
  OpId producer = graph.tensors[tensor].producer;
  if (producer == kNone || graph.ops[producer].numOperands != 1)
    return false;
  std::vector<FactorPart> parts = graph.parts(producer);
  bool isPart = std::any_of(parts.begin(), parts.end(), [&](const FactorPart &part) {
    auto isLonger = [&](const FactorPart &other) {
      return other.factor == part.factor && other.size > part.size;
    };
    return part.isResult && part.dim == dim && graph.results(producer)[part.slot] == tensor &&
           std::any_of(parts.begin(), parts.end(), isLonger);
  });
  return isPart && isDeadEnd(tensor, dim);
}

std::vector<unsigned> DeadEnds::factorsOf(OpId view, unsigned dim) {
  const ShardingRule &rule = graph.rule(view);
  std::vector<unsigned> factors;
  for (unsigned f : rule.operands[0][dim])
    if (std::optional<unsigned> made = dimOf(rule.results[0], f))
      if (isDeadEnd(graph.results(view)[0], *made))
        factors.push_back(f);
  return factors;
}

} // namespace shardc
