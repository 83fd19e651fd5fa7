// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How much memory is live in each entry of a sequence while some of the things that use storages
// move to other entries.

#ifndef SHARDC_PASSES_COLLECTIVES_CORE_STORAGEINTERVALS_H
#define SHARDC_PASSES_COLLECTIVES_CORE_STORAGEINTERVALS_H

#include "passes/collectives/core/RangeMaxTree.h"

#include <optional>

namespace shardc::collectives {

/// A storage is live from the first entry in which something touches it to the last one, and to the
/// end if it is pinned. First add storages and touches, then `build`, then move touches.
class StorageIntervals {
public:
  static constexpr uint32_t nowhere = RangeMaxTree::nowhere;

  explicit StorageIntervals(uint32_t numEntries) : numEntries(numEntries) {}

  void addStorage(uint64_t bytes, bool pinned) {
    storages.push_back({static_cast<int64_t>(bytes), pinned, nowhere, 0, 0, 0});
  }
  uint32_t numStorages() const { return storages.size(); }
  /// Something that stays where it is. Entries in ascending order.
  void touch(uint32_t storage, uint32_t entry);
  void touchMoving(uint32_t storage, uint32_t entry) {
    ++storages[storage].numMoving;
    touches.push_back({storage, entry});
  }

  /// `constantBytes` are live throughout.
  void build(uint64_t constantBytes);

  /// Moves one of the moving touches in entry `from`. O(log n), and linear in the moving touches of
  /// the storage.
  void move(uint32_t storage, uint32_t from, uint32_t to);

  /// Whether more than `limit` bytes are live.
  bool isAbove(uint32_t entry, int64_t limit) const {
    return profile->firstAbove(entry, limit) == entry;
  }
  /// What touches these storages in an entry is to move towards the end, or to the beginning: the
  /// first entry on its way in which more than `limit` bytes would be live, or `nowhere`. They may
  /// be listed more than once.
  uint32_t fullBehind(std::span<const uint32_t> touched, uint32_t from, int64_t limit) const;
  uint32_t fullBefore(std::span<const uint32_t> touched, uint32_t from, int64_t limit) const;

private:
  struct Storage {
    int64_t bytes;
    bool pinned;
    uint32_t first, last; // touches that stay; `nowhere` and 0 if there are none
    uint32_t firstMoving, numMoving;
  };

  std::span<uint32_t> movingOf(const Storage &s) {
    return std::span(moving).subspan(s.firstMoving, s.numMoving);
  }
  std::span<const uint32_t> movingOf(const Storage &s) const {
    return std::span(moving).subspan(s.firstMoving, s.numMoving);
  }

  uint32_t beginOf(const Storage &s) const {
    return s.numMoving == 0 ? s.first : std::min(s.first, movingOf(s).front());
  }
  uint32_t endOf(const Storage &s) const {
    if (s.pinned)
      return numEntries - 1;
    return s.numMoving == 0 ? s.last : std::max(s.last, movingOf(s).back());
  }
  /// By how far it is to where a storage is live anyway; until the next call.
  template <typename Distance>
  std::span<const std::pair<uint32_t, uint32_t>> byDistance(std::span<const uint32_t> touched,
                                                            Distance distance) const;

  uint32_t numEntries;
  std::vector<Storage> storages;
  std::vector<std::pair<uint32_t, uint32_t>> touches; // that move, until `build`
  std::vector<uint32_t> moving;                       // by storage, ascending
  std::optional<RangeMaxTree> profile;
  mutable std::vector<std::pair<uint32_t, uint32_t>> sorted; // of byDistance
};

} // namespace shardc::collectives

#endif // SHARDC_PASSES_COLLECTIVES_CORE_STORAGEINTERVALS_H
