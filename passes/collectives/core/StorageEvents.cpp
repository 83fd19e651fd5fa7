// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/core/StorageEvents.h"

#include <algorithm>

using namespace shardc;
using namespace shardc::collectives;

uint64_t StorageEvents::peak(bool withHolds) const {
  constexpr uint32_t never = UINT32_MAX;
  std::vector<uint32_t> last(bytes.size(), never);
  for (const Entry &entry : entries)
    if (withHolds || entry.kind != Entry::Hold)
      last[entry.storage] =
          last[entry.storage] == never ? entry.event : std::max(last[entry.storage], entry.event);
  for (uint32_t storage = 0; storage != bytes.size(); ++storage)
    if (pinned[storage])
      last[storage] = never;

  std::vector<bool> live(bytes.size());
  uint64_t current = 0;
  for (uint32_t storage : inputs) {
    current += bytes[storage];
    live[storage] = true;
  }
  uint64_t top = current;
  // Entries are in order of events: first what an event allocates, then what dies with it.
  for (size_t i = 0; i != entries.size();) {
    size_t end = i;
    for (; end != entries.size() && entries[end].event == entries[i].event; ++end) {
      const Entry &entry = entries[end];
      if (entry.kind == Entry::Allocate && !live[entry.storage]) {
        live[entry.storage] = true;
        current += bytes[entry.storage];
      }
    }
    top = std::max(top, current);
    for (; i != end; ++i) {
      const Entry &entry = entries[i];
      if (live[entry.storage] && last[entry.storage] == entry.event) {
        live[entry.storage] = false;
        current -= bytes[entry.storage];
      }
    }
  }
  return top;
}
