// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The order of a straight-line program in which values are replaced in their own memory: whoever
// reads an old value stands before whoever writes the new one. IR-free: a pass numbers the ops by
// their places and applies the order.

#ifndef SHARDC_LOWERING_MEMORY_CORE_WRITEORDER_H
#define SHARDC_LOWERING_MEMORY_CORE_WRITEORDER_H

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace shardc::memory {

/// A value that is replaced in its own memory.
struct Replacement {
  std::vector<uint32_t> reads;  // ops that read the old value
  std::vector<uint32_t> writes; // ops that write the new one
};

struct WriteOrder {
  /// All ops in their new order, which is the old one as far as possible.
  std::vector<uint32_t> order;
  /// By replacement: whether its reads come before its writes. Where they cannot (two values that
  /// are exchanged, an op that reads one and writes the other) the new value needs other memory.
  std::vector<bool> isInPlace;
  /// Whether `order` is another one than before.
  bool isChanged = false;
};

/// `before` has pairs of ops of which the first stands before the second, now (so its number is the
/// smaller one) and in the new order. Replacements are tried in their order, those that the program
/// has in place already first. `wishes` are of the same form and are kept where that costs no
/// replacement its place.
WriteOrder orderWrites(uint32_t ops, std::span<const std::pair<uint32_t, uint32_t>> before,
                       std::span<const Replacement> replacements,
                       std::span<const Replacement> wishes = {});

} // namespace shardc::memory

#endif // SHARDC_LOWERING_MEMORY_CORE_WRITEORDER_H
