// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/simplify/Rules.h"

#include "passes/collectives/analysis/Transfers.h"

#include <map>

using namespace mlir;
using namespace shardc;
using namespace shardc::dist;

/// Equal keys deliver equal tensors. Groups count by their ranks, not by how they are written.
static std::vector<uint64_t> keyOf(CollectiveOpInterface op, Attribute group,
                                   const Transfer &transfer) {
  auto number = [](const void *pointer) { return reinterpret_cast<uintptr_t>(pointer); };
  std::vector<uint64_t> key{
      static_cast<uint64_t>(op.getCollectiveKind()), number(group.getAsOpaquePointer()),
      number(transfer.tensor.getAsOpaquePointer()),  number(transfer.result.getAsOpaquePointer()),
      static_cast<uint64_t>(transfer.concatDim),     static_cast<uint64_t>(transfer.splitDim)};
  for (StringRef name : {"reduction", "root", "pairs"}) // whichever the kind has
    key.push_back(number(op->getAttr(name).getAsOpaquePointer()));
  key.push_back(transfer.splitExtents.size());
  key.insert(key.end(), transfer.splitExtents.begin(), transfer.splitExtents.end());
  key.push_back(transfer.concatExtents.size());
  key.insert(key.end(), transfer.concatExtents.begin(), transfer.concatExtents.end());
  for (Value size : transfer.sizes)
    key.push_back(number(size.getAsOpaquePointer()));
  return key;
}

uint64_t shardc::mergeDuplicates(Block &block, RewriterBase &rewriter) {
  std::map<std::vector<uint64_t>, Value> first;
  llvm::DenseMap<Attribute, Attribute> canonical;
  uint64_t merged = 0;
  for (Operation &op : llvm::make_early_inc_range(block)) {
    auto collective = dyn_cast<CollectiveOpInterface>(op);
    if (!collective || collective.isAsync() || op.getNumResults() == 0)
      continue;
    Attribute &group = canonical[collective.getGroup()];
    if (!group)
      group = collective.getGroup().getCanonicalGroup();
    SmallVector<Transfer> transfers = getTransfers(collective), left;
    SmallVector<Value> kept; // results that stay
    for (auto [result, transfer] : llvm::zip_equal(op.getResults(), transfers)) {
      auto [entry, added] = first.try_emplace(keyOf(collective, group, transfer), result);
      if (added) {
        kept.push_back(result);
        left.push_back(transfer);
        continue;
      }
      result.replaceAllUsesWith(entry->second);
      ++merged;
    }
    if (kept.size() == transfers.size())
      continue;
    if (!kept.empty()) {
      rewriter.setInsertionPoint(&op);
      CollectiveOpInterface rest =
          buildCollective(rewriter, op.getLoc(), collective, collective.getGroup(), left);
      for (auto [old, result, transfer] : llvm::zip_equal(kept, rest->getResults(), left)) {
        first[keyOf(collective, group, transfer)] = result;
        old.replaceAllUsesWith(result);
      }
    }
    rewriter.eraseOp(&op);
  }
  return merged;
}
