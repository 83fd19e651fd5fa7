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

bool DeadEnds::endsIn(OpId op, unsigned dim, unsigned depth) {
  const ShardingRule &rule = graph.rule(op);
  if (graph.ops[op].numOperands != 1)
    return false;
  for (unsigned f : rule.operands[0][dim]) {
    const Factor &factor = rule.factors[f];
    if (!factor.canShard() || (factor.kind == FactorKind::Reducing && factor.inOnePiece))
      continue;
    if (factor.kind == FactorKind::Neighbouring && takesOne(graph, op, f))
      continue;
    if (factor.kind != FactorKind::Parallel)
      return false;
    bool ends = false; // of a result that has no use, nothing is known
    for (unsigned r = 0; r < rule.results.size(); ++r)
      if (std::optional<unsigned> next = dimOf(rule.results[r], f)) {
        if (!look(graph.results(op)[r], *next, depth + 1))
          return false;
        ends = true;
      }
    if (!ends)
      return false;
  }
  return !rule.operands[0][dim].empty();
}

bool DeadEnds::look(TensorId tensor, unsigned dim, unsigned depth) {
  // Moves are few between a projection and what is made of it.
  constexpr unsigned mostMoves = 8;
  if (depth > mostMoves)
    return false;
  auto found = known.find({tensor, dim});
  if (found != known.end())
    return found->second;
  if (!uses)
    uses.emplace(graph);
  std::span<const OpId> users = uses->of(tensor);
  bool ends = !users.empty() && std::all_of(users.begin(), users.end(),
                                            [&](OpId op) { return endsIn(op, dim, depth); });
  known[{tensor, dim}] = ends;
  return ends;
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
