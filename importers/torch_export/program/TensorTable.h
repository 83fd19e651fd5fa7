// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The tensors of a graph by name, and by number.
#ifndef SHARDC_IMPORTERS_TORCH_EXPORT_PROGRAM_TENSORTABLE_H
#define SHARDC_IMPORTERS_TORCH_EXPORT_PROGRAM_TENSORTABLE_H

#include "importers/torch_export/program/TensorMeta.h"

#include <string_view>
#include <utility>
#include <vector>

namespace shardc::torch_export {

/// The interface of a map whose entries stay in the order in which they were added, so that each
/// has a number from 0. A name is looked up once, when an argument is read (`TensorArg::number`);
/// whoever walks a large graph goes by numbers, which are close together where uses are.
class TensorTable {
public:
  using Entry = std::pair<std::string_view, TensorMeta>;
  using const_iterator = std::vector<Entry>::const_iterator;

  size_t size() const { return entries.size(); }
  const_iterator begin() const { return entries.begin(); }
  const_iterator end() const { return entries.end(); }
  const Entry &operator[](uint32_t number) const { return entries[number]; }

  void reserve(size_t count);
  /// The entry, and whether it is new. Entries move when others are added.
  std::pair<Entry *, bool> add(std::string_view name);

  /// `TensorArg::unknown` where there is none.
  uint32_t numberOf(std::string_view name) const;
  bool contains(std::string_view name) const { return numberOf(name) != TensorArg::unknown; }
  const_iterator find(std::string_view name) const {
    uint32_t number = numberOf(name);
    return number == TensorArg::unknown ? end() : begin() + number;
  }
  /// A name that is known to be there.
  const TensorMeta &at(std::string_view name) const { return entries[numberOf(name)].second; }

private:
  /// Half of the name's hash tells nearly all other names apart without looking at them.
  struct Slot {
    uint32_t tag = 0, number = TensorArg::unknown;
  };
  /// Where the name is, or the empty slot where it belongs.
  size_t slotOf(std::string_view name, size_t hash) const;
  void rehash(size_t slots);

  std::vector<Entry> entries;
  std::vector<Slot> slots; // a power of two, at most half of them taken
};

} // namespace shardc::torch_export

#endif // SHARDC_IMPORTERS_TORCH_EXPORT_PROGRAM_TENSORTABLE_H
