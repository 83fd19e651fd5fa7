// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/memory/core/WriteOrder.h"

#include <algorithm>
#include <functional>
#include <queue>

namespace shardc::memory {

namespace {

class Orderer {
public:
  Orderer(uint32_t ops, std::span<const std::pair<uint32_t, uint32_t>> before) : after(ops) {
    for (auto [first, second] : before)
      after[first].push_back(second);
  }

  void add(const Replacement &replacement);
  /// Whether what writes the new value stands before what reads the old one, whatever is done.
  bool isImpossible(const Replacement &replacement) const;
  std::vector<uint32_t> order() const;

private:
  std::vector<std::vector<uint32_t>> after; // by op: those that stand behind it
};

void Orderer::add(const Replacement &replacement) {
  for (uint32_t read : replacement.reads)
    for (uint32_t write : replacement.writes)
      after[read].push_back(write);
}

bool Orderer::isImpossible(const Replacement &replacement) const {
  std::vector<bool> isRead(after.size()), isSeen(after.size());
  for (uint32_t read : replacement.reads)
    isRead[read] = true;
  std::vector<uint32_t> work;
  auto visit = [&](uint32_t op) {
    if (!isSeen[op])
      work.push_back(op);
    isSeen[op] = true;
  };
  for (uint32_t write : replacement.writes)
    visit(write);
  while (!work.empty()) {
    uint32_t op = work.back();
    work.pop_back();
    if (isRead[op])
      return true;
    for (uint32_t next : after[op])
      visit(next);
  }
  return false;
}

/// Of the ops whose predecessors are all placed, the one that was first.
std::vector<uint32_t> Orderer::order() const {
  std::vector<uint32_t> missing(after.size(), 0), result;
  for (const std::vector<uint32_t> &list : after)
    for (uint32_t next : list)
      ++missing[next];
  std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>> ready;
  for (uint32_t op = 0; op < after.size(); ++op)
    if (missing[op] == 0)
      ready.push(op);
  while (!ready.empty()) {
    uint32_t op = ready.top();
    ready.pop();
    result.push_back(op);
    for (uint32_t next : after[op])
      if (--missing[next] == 0)
        ready.push(next);
  }
  return result;
}

bool isInOrder(const Replacement &replacement) {
  return replacement.reads.empty() || replacement.writes.empty() ||
         *std::ranges::max_element(replacement.reads) <
             *std::ranges::min_element(replacement.writes);
}

} // namespace

WriteOrder orderWrites(uint32_t ops, std::span<const std::pair<uint32_t, uint32_t>> before,
                       std::span<const Replacement> replacements,
                       std::span<const Replacement> wishes) {
  WriteOrder result;
  Orderer orderer(ops, before);
  auto addAll = [&](std::span<const Replacement> list) {
    std::vector<bool> isKept;
    for (const Replacement &replacement : list) {
      isKept.push_back(isInOrder(replacement));
      if (isKept.back())
        orderer.add(replacement);
    }
    for (size_t i = 0; i < list.size(); ++i) {
      if (isKept[i] || orderer.isImpossible(list[i]))
        continue;
      orderer.add(list[i]);
      isKept[i] = result.isChanged = true;
    }
    return isKept;
  };
  result.isInPlace = addAll(replacements);
  addAll(wishes);
  result.order = orderer.order();
  return result;
}

} // namespace shardc::memory
