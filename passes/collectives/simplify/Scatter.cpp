// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/simplify/Rules.h"

#include "passes/collectives/analysis/Transfers.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::dist;

namespace {

/// all_reduce of which every use is a slice of the rank's own part -> reduce_scatter
struct ReduceThenSlice : SimplifyRule<AllReduceOp> {
  using SimplifyRule::SimplifyRule;
  LogicalResult apply(AllReduceOp op, PatternRewriter &rewriter) const override {
    if (op->getNumResults() != 1 || CollectiveOpInterface(op).isAsync() || op->use_empty())
      return failure();
    std::optional<SmallVector<int64_t>> extents;
    SmallVector<aten::SliceOp> slices;
    for (Operation *user : op->getUsers()) {
      auto slice = dyn_cast<aten::SliceOp>(user);
      if (!slice || (!slices.empty() && (slice.getDim() != slices.front().getDim() ||
                                         slice.getType() != slices.front().getType())))
        return failure();
      std::optional<SmallVector<int64_t>> parts = findOwnParts(slice, op.getGroup(), around.ranks);
      if (!parts || (!slices.empty() && parts != extents))
        return failure();
      extents = std::move(parts);
      slices.push_back(slice);
    }
    Transfer transfer;
    transfer.tensor = op.getTensors()[0];
    transfer.result = slices.front().getType();
    transfer.splitDim = static_cast<int64_t>(slices.front().getDim());
    int64_t whole = cast<RankedTensorType>(transfer.tensor.getType()).getDimSize(transfer.splitDim);
    if (extents != extentsByPosition({}, whole, op.getGroup().getGroupSize()))
      transfer.splitExtents = *extents;
    SmallVector<Location> locations{op.getLoc()};
    for (aten::SliceOp slice : slices)
      locations.push_back(slice.getLoc());
    Value part = buildReduceScatter(rewriter, rewriter.getFusedLoc(locations), op.getGroup(),
                                    op.getReduction().getValue(), transfer);
    for (aten::SliceOp slice : slices)
      rewriter.replaceOp(slice, part);
    rewriter.eraseOp(op);
    return success();
  }
};

/// to_copy(all_reduce x) to a narrower type -> all_gather(to_copy(reduce_scatter x)), where
/// cheaper: the reduction stays in the wide type, the way back takes the narrow one.
struct NarrowAfterReduce : SimplifyRule<aten::ToCopyOp> {
  using SimplifyRule::SimplifyRule;
  LogicalResult apply(aten::ToCopyOp op, PatternRewriter &rewriter) const override {
    auto reduce = singleCollective<AllReduceOp>(op.getSelf());
    if (!reduce || !reduce->hasOneUse())
      return failure();
    auto type = cast<RankedTensorType>(op.getSelf().getType());
    auto result = cast<RankedTensorType>(op.getType());
    int64_t wide = elementBytes(type.getElementType());
    int64_t narrow = elementBytes(result.getElementType());
    if (narrow >= wide || !type.hasStaticShape() || type.getNumElements() == 0)
      return failure();
    GroupAttrInterface group = reduce.getGroup();
    int64_t size = group.getGroupSize();
    // The first dim with one size of shard on every rank: contiguous if it is dim 0.
    const auto *even = llvm::find_if(type.getShape(), [&](int64_t n) { return n % size == 0; });
    if (even == type.getShape().end() ||
        !isCheaper(group, type.getNumElements() * wide, type.getNumElements() * narrow))
      return failure();
    int64_t dim = even - type.getShape().begin();
    SmallVector<int64_t> shard(type.getShape());
    shard[dim] /= size;
    Transfer scatter;
    scatter.tensor = reduce.getTensors()[0];
    scatter.result = type.clone(shard);
    scatter.splitDim = dim;
    Value part = buildReduceScatter(rewriter, reduce.getLoc(), group,
                                    reduce.getReduction().getValue(), scatter);
    Transfer gather;
    gather.tensor =
        aten::ToCopyOp::create(rewriter, op.getLoc(), result.clone(shard), part, op.getDtypeAttr());
    gather.result = result;
    gather.concatDim = dim;
    rewriter.replaceOp(op, buildAllGather(rewriter, reduce.getLoc(), group, gather));
    rewriter.eraseOp(reduce);
    return success();
  }

  bool isCheaper(GroupAttrInterface group, uint64_t wideBytes, uint64_t narrowBytes) const {
    std::optional<std::vector<std::vector<int64_t>>> lists = group.getRankLists();
    cost::Group ranks{static_cast<uint32_t>(group.getGroupSize())};
    if (lists && !lists->empty())
      ranks.ranks = lists->front();
    auto us = [&](CollectiveKind kind, uint64_t bytes) {
      return around.model.collectiveUs(kind, ranks, bytes) + around.model.launchUs();
    };
    return us(CollectiveKind::ReduceScatter, wideBytes) +
               us(CollectiveKind::AllGather, narrowBytes) <
           us(CollectiveKind::AllReduce, wideBytes);
  }
};

} // namespace

void shardc::populateScatterRules(RewritePatternSet &patterns, SimplifyContext &around,
                                  SimplifyCounts counts) {
  MLIRContext *context = patterns.getContext();
  patterns.add<ReduceThenSlice>(context, around, counts.scattered);
  patterns.add<NarrowAfterReduce>(context, around, counts.narrowed);
}
