// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Peak memory of a sequence of events, each of which brings storages into being and uses some. A
// storage is freed after the last event that uses it; pinned ones (inputs, outputs) never are.

#ifndef SHARDC_PASSES_COLLECTIVES_CORE_STORAGEEVENTS_H
#define SHARDC_PASSES_COLLECTIVES_CORE_STORAGEEVENTS_H

#include <cstddef>
#include <cstdint>
#include <vector>

namespace shardc::collectives {

class StorageEvents {
public:
  explicit StorageEvents(size_t numStorages) : bytes(numStorages), pinned(numStorages) {}

  uint32_t addStorage(uint64_t size) {
    bytes.push_back(size);
    pinned.push_back(false);
    return bytes.size() - 1;
  }
  void setBytes(uint32_t storage, uint64_t size) { bytes[storage] = size; }
  /// Live from the first event on.
  void addInput(uint32_t storage) { inputs.push_back(storage); }
  /// Never freed once it is there.
  void pin(uint32_t storage) { pinned[storage] = true; }

  void beginEvent() { ++numEvents; }
  /// Allocates a storage in the current event, unless it is live already.
  void allocate(uint32_t storage) { entries.push_back({storage, numEvents - 1, Entry::Allocate}); }
  void use(uint32_t storage) { entries.push_back({storage, numEvents - 1, Entry::Use}); }
  /// A use that counts only where operands of a collective are kept until its wait.
  void hold(uint32_t storage) { entries.push_back({storage, numEvents - 1, Entry::Hold}); }

  /// The largest sum of live bytes over all events, with or without holds.
  uint64_t peak(bool withHolds) const;

private:
  struct Entry {
    uint32_t storage;
    uint32_t event;
    enum Kind : uint8_t { Allocate, Use, Hold } kind;
  };
  std::vector<uint64_t> bytes;
  std::vector<bool> pinned;
  std::vector<uint32_t> inputs;
  std::vector<Entry> entries;
  uint32_t numEvents = 0;
};

} // namespace shardc::collectives

#endif // SHARDC_PASSES_COLLECTIVES_CORE_STORAGEEVENTS_H
