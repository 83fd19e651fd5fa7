// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "importers/torch_export/program/TensorTable.h"

#include <bit>
#include <functional>

namespace shardc::torch_export {

static uint32_t tagOf(size_t hash) { return static_cast<uint32_t>(hash >> 32); }

size_t TensorTable::slotOf(std::string_view name, size_t hash) const {
  size_t mask = slots.size() - 1;
  for (size_t at = hash & mask;; at = (at + 1) & mask) {
    const Slot &slot = slots[at];
    if (slot.number == TensorArg::unknown ||
        (slot.tag == tagOf(hash) && entries[slot.number].first == name))
      return at;
  }
}

uint32_t TensorTable::numberOf(std::string_view name) const {
  return slots.empty() ? TensorArg::unknown
                       : slots[slotOf(name, std::hash<std::string_view>()(name))].number;
}

std::pair<TensorTable::Entry *, bool> TensorTable::add(std::string_view name) {
  if (slots.size() < 2 * (entries.size() + 1))
    rehash(std::max<size_t>(16, 2 * slots.size()));
  size_t hash = std::hash<std::string_view>()(name);
  Slot &slot = slots[slotOf(name, hash)];
  bool isNew = slot.number == TensorArg::unknown;
  if (isNew) {
    slot = {tagOf(hash), static_cast<uint32_t>(entries.size())};
    entries.emplace_back(name, TensorMeta());
  }
  return {&entries[slot.number], isNew};
}

void TensorTable::reserve(size_t count) {
  entries.reserve(count);
  if (size_t wanted = std::bit_ceil(2 * (count + 1)); wanted > slots.size())
    rehash(wanted);
}

void TensorTable::rehash(size_t count) {
  slots.assign(count, {});
  for (uint32_t number = 0; number != entries.size(); ++number) {
    size_t hash = std::hash<std::string_view>()(entries[number].first);
    slots[slotOf(entries[number].first, hash)] = {tagOf(hash), number};
  }
}

} // namespace shardc::torch_export
