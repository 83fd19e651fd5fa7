// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Attention of a rank's queries over keys and values that are gathered from all ranks of a group.

#ifndef SHARDC_PASSES_COLLECTIVES_ATTENTION_RINGSITE_H
#define SHARDC_PASSES_COLLECTIVES_ATTENTION_RINGSITE_H

#include "dialects/aten/Aten.h"
#include "dialects/dist/Dist.h"
#include "passes/collectives/attention/BlockChain.h"
#include "passes/specialize/RankValues.h"

namespace shardc {

/// Where keys or values come from and, in the backward, where their cotangents go.
struct RingTensor {
  BlockChain chain; ///< from the gathered tensor to what attention reads
  dist::AllGatherOp gather;
  /// What the rank has of it.
  mlir::Value shard() const {
    dist::AllGatherOp op = gather;
    return op.getTensors()[0];
  }
  /// Of the backward; null where nothing asks for the cotangent. The chain goes from the cotangent
  /// to what is scattered.
  dist::ReduceScatterOp scatter;
  BlockChain scattered;
};

struct RingSite {
  mlir::Operation *op = nullptr;
  bool isBackward = false, isCausal = false;
  RingTensor key, value;
  mlir::Value mask; ///< null without one
  dist::GroupAttrInterface group;
  /// Rows of each rank's block, by position in the group.
  llvm::SmallVector<int64_t> extents;
  /// By device.
  DeviceTable position, queries;
  /// Of causal attention: the first keys that a rank's queries see of a block, by step and device.
  /// At step t a rank has the block of the rank t positions before it; the first one is its own, of
  /// which each query sees the keys up to itself, and of the others all see the same.
  std::vector<DeviceTable> seen;

  int64_t size() const { return static_cast<int64_t>(extents.size()); }
  unsigned queryNumber() const { return isBackward ? 1 : 0; }
  mlir::Value query() const { return op->getOperand(queryNumber()); }
  /// The block that a rank has at a step, by its owner's position.
  int64_t blockAt(int64_t position, int64_t step) const {
    return (position + size() - step) % size();
  }
  bool isEven() const { return llvm::all_equal(extents); }
  /// Whether ranks can exchange halves of what they have, so that all have the same work.
  bool canBalance() const;
};

/// What stands in the way of a ring.
enum class RingObstacle {
  None,
  /// No gathered keys.
  NoGather,
  /// Sizes or ranks that are not known, or results that are used in other ways.
  Unknown,
  /// Queries begin elsewhere than the rank's keys.
  Unaligned
};

/// The function's collectives are synchronous.
RingObstacle findRingSite(mlir::Operation *op, RankValues &ranks, RingSite &site);

} // namespace shardc

#endif // SHARDC_PASSES_COLLECTIVES_ATTENTION_RINGSITE_H
