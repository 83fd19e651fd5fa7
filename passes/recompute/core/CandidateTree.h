// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef SHARDC_PASSES_RECOMPUTE_CORE_CANDIDATETREE_H
#define SHARDC_PASSES_RECOMPUTE_CORE_CANDIDATETREE_H

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace shardc::recompute {

/// Intervals of steps with a worth: the best of those that contain a step. Intervals of a forward
/// and its backward are nested, so that a search looks at few nodes; removals and changes are
/// logarithmic.
class CandidateTree {
public:
  struct Candidate {
    uint32_t id;
    /// Contains the steps between these, both excluded.
    uint32_t begin, end;
    double worth;
  };

  explicit CandidateTree(std::vector<Candidate> list) : candidates(std::move(list)) {
    std::sort(candidates.begin(), candidates.end(), [](const Candidate &a, const Candidate &b) {
      return a.begin != b.begin ? a.begin < b.begin : a.id < b.id;
    });
    leaves = std::bit_ceil(std::max<size_t>(candidates.size(), 1));
    nodes.resize(2 * leaves);
    for (uint32_t i = 0; i != candidates.size(); ++i)
      nodes[leaves + i] = leafOf(i);
    for (uint32_t node = leaves; --node != 0;)
      pull(node);
  }

  /// The position of the best, which `at` takes; of equals the first in order.
  std::optional<uint32_t> bestAt(uint32_t step) const {
    auto after = std::partition_point(candidates.begin(), candidates.end(),
                                      [&](const Candidate &c) { return c.begin < step; });
    uint32_t count = after - candidates.begin(), best = kNone;
    if (count != 0)
      search(1, 0, leaves - 1, count - 1, step, best);
    return best == kNone ? std::nullopt : std::optional(best);
  }
  const Candidate &at(uint32_t position) const { return candidates[position]; }

  void setWorth(uint32_t position, double worth) {
    candidates[position].worth = worth;
    update(position);
  }
  void setEnd(uint32_t position, uint32_t end) {
    candidates[position].end = end;
    update(position);
  }
  void remove(uint32_t position) { setWorth(position, kRemoved); }

private:
  static constexpr double kRemoved = -1;
  static constexpr uint32_t kNone = UINT32_MAX;
  struct Node {
    double worth = kRemoved;
    uint32_t leastEnd = UINT32_MAX, mostEnd = 0;
    uint32_t best = kNone;
  };

  Node leafOf(uint32_t position) const {
    const Candidate &c = candidates[position];
    return c.worth < 0 ? Node() : Node{c.worth, c.end, c.end, position};
  }
  void update(uint32_t position) {
    uint32_t node = leaves + position;
    nodes[node] = leafOf(position);
    while (node /= 2)
      pull(node);
  }
  void pull(uint32_t node) {
    const Node &a = nodes[2 * node], &b = nodes[2 * node + 1];
    const Node &better = b.worth > a.worth ? b : a;
    nodes[node] = {better.worth, std::min(a.leastEnd, b.leastEnd), std::max(a.mostEnd, b.mostEnd),
                   better.best};
  }
  void search(uint32_t index, uint32_t begin, uint32_t end, uint32_t last, uint32_t step,
              uint32_t &best) const {
    const Node &node = nodes[index];
    if (node.best == kNone || begin > last || node.mostEnd <= step ||
        (best != kNone && node.worth <= candidates[best].worth))
      return;
    if (end <= last && node.leastEnd > step) {
      best = node.best;
      return;
    }
    if (begin == end)
      return;
    uint32_t middle = begin + (end - begin) / 2;
    search(2 * index, begin, middle, last, step, best);
    search(2 * index + 1, middle + 1, end, last, step, best);
  }

  std::vector<Candidate> candidates;
  uint32_t leaves = 1;
  std::vector<Node> nodes;
};

} // namespace shardc::recompute

#endif // SHARDC_PASSES_RECOMPUTE_CORE_CANDIDATETREE_H
