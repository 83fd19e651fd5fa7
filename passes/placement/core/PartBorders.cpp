// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/placement/core/PartBorders.h"

#include "passes/placement/core/Split.h"

#include <algorithm>

namespace shardc {

/// Adds the borders that one op, which uses the dim of its operand `slot`, and those behind it
/// make.
void PartBorders::lookAt(OpId op, unsigned slot, unsigned dim, unsigned depth,
                         std::vector<int64_t> &borders) {
  const ShardingRule &rule = graph.rule(op);
  const DimFactors &factors = rule.operands[slot][dim];
  if (factors.empty())
    return;
  int64_t size = graph.shape(graph.operands(op)[slot])[dim];
  auto add = [&](int64_t border) {
    if (0 < border && border < size)
      borders.push_back(border);
  };
  std::vector<FactorPart> parts = graph.parts(op);
  const FactorPart *whole = RuleDim{rule, false, slot, dim, parts}.part();
  if (whole && rule.operands.size() > 1) // of what it joins, it is a part
    return;
  for (unsigned r = 0; r < rule.results.size(); ++r)
    for (unsigned d = 0; d < rule.results[r].size(); ++d) {
      const DimFactors &made = rule.results[r][d];
      if (whole && !made.empty() && made.back() == factors.back()) {
        int64_t begin = RuleDim{rule, true, r, d, parts}.part()->begin - whole->begin;
        for (int64_t border : look(graph.results(op)[r], d, depth + 1))
          add(begin + border);
        continue;
      }
      if (whole || made.empty() || made.front() != factors.front())
        continue;
      const Factor &factor = rule.factors[factors.front()];
      int64_t then = graph.shape(graph.results(op)[r])[d];
      bool isKept = factor.canShard() && factor.kind != FactorKind::Neighbouring;
      if (!isKept || factor.size <= 0 || then <= 0)
        continue;
      // Elements for each iteration of the factor, before and after the op.
      int64_t before = size / factor.size, after = then / factor.size;
      for (int64_t border : look(graph.results(op)[r], d, depth + 1))
        if (border % after == 0)
          add(border / after * before);
    }
}

const std::vector<int64_t> &PartBorders::look(TensorId tensor, unsigned dim, unsigned depth) {
  // Ops are few between a projection and what is made of it.
  constexpr unsigned mostOps = 12;
  static const std::vector<int64_t> nothing;
  int64_t size = graph.shape(tensor)[dim];
  if (depth > mostOps || size == kDynamic)
    return nothing;
  auto [found, isNew] = known.try_emplace({tensor, dim});
  if (!isNew)
    return found->second;
  std::vector<int64_t> borders{0, size};
  for (OpId op : uses->of(tensor))
    for (unsigned slot = 0; slot < graph.ops[op].numOperands; ++slot)
      if (graph.operands(op)[slot] == tensor)
        lookAt(op, slot, dim, depth, borders);
  std::sort(borders.begin(), borders.end());
  borders.erase(std::unique(borders.begin(), borders.end()), borders.end());
  return known[{tensor, dim}] = std::move(borders);
}

const std::vector<int64_t> *PartBorders::of(TensorId tensor, unsigned dim) {
  if (!uses) {
    uses.emplace(graph);
    for (OpId op = 0; op < graph.ops.size(); ++op) {
      const ShardingRule &rule = graph.rule(op);
      auto isReducing = [](const Factor &f) { return f.kind == FactorKind::Reducing; };
      if (std::none_of(rule.factors.begin(), rule.factors.end(), isReducing))
        continue;
      for (TensorId result : graph.results(op))
        if (!graph.shape(result).empty())
          look(result, static_cast<unsigned>(graph.shape(result).size()) - 1, 0);
    }
  }
  auto found = known.find({tensor, dim});
  if (found == known.end() || found->second.size() <= 2)
    return nullptr;
  const std::vector<int64_t> &borders = found->second;
  for (size_t i = 2; i < borders.size(); ++i)
    if (borders[i] - borders[i - 1] != borders[1])
      return &borders;
  return nullptr;
}

} // namespace shardc
