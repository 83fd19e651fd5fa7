// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/localize/core/Slots.h"

namespace shardc {

std::vector<Slot> slotsOf(size_t ranks, size_t count,
                          const std::function<bool(size_t rank, size_t number)> &has) {
  std::vector<Slot> ownOfRanks, ofNumbers;
  std::vector<size_t> taken(ranks, 0); // slots of each rank
  for (size_t number = 0; number < count; ++number) {
    bool isAnys = false;
    for (size_t rank = 0; rank < ranks; ++rank) {
      if (!has(rank, number))
        continue;
      isAnys = true;
      size_t slot = taken[rank]++;
      if (slot == ownOfRanks.size())
        ownOfRanks.emplace_back(ranks);
      ownOfRanks[slot][rank] = number;
    }
    if (isAnys)
      ofNumbers.emplace_back(ranks, number);
  }
  return ownOfRanks.size() < ofNumbers.size() ? ownOfRanks : ofNumbers;
}

} // namespace shardc
