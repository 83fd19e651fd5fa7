// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/verify/Checks.h"

#include "passes/collectives/analysis/ExchangeBytes.h"
#include "passes/collectives/analysis/Transfers.h"

#include <map>
#include <set>

using namespace mlir;
using namespace shardc;
using namespace shardc::dist;

namespace {

class VariantComparer {
public:
  VariantComparer(ArrayRef<Variant> variants, Devices &devices)
      : variants(variants), devices(devices), variantOf(devices.size(), 0) {
    for (auto [i, variant] : llvm::enumerate(variants)) {
      for (int64_t device : variant.devices)
        variantOf[device] = i;
      sequences.push_back(getSequence(variant.function));
    }
  }

  LogicalResult run() {
    for (size_t variant = 0; variant < variants.size(); ++variant)
      if (failed(checkOrdinals(variant)))
        return failure();
    if (failed(compareOrder()))
      return failure();
    for (const std::vector<SequenceEntry> &sequence : sequences)
      for (const SequenceEntry &entry : sequence)
        if (compared.insert(entry.ordinal).second &&
            (failed(compareCounts(entry)) || failed(compareExchanges(entry))))
          return failure();
    return success();
  }

private:
  int64_t rankOf(size_t variant) const { return variants[variant].devices.front(); }

  LogicalResult checkOrdinals(size_t variant) {
    int64_t last = -1;
    for (const SequenceEntry &entry : sequences[variant]) {
      CollectiveOpInterface op = entry.op;
      if (entry.ordinal <= last)
        return op->emitOpError("has the number ")
               << entry.ordinal << " in the sequence that all ranks share, but comes after number "
               << last << " on rank " << rankOf(variant);
      last = entry.ordinal;
    }
    return success();
  }

  /// All ranks run all collectives in one order (S1), whichever groups they are in; only those of a
  /// mesh that a rank is outside of may be missing there (L5).
  LogicalResult compareOrder() {
    std::map<int64_t, std::pair<size_t, const SequenceEntry *>> first; // by ordinal
    for (auto [variant, sequence] : llvm::enumerate(sequences))
      for (const SequenceEntry &entry : sequence) {
        auto [known, added] = first.try_emplace(entry.ordinal, variant, &entry);
        const auto &[base, other] = known->second;
        if (!added && other->what != entry.what)
          return differ(*other, entry, variant, other->what, entry.what, base);
      }
    for (const auto &[ordinal, known] : first)
      for (size_t variant = 0; variant < variants.size(); ++variant)
        if (!find(variant, ordinal) && failed(checkMissing(*known.second, known.first, variant)))
          return failure();
    return success();
  }

  /// One that a variant has and another has not.
  LogicalResult checkMissing(const SequenceEntry &entry, size_t has, size_t lacks) {
    CollectiveOpInterface op = entry.op;
    auto axes = dyn_cast<AxesAttr>(op.getGroup());
    if (axes && llvm::none_of(variants[lacks].devices,
                              [&](int64_t device) { return devices.isIn(axes.getMesh(), device); }))
      return success();
    bool isLast = sequences[lacks].empty() || sequences[lacks].back().ordinal < entry.ordinal;
    return op->emitOpError("is collective ")
           << entry.ordinal << " of rank " << rankOf(has) << ", but rank " << rankOf(lacks)
           << (isLast ? " has no more" : " does not run it") << ": it would wait forever";
  }

  LogicalResult differ(const SequenceEntry &a, const SequenceEntry &b, size_t other,
                       StringRef first, StringRef second, size_t base) {
    CollectiveOpInterface op = a.op, otherOp = b.op;
    InFlightDiagnostic diagnostic = op->emitOpError("is collective ")
                                    << a.ordinal << " of rank " << rankOf(base) << ": " << first;
    diagnostic.attachNote(otherOp->getLoc())
        << "rank " << rankOf(other) << " has there: " << second;
    return diagnostic;
  }

  /// Which variants meet in some group.
  const std::set<std::vector<size_t>> &meetingsOf(GroupAttrInterface group) {
    auto [entry, added] = meetings.try_emplace(group);
    if (!added)
      return entry->second;
    // Devices by the group that they are in: ranks of a group have its first rank in common.
    if (auto lists = group.getRankLists()) {
      llvm::DenseMap<int64_t, size_t> listOf;
      for (auto [i, list] : llvm::enumerate(*lists))
        for (int64_t rank : list)
          listOf[rank] = i;
      std::vector<std::set<size_t>> met(lists->size());
      for (int64_t device = 0; device < devices.size(); ++device)
        if (auto it = listOf.find(devices.rank(device)); it != listOf.end())
          met[it->second].insert(variantOf[device]);
      for (const std::set<size_t> &set : met)
        if (set.size() > 1)
          entry->second.emplace(set.begin(), set.end());
    }
    return entry->second;
  }

  const SequenceEntry *find(size_t variant, int64_t ordinal) const {
    const std::vector<SequenceEntry> &sequence = sequences[variant];
    auto found = llvm::lower_bound(sequence, ordinal, [](const SequenceEntry &e, int64_t number) {
      return e.ordinal < number;
    });
    return found != sequence.end() && found->ordinal == ordinal ? &*found : nullptr;
  }

  LogicalResult compareCounts(const SequenceEntry &entry) {
    CollectiveOpInterface op = entry.op;
    for (const std::vector<size_t> &met : meetingsOf(op.getGroup()))
      for (size_t i = 1; i < met.size(); ++i) {
        const SequenceEntry *a = find(met.front(), entry.ordinal), *b = find(met[i], entry.ordinal);
        if (a && b && a->counts != b->counts)
          return differ(*a, *b, met[i], a->counts + " elements", b->counts + " elements",
                        met.front());
      }
    return success();
  }

  /// In an exchange, what a device gives to another one is what that one expects of it.
  LogicalResult compareExchanges(const SequenceEntry &entry) {
    CollectiveOpInterface first = entry.op;
    auto lists = first.getGroup().getRankLists();
    if (!lists)
      return success();
    llvm::DenseMap<int64_t, CollectiveOpInterface> opOf; // by rank
    for (int64_t device = 0; device < devices.size(); ++device)
      if (const SequenceEntry *own = find(variantOf[device], entry.ordinal))
        opOf[devices.rank(device)] = own->op;
    for (unsigned i = 0; i < first->getNumResults(); ++i)
      for (const std::vector<int64_t> &list : *lists)
        for (auto [from, giver] : llvm::enumerate(list))
          for (auto [to, taker] : llvm::enumerate(list)) {
            CollectiveOpInterface a = opOf.lookup(giver), b = opOf.lookup(taker);
            if (!a || !b || !isExchange(a, i) || !isExchange(b, i))
              continue;
            int64_t given = a.getSplitExtents(i)[to], expected = b.getConcatExtents(i)[from];
            if (given == expected || ShapedType::isDynamic(given) ||
                ShapedType::isDynamic(expected))
              continue;
            InFlightDiagnostic diagnostic = a->emitOpError("tensor ")
                                            << i << ": rank " << giver << " gives rank " << taker
                                            << " " << given << " elements along the dim";
            diagnostic.attachNote(b->getLoc()) << "rank " << taker << " expects " << expected;
            return diagnostic;
          }
    return success();
  }

  ArrayRef<Variant> variants;
  Devices &devices;
  std::vector<size_t> variantOf;
  std::vector<std::vector<SequenceEntry>> sequences;
  llvm::DenseSet<int64_t> compared;
  llvm::DenseMap<Attribute, std::set<std::vector<size_t>>> meetings;
};

} // namespace

LogicalResult shardc::compareVariants(ArrayRef<Variant> variants, Devices &devices) {
  return VariantComparer(variants, devices).run();
}

/// The part of a tensor that a device holds or gets, against the part of its position.
static LogicalResult checkPart(CollectiveOpInterface op, unsigned tensor, int64_t part,
                               ArrayRef<int64_t> list, int64_t full, int64_t position,
                               int64_t device) {
  std::optional<SmallVector<int64_t>> extents =
      extentsByPosition(list, full, op.getGroup().getGroupSize());
  if (!extents || ShapedType::isDynamic(part) || (*extents)[position] == part)
    return success();
  return op->emitOpError("tensor ")
         << tensor << ": rank " << device << " has " << part << " elements along the dim, but at "
         << "position " << position << " of its group there are " << (*extents)[position];
}

LogicalResult shardc::checkPositions(const Variant &variant, Devices &devices) {
  bool ok = true;
  func::FuncOp function = variant.function;
  function.walk([&](CollectiveOpInterface op) {
    bool gathers = isa<AllGatherOp>(op), scatters = isa<ReduceScatterOp>(op);
    if (!gathers && !scatters)
      return;
    for (unsigned i = 0; i < op->getNumResults(); ++i) {
      int64_t dim = gathers ? op.getConcatDim(i) : op.getSplitDim(i);
      RankedTensorType whole = gathers ? op.getResultTensorType(i) : op.getOperandType(i);
      RankedTensorType part = gathers ? op.getOperandType(i) : op.getResultTensorType(i);
      ArrayRef<int64_t> list = gathers ? op.getConcatExtents(i) : op.getSplitExtents(i);
      for (int64_t device : variant.devices)
        if (std::optional<int64_t> position = devices.position(op.getGroup(), device))
          if (failed(checkPart(op, i, part.getDimSize(dim), list, whole.getDimSize(dim), *position,
                               devices.rank(device)))) {
            ok = false;
            break; // once for each tensor
          }
    }
  });
  return success(ok);
}
