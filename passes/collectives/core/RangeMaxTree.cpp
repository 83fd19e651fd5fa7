// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/collectives/core/RangeMaxTree.h"

#include <algorithm>

namespace shardc::collectives {

RangeMaxTree::RangeMaxTree(std::span<const int64_t> values) {
  while (leaves < values.size())
    leaves *= 2;
  nodes.assign(2 * leaves, {lowest, 0});
  for (uint32_t i = 0; i != values.size(); ++i)
    nodes[leaves + i].top = values[i];
  for (uint32_t node = leaves; --node != 0;)
    nodes[node].top = std::max(nodes[2 * node].top, nodes[2 * node + 1].top);
}

void RangeMaxTree::apply(uint32_t node, int64_t delta) {
  nodes[node].top += delta;
  nodes[node].added += delta; // of a leaf nobody looks at it
}

bool RangeMaxTree::pull(uint32_t node) {
  int64_t value = std::max(nodes[2 * node].top, nodes[2 * node + 1].top) + nodes[node].added;
  bool changed = nodes[node].top != value;
  nodes[node].top = value;
  return changed;
}

void RangeMaxTree::add(uint32_t begin, uint32_t end, int64_t delta) {
  if (begin >= end || delta == 0)
    return;
  uint32_t left = begin + leaves, right = end + leaves;
  for (uint32_t l = left, r = right; l < r; l /= 2, r /= 2) {
    if (l & 1)
      apply(l++, delta);
    if (r & 1)
      apply(--r, delta);
  }
  // Two paths up to where they meet, then one, which ends where nothing changes.
  uint32_t last = right - 1;
  while (left != last) {
    left /= 2;
    last /= 2;
    pull(left);
    if (left != last)
      pull(last);
  }
  while (left != 1) {
    left /= 2;
    if (!pull(left))
      return;
  }
}

int64_t RangeMaxTree::maxFrom(uint32_t begin) const {
  if (begin >= leaves)
    return lowest;
  uint32_t node = begin + leaves;
  int64_t result = nodes[node].top;
  for (; node != 1; node /= 2) {
    if ((node & 1) == 0)
      result = std::max(result, nodes[node + 1].top);
    result += nodes[node / 2].added;
  }
  return result;
}

template <bool forwards> uint32_t RangeMaxTree::nearestAbove(uint32_t from, int64_t value) const {
  uint32_t node = from + leaves;
  int64_t above = 0; // what is added to all below the node's parent
  for (uint32_t up = node / 2; up != 0; up /= 2)
    above += nodes[up].added;
  while (nodes[node].top + above <= value) {
    // On to the neighbour, which may be on a higher level.
    while ((node & 1) == (forwards ? 1 : 0)) {
      node /= 2;
      if (node <= 1)
        return nowhere;
      above -= nodes[node].added;
    }
    if (node == 1)
      return nowhere;
    node = forwards ? node + 1 : node - 1;
  }
  while (node < leaves) {
    above += nodes[node].added;
    uint32_t near = 2 * node + (forwards ? 0 : 1);
    node = nodes[near].top + above > value ? near : near ^ 1;
  }
  return node - leaves;
}

uint32_t RangeMaxTree::firstAbove(uint32_t begin, int64_t value) const {
  return begin < leaves ? nearestAbove<true>(begin, value) : nowhere;
}

uint32_t RangeMaxTree::lastAbove(uint32_t end, int64_t value) const {
  return end != 0 ? nearestAbove<false>(std::min(end, leaves) - 1, value) : nowhere;
}

} // namespace shardc::collectives
