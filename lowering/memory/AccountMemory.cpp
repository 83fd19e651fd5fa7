// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/memory/BufferLifetimes.h"
#include "lowering/memory/Passes.h"

#include "dialects/interfaces/ModelLocation.h"

#include "mlir/IR/Builders.h"

namespace shardc::memory {
#define GEN_PASS_DEF_ACCOUNTMEMORY
#include "lowering/memory/Passes.h.inc"
} // namespace shardc::memory

using namespace mlir;
using namespace shardc;
using namespace shardc::memory;

namespace {

/// Bytes of a dense buffer, or -1 where they depend on symbols.
int64_t bytesOf(Type type) {
  auto memref = cast<MemRefType>(type);
  if (!memref.hasStaticShape())
    return -1;
  return memref.getNumElements() * llvm::divideCeil(memref.getElementTypeBitWidth(), 8);
}

struct AccountMemory : memory::impl::AccountMemoryBase<AccountMemory> {
  void runOnOperation() override {
    for (auto entry : getOperation().getOps<func::FuncOp>())
      if (entry->hasAttr(exec::kEntryAttr))
        account(entry);
  }

  void account(func::FuncOp entry) {
    Builder b(entry.getContext());
    SmallVector<int64_t> parameters;
    int64_t caller = 0;
    bool known = entry->hasAttr(exec::kArenaBytesAttr);
    for (unsigned i = 0; i < entry.getNumArguments(); ++i) {
      int64_t bytes = bytesOf(entry.getArgumentTypes()[i]);
      known &= bytes >= 0;
      if (entry.getArgAttrOfType<StringAttr>(i, exec::kArgumentAttr).getValue() != "parameter") {
        caller += bytes;
        continue;
      }
      auto index = entry.getArgAttrOfType<IntegerAttr>(i, exec::kIndexAttr);
      size_t at = index ? size_t(index.getInt()) : parameters.size();
      if (parameters.size() <= at)
        parameters.resize(at + 1, 0);
      parameters[at] = bytes;
    }
    if (!known)
      return;
    entry->setAttr(
        exec::kMemoryAttr,
        b.getDictionaryAttr({b.getNamedAttr("parameters", b.getDenseI64ArrayAttr(parameters)),
                             b.getNamedAttr("caller", b.getI64IntegerAttr(caller)),
                             b.getNamedAttr("arena", entry->getAttr(exec::kArenaBytesAttr)),
                             b.getNamedAttr("peak", b.getArrayAttr(largestAtPeak(entry)))}));
  }

  /// [bytes, place that fills it] of the buffers that live when most bytes do, largest first.
  SmallVector<Attribute> largestAtPeak(func::FuncOp entry) {
    BufferLifetimes lifetimes(entry);
    struct Change {
      unsigned step;
      int64_t bytes;
    };
    SmallVector<Change> changes;
    for (exec::AllocOp op : lifetimes.buffers())
      if (auto interval = lifetimes.interval(op.getBuffer())) {
        int64_t bytes = bytesOf(op.getBuffer().getType());
        changes.push_back({interval->first, bytes});
        changes.push_back({interval->last + 1, -bytes});
      }
    // What ends before a step is gone when others begin at it.
    llvm::sort(changes, [](const Change &a, const Change &b) {
      return std::pair(a.step, a.bytes) < std::pair(b.step, b.bytes);
    });
    int64_t live = 0, most = 0;
    unsigned peak = 0;
    for (const Change &change : changes) {
      live += change.bytes;
      if (live > most) {
        most = live;
        peak = change.step;
      }
    }
    SmallVector<std::pair<int64_t, exec::AllocOp>> holders;
    for (exec::AllocOp op : lifetimes.buffers())
      if (auto interval = lifetimes.interval(op.getBuffer()))
        if (interval->first <= peak && peak <= interval->last)
          holders.push_back({bytesOf(op.getBuffer().getType()), op});
    llvm::stable_sort(holders, [](auto &a, auto &b) { return a.first > b.first; });
    constexpr size_t mostHolders = 8;
    if (holders.size() > mostHolders)
      holders.resize(mostHolders);
    Builder b(entry.getContext());
    SmallVector<Attribute> list;
    for (auto [bytes, op] : holders)
      list.push_back(b.getArrayAttr(
          {b.getI64IntegerAttr(bytes), b.getStringAttr(describePlace(op.getLoc()))}));
    return list;
  }
};

} // namespace
