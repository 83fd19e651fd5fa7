// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ranks of which each has something of few of many peers, as those of a border have: one program of
// all ranks names them by slots, of which it needs as many as the rank that has most.
#ifndef SHARDC_PASSES_LOCALIZE_CORE_SLOTS_H
#define SHARDC_PASSES_LOCALIZE_CORE_SLOTS_H

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

namespace shardc {

/// For each rank the number of a peer, ascending from slot to slot; none where a rank has fewer
/// than others.
using Slot = std::vector<std::optional<size_t>>;

/// Slots for those of the numbers below `count` that each of the ranks `has`. Where there would be
/// no fewer of them than numbers that any rank has, a slot is one number for all ranks.
std::vector<Slot> slotsOf(size_t ranks, size_t count,
                          const std::function<bool(size_t rank, size_t number)> &has);

} // namespace shardc

#endif // SHARDC_PASSES_LOCALIZE_CORE_SLOTS_H
