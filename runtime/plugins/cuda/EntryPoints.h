// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tables of the functions that the plugin calls of a library which it loads by name. A table is a
// list of X(member, symbol, parameters), or X(member, symbol, result, parameters) where results
// differ, from which its members and their look-up are made: a new function is one line.
#ifndef SHARDC_RUNTIME_PLUGINS_CUDA_ENTRYPOINTS_H
#define SHARDC_RUNTIME_PLUGINS_CUDA_ENTRYPOINTS_H

#include "runtime/plugins/Plugin.h"

#include <functional>

namespace shardc::plugin::cuda {

/// The members of a table, of functions that all return its `EntryResult`.
#define SHARDC_ENTRY(member, symbol, parameters) EntryResult(*member) parameters = nullptr;
/// Of one whose results differ.
#define SHARDC_ENTRY_RETURNING(member, symbol, result, parameters)                                 \
  result(*member) parameters = nullptr;
/// For finding them, where `finder` is an EntryFinder and `entries` the table.
#define SHARDC_ENTRY_FIND(member, symbol, ...) finder.find(entries.member, #symbol);

class EntryFinder {
public:
  /// `lookUp` returns null where the library lacks a symbol.
  explicit EntryFinder(std::function<void *(const char *symbol)> lookUp)
      : lookUp(std::move(lookUp)) {}

  template <typename Function> void find(Function *&member, const char *symbol) {
    findOptional(member, symbol);
    if (!member)
      missing += (missing.empty() ? "" : ", ") + std::string(symbol);
  }
  template <typename Function> void findOptional(Function *&member, const char *symbol) {
    member = reinterpret_cast<Function *>(lookUp(symbol));
  }
  /// An old library says more by its version than by what it lacks: that comes first. `is`: "is
  /// NCCL 2.4.8"; `needed`: the oldest version, as text; `version` 0: it does not say.
  void require(const std::string &file, long version, long oldest, const std::string &is,
               const std::string &needed) const {
    if (version > 0 && version < oldest)
      throw Failure{SHARDRT_INCOMPATIBLE, file + " " + is + " " + needed + " at least"};
    if (!missing.empty())
      throw Failure{SHARDRT_INCOMPATIBLE, file + " lacks " + missing};
  }

private:
  const std::function<void *(const char *symbol)> lookUp;
  std::string missing;
};

} // namespace shardc::plugin::cuda

#endif // SHARDC_RUNTIME_PLUGINS_CUDA_ENTRYPOINTS_H
