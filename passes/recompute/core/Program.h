// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A forward and the backward behind it as plain values: what each op reads and makes, how large
// that is, and how long the op takes. Steps are positions of ops.

#ifndef SHARDC_PASSES_RECOMPUTE_CORE_PROGRAM_H
#define SHARDC_PASSES_RECOMPUTE_CORE_PROGRAM_H

#include <cstdint>
#include <span>
#include <vector>

namespace shardc::recompute {

using OpId = uint32_t;
using StorageId = uint32_t;
inline constexpr uint32_t none = UINT32_MAX;

/// Whether the backward may compute again what an op of the forward makes.
enum class Choice : uint8_t {
  Never,    ///< it has effects, or other results the second time, or is to be kept
  IfCheap,  ///< where that pays
  Required, ///< wherever the backward needs it
};

struct OpInfo {
  /// Microseconds that the op takes once more.
  double us = 0;
  Choice choice = Choice::Never;
  /// Belongs to the backward: such an op is never computed again.
  bool late = false;
  /// Ops that are required as parts of one module have one number; `none` for the others. What the
  /// rest of the forward reads of such a module, and what no op of the forward reads, is kept.
  uint32_t region = none;
};

class Program {
public:
  /// Memory that an op makes; views share that of what they look at. What is always there
  /// (arguments, constants) has none.
  StorageId addStorage(uint64_t bytes) {
    sizes.push_back(bytes);
    makers.push_back(none);
    pinned.push_back(false);
    return sizes.size() - 1;
  }
  /// Ops come in program order. A late op that only looks at memory reads it too: what it looks at
  /// has to exist by then.
  OpId addOp(const OpInfo &info, std::span<const StorageId> reads,
             std::span<const StorageId> makes) {
    OpId op = infos.size();
    infos.push_back(info);
    uses.insert(uses.end(), reads.begin(), reads.end());
    makesBegin.push_back(uses.size());
    uses.insert(uses.end(), makes.begin(), makes.end());
    begin.push_back(uses.size());
    for (StorageId storage : makes)
      makers[storage] = op;
    return op;
  }
  /// Is the caller's memory (an output): it takes nothing more, and is there to the end once made.
  void pin(StorageId storage) { pinned[storage] = true; }

  size_t numOps() const { return infos.size(); }
  size_t numStorages() const { return sizes.size(); }
  const OpInfo &info(OpId op) const { return infos[op]; }
  std::span<const StorageId> reads(OpId op) const {
    return {uses.data() + begin[op], uses.data() + makesBegin[op]};
  }
  std::span<const StorageId> makes(OpId op) const {
    return {uses.data() + makesBegin[op], uses.data() + begin[op + 1]};
  }
  uint64_t bytes(StorageId storage) const { return sizes[storage]; }
  OpId maker(StorageId storage) const { return makers[storage]; }
  bool isPinned(StorageId storage) const { return pinned[storage]; }

  /// Bytes that are there at all times: arguments and outputs.
  uint64_t constantBytes = 0;

private:
  std::vector<OpInfo> infos;
  std::vector<StorageId> uses;
  std::vector<uint32_t> begin = {0}, makesBegin;
  std::vector<uint64_t> sizes;
  std::vector<OpId> makers;
  std::vector<bool> pinned;
};

} // namespace shardc::recompute

#endif // SHARDC_PASSES_RECOMPUTE_CORE_PROGRAM_H
