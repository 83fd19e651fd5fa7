// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/memory/BufferLifetimes.h"
#include "lowering/memory/Passes.h"
#include "lowering/memory/SizeEstimator.h"

#include "dialects/dist/Dist.h"
#include "dialects/dist/FunctionAttributes.h"
#include "dialects/exec/EntryArguments.h"
#include "dialects/interfaces/ModelLocation.h"
#include "passes/specialize/AssumedSizes.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/MapVector.h"

namespace shardc::memory {
#define GEN_PASS_DEF_ACCOUNTMEMORY
#include "lowering/memory/Passes.h.inc"
} // namespace shardc::memory

using namespace mlir;
using namespace shardc;
using namespace shardc::memory;

namespace {

int64_t staticBytes(MemRefType type) {
  int64_t bytes = llvm::divideCeil(type.getElementTypeBitWidth(), 8);
  for (int64_t size : type.getShape())
    bytes *= ShapedType::isDynamic(size) ? 1 : size;
  return bytes;
}

/// A buffer and its bytes.
using Holder = std::pair<int64_t, exec::AllocOp>;

struct AccountMemory : memory::impl::AccountMemoryBase<AccountMemory> {
  using AccountMemoryBase::AccountMemoryBase;

  void runOnOperation() override {
    symbols = assumedSizes(getOperation());
    for (StringRef text : sizes) {
      auto [name, value] = text.split('=');
      if (name.empty() || value.getAsInteger(10, symbols[name])) {
        getOperation().emitError()
            << "'" << text << "' is not the value of a symbol: expected NAME=NUMBER";
        return signalPassFailure();
      }
    }
    for (auto entry : getOperation().getOps<func::FuncOp>()) {
      if (!entry->hasAttr(exec::kEntryAttr))
        continue;
      if (failed(exec::verifyEntryArguments(entry)))
        return signalPassFailure();
      hasSizes(entry) && account(entry) ? ++accounted : ++symbolic;
    }
  }

  bool hasSizes(func::FuncOp entry) {
    auto list = entry->getAttrOfType<ArrayAttr>(dist::kSymbolsAttr);
    return !list || llvm::all_of(list.getAsRange<dist::SymbolAttr>(), [&](dist::SymbolAttr symbol) {
      return symbols.contains(symbol.getName().getValue());
    });
  }

  /// Bytes of a dense argument; -1 where its sizes are not written down.
  int64_t argumentBytes(func::FuncOp entry, unsigned argument, SizeEstimator &estimator) {
    auto type = cast<MemRefType>(entry.getArgumentTypes()[argument]);
    int64_t bytes = staticBytes(type);
    if (type.hasStaticShape())
      return bytes;
    auto extents = entry.getArgAttrOfType<ArrayAttr>(argument, exec::kExtentsAttr);
    if (!extents)
      return -1;
    for (auto [size, extent] : llvm::zip_equal(type.getShape(), extents))
      if (ShapedType::isDynamic(size))
        bytes *= estimator.value(extent);
    return bytes;
  }

  /// Whether an argument is the new value of a parameter, in its memory.
  static bool isInPlace(func::FuncOp entry, unsigned argument) {
    return entry->hasAttr(exec::kInPlaceAttr) && entry.getArgAttr(argument, exec::kUpdatesAttr);
  }

  int64_t bufferBytes(exec::AllocOp op, SizeEstimator &estimator) {
    int64_t bytes = staticBytes(op.getBuffer().getType());
    for (Value size : op.getSizes())
      bytes *= estimator.value(size);
    return bytes;
  }

  /// As planned, or as the plan function would compute it.
  std::optional<int64_t> arenaBytes(func::FuncOp entry) {
    if (auto bytes = entry->getAttrOfType<IntegerAttr>(exec::kArenaBytesAttr))
      return bytes.getInt();
    auto name = entry->getAttrOfType<FlatSymbolRefAttr>(exec::kPlanAttr);
    auto plan = name ? getOperation().lookupSymbol<func::FuncOp>(name.getValue()) : func::FuncOp();
    if (!plan)
      return std::nullopt;
    SizeEstimator estimator(plan, symbols);
    std::optional<int64_t> bytes;
    for (Operation &op : plan.getBody().front()) {
      if (auto total = dyn_cast<exec::SetArenaBytesOp>(op))
        bytes = estimator.value(total.getBytes());
      // One after the other: no recursion through long chains of offsets.
      for (Value result : op.getResults())
        if (result.getType().isIndex())
          (void)estimator.value(result);
    }
    return bytes;
  }

  /// Whether all sizes are known.
  bool account(func::FuncOp entry) {
    Builder b(entry.getContext());
    SizeEstimator estimator(entry, symbols);
    std::optional<int64_t> arena = arenaBytes(entry);
    SmallVector<int64_t> parameters;
    int64_t caller = 0;
    bool known = arena.has_value();
    for (unsigned i = 0; i < entry.getNumArguments(); ++i) {
      int64_t bytes = argumentBytes(entry, i, estimator);
      known &= bytes >= 0;
      if (entry.getArgAttrOfType<exec::ArgumentKindAttr>(i, exec::kArgumentAttr).getValue() !=
          exec::ArgumentKind::Parameter) {
        caller += isInPlace(entry, i) ? 0 : bytes;
        continue;
      }
      auto index = entry.getArgAttrOfType<IntegerAttr>(i, exec::kIndexAttr);
      size_t at = index ? size_t(index.getInt()) : parameters.size();
      if (parameters.size() <= at)
        parameters.resize(at + 1, 0);
      parameters[at] = bytes;
    }
    if (!known)
      return false;
    for (int64_t bytes : parameters)
      parameterBytes += bytes;
    callerBytes += caller;
    SmallVector<Holder> held = heldAtPeak(entry, estimator);
    entry->setAttr(
        exec::kMemoryAttr,
        b.getDictionaryAttr({b.getNamedAttr("parameters", b.getDenseI64ArrayAttr(parameters)),
                             b.getNamedAttr("caller", b.getI64IntegerAttr(caller)),
                             b.getNamedAttr("arena", b.getI64IntegerAttr(*arena)),
                             b.getNamedAttr("peak", b.getArrayAttr(largestOf(b, held))),
                             b.getNamedAttr("modules", b.getArrayAttr(byModule(b, held)))}));
    return true;
  }

  /// The buffers that live when most bytes do, largest first.
  SmallVector<Holder> heldAtPeak(func::FuncOp entry, SizeEstimator &estimator) {
    BufferLifetimes lifetimes(entry);
    struct Change {
      unsigned step;
      int64_t bytes;
    };
    SmallVector<Change> changes;
    for (exec::AllocOp op : lifetimes.buffers())
      if (auto interval = lifetimes.interval(op.getBuffer())) {
        int64_t bytes = bufferBytes(op, estimator);
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
    SmallVector<Holder> holders;
    for (exec::AllocOp op : lifetimes.buffers())
      if (auto interval = lifetimes.interval(op.getBuffer()))
        if (interval->first <= peak && peak <= interval->last)
          holders.push_back({bufferBytes(op, estimator), op});
    llvm::stable_sort(holders, [](auto &a, auto &b) { return a.first > b.first; });
    return holders;
  }

  static Attribute bytesFor(Builder &b, int64_t bytes, StringRef what) {
    return b.getArrayAttr({b.getI64IntegerAttr(bytes), b.getStringAttr(what)});
  }

  /// [bytes, place that fills it] of the largest.
  static SmallVector<Attribute> largestOf(Builder &b, ArrayRef<Holder> held) {
    constexpr size_t most = 8;
    SmallVector<Attribute> list;
    for (auto [bytes, op] : held.take_front(most))
      list.push_back(bytesFor(b, bytes, describePlace(op.getLoc())));
    return list;
  }

  /// [bytes, path of the module that fills them] of all, largest first.
  static SmallVector<Attribute> byModule(Builder &b, ArrayRef<Holder> held) {
    llvm::MapVector<StringRef, int64_t> sums;
    for (auto [bytes, op] : held)
      sums[getModulePath(op.getLoc())] += bytes;
    auto sorted = sums.takeVector();
    llvm::stable_sort(sorted, [](auto &a, auto &b) { return a.second > b.second; });
    SmallVector<Attribute> list;
    for (auto [path, bytes] : sorted)
      list.push_back(bytesFor(b, bytes, path));
    return list;
  }

  llvm::StringMap<int64_t> symbols;
};

} // namespace
