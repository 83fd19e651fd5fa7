// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/comm/Agreement.h"

#include "runtime/support/Types.h"

#include <algorithm>

namespace shardc::rt {

Signature::Signature(const CollectiveCall &call) {
  const shardrt_collective &c = *call.collective;
  for (uint64_t value : {uint64_t(c.kind), uint64_t(c.reduction), uint64_t(c.root)})
    add(value);
  for (const char *at = c.name ? c.name : ""; *at; ++at)
    add(uint64_t(uint8_t(*at)));
  for (uint32_t i = 0; i < 2 * c.n_pairs; ++i)
    add(uint64_t(c.permutation[i]));
  for (const CallOperand &operand : call.operands) {
    const shardrt_collective_operand &facts = *operand.facts;
    for (int32_t value : {facts.type, facts.rank, facts.gather_dim, facts.scatter_dim})
      add(uint64_t(value));
    for (int32_t dim = 0; dim < facts.rank; ++dim) // of an exchange, one is each member's own
      add(operand.isExchange() && dim == facts.gather_dim ? 0
                                                          : uint64_t(operand.extents[size_t(dim)]));
    if (!operand.isExchange())
      for (const std::vector<int64_t> *table : {&operand.gather, &operand.scatter})
        for (int64_t extent : *table)
          add(uint64_t(extent));
  }
}

std::string factsOf(const CollectiveCall &call) {
  std::string text = std::to_string(call.run) + "\n" + describe(*call.collective) + "\n";
  for (const CallOperand &operand : call.operands) {
    Extents extents = operand.extents;
    text += describe(operand.facts->type, extents.data(), operand.shape().size()) + "\n";
    if (operand.isExchange())
      extents[size_t(operand.facts->gather_dim)] = 0; // each member's own
    text += describe(operand.facts->type, extents.data(), operand.shape().size()) + "\n";
  }
  return text;
}

namespace {

std::vector<std::string> linesOf(const std::string &text) {
  std::vector<std::string> lines(2);
  size_t number = 0;
  for (size_t begin = 0; begin < text.size(); ++number) {
    size_t end = std::min(text.find('\n', begin), text.size());
    if (number == lines.size())
      lines.emplace_back();
    lines[number] = text.substr(begin, end - begin);
    begin = end + 1;
  }
  return lines;
}

std::string difference(const std::vector<std::string> &a, const std::vector<std::string> &b) {
  if (a[0] != b[0])
    return "run " + a[0] + " and run " + b[0] + " of the program";
  if (a[1] != b[1] || a.size() != b.size())
    return "different collectives";
  for (size_t i = 2; i + 1 < a.size(); i += 2)
    if (a[i + 1] != b[i + 1])
      return "operand " + std::to_string(i / 2 - 1) + ": extents " + a[i] + " and " + b[i];
  return "different dims, extents of members, reductions, roots or permutations";
}

} // namespace

std::string factsDifference(uint32_t rankA, const std::string &factsA, uint32_t rankB,
                            const std::string &factsB) {
  std::vector<std::string> a = linesOf(factsA), b = linesOf(factsB);
  return "rank " + std::to_string(rankA) + " is in " + a[1] + ", rank " + std::to_string(rankB) +
         " is in " + b[1] + " (" + difference(a, b) + ")";
}

} // namespace shardc::rt
