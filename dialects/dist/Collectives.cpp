// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the collectives say of themselves through CollectiveOpInterface, their effects, and their
// canonicalisations.

#include "dialects/dist/Dist.h"

#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::dist;

/// Entry `tensor` of a list of lists; empty where there is none.
static ArrayRef<int64_t> listOf(std::optional<ArrayAttr> lists, unsigned tensor) {
  if (!lists || tensor >= lists->size())
    return {};
  auto list = dyn_cast<DenseI64ArrayAttr>((*lists)[tensor]);
  return list ? list.asArrayRef() : ArrayRef<int64_t>();
}

CollectiveKind AllReduceOp::getCollectiveKind() { return CollectiveKind::AllReduce; }
std::optional<shardc::Reduction> AllReduceOp::getReductionOrNone() {
  return getReduction().getValue();
}

CollectiveKind AllGatherOp::getCollectiveKind() { return CollectiveKind::AllGather; }
int64_t AllGatherOp::getConcatDim(unsigned tensor) { return getDims()[tensor]; }
ArrayRef<int64_t> AllGatherOp::getConcatExtents(unsigned tensor) {
  return listOf(getExtents(), tensor);
}

CollectiveKind ReduceScatterOp::getCollectiveKind() { return CollectiveKind::ReduceScatter; }
std::optional<shardc::Reduction> ReduceScatterOp::getReductionOrNone() {
  return getReduction().getValue();
}
int64_t ReduceScatterOp::getSplitDim(unsigned tensor) { return getDims()[tensor]; }
ArrayRef<int64_t> ReduceScatterOp::getSplitExtents(unsigned tensor) {
  return listOf(getExtents(), tensor);
}

CollectiveKind AllToAllOp::getCollectiveKind() { return CollectiveKind::AllToAll; }
int64_t AllToAllOp::getConcatDim(unsigned tensor) { return getConcatDims()[tensor]; }
int64_t AllToAllOp::getSplitDim(unsigned tensor) { return getSplitDims()[tensor]; }
ArrayRef<int64_t> AllToAllOp::getConcatExtents(unsigned tensor) {
  return listOf(AllToAllOp::getConcatExtents(), tensor);
}
ArrayRef<int64_t> AllToAllOp::getSplitExtents(unsigned tensor) {
  return listOf(AllToAllOp::getSplitExtents(), tensor);
}

CollectiveKind BroadcastOp::getCollectiveKind() { return CollectiveKind::Broadcast; }
CollectiveKind PermuteOp::getCollectiveKind() { return CollectiveKind::Permute; }
int64_t PermuteOp::getConcatDim(unsigned tensor) { return getDims()[tensor]; }
ArrayRef<int64_t> PermuteOp::getConcatExtents(unsigned tensor) {
  return listOf(getExtents(), tensor);
}

//===------------------------------------------------------------------------------------------===//
// Size operands
//===------------------------------------------------------------------------------------------===//

bool shardc::dist::needsFullExtent(int64_t splitDim, int64_t concatDim, bool hasConcatExtents,
                                   RankedTensorType resultType) {
  return concatDim >= 0 && concatDim != splitDim && !hasConcatExtents &&
         concatDim < resultType.getRank() && resultType.isDynamicDim(concatDim);
}

static int64_t countDynamic(ArrayRef<int64_t> values) {
  return llvm::count_if(values, ShapedType::isDynamic);
}

SmallVector<TensorSizes> shardc::dist::getTensorSizes(CollectiveOpInterface op, int64_t *needed) {
  SmallVector<TensorSizes> result(op.getTensors().size());
  ValueRange sizes = op.getSizes();
  int64_t count = 0;
  auto take = [&](int64_t wanted) {
    count += wanted;
    ValueRange taken = sizes.take_front(std::min<size_t>(wanted, sizes.size()));
    sizes = sizes.drop_front(taken.size());
    return taken;
  };
  for (auto [i, tensor] : llvm::enumerate(result)) {
    bool full = op.getCollectiveKind() != CollectiveKind::Permute &&
                needsFullExtent(op.getSplitDim(i), op.getConcatDim(i),
                                !op.getConcatExtents(i).empty(), op.getResultTensorType(i));
    tensor.splitExtents = take(countDynamic(op.getSplitExtents(i)));
    tensor.concatExtents = take(countDynamic(op.getConcatExtents(i)));
    if (ValueRange taken = take(full); !taken.empty())
      tensor.full = taken.front();
  }
  if (needed)
    *needed = count;
  return result;
}

//===------------------------------------------------------------------------------------------===//
// Effects: see Collectives.td
//===------------------------------------------------------------------------------------------===//

using Effects = SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>;

static void addEffects(CollectiveOpInterface op, Effects &effects) {
  if (op.isAsync())
    effects.emplace_back(MemoryEffects::Write::get(), CommunicationResource::get());
}

void AllReduceOp::getEffects(Effects &effects) { addEffects(*this, effects); }
void AllGatherOp::getEffects(Effects &effects) { addEffects(*this, effects); }
void ReduceScatterOp::getEffects(Effects &effects) { addEffects(*this, effects); }
void AllToAllOp::getEffects(Effects &effects) { addEffects(*this, effects); }
void BroadcastOp::getEffects(Effects &effects) { addEffects(*this, effects); }
void PermuteOp::getEffects(Effects &effects) { addEffects(*this, effects); }

//===------------------------------------------------------------------------------------------===//
// Canonicalisation
//===------------------------------------------------------------------------------------------===//

/// In a group of one every collective delivers its operands, but for a permute from which the one
/// position is left out (it delivers zeros).
static bool isIdentity(CollectiveOpInterface op) {
  if (op.getGroup().getGroupSize() != 1)
    return false;
  auto permute = dyn_cast<PermuteOp>(op.getOperation());
  if (permute && permute.getPairs().empty())
    return false;
  return llvm::all_of(llvm::seq<unsigned>(0, op->getNumResults()), [&](unsigned i) {
    return op.getResultTensorType(i) == op.getOperandType(i);
  });
}

namespace {
/// A collective in a group of one, or of no tensor, is nothing. An asynchronous one goes when all
/// its futures are waited for here: where one is returned, the caller expects a future.
struct EraseTrivialCollective : OpInterfaceRewritePattern<CollectiveOpInterface> {
  using OpInterfaceRewritePattern::OpInterfaceRewritePattern;

  LogicalResult matchAndRewrite(CollectiveOpInterface op,
                                PatternRewriter &rewriter) const override {
    if (!isIdentity(op))
      return failure();
    if (!op.isAsync()) {
      rewriter.replaceOp(op, SmallVector<Value>(op.getTensors()));
      return success();
    }
    SmallVector<Operation *> waits(op->getUsers());
    if (!llvm::all_of(waits, llvm::IsaPred<WaitOp>))
      return failure();
    llvm::SmallSetVector<Operation *, 4> unique(waits.begin(), waits.end());
    for (Operation *wait : unique)
      replaceWait(cast<WaitOp>(wait), op, rewriter);
    rewriter.eraseOp(op);
    return success();
  }

  static void replaceWait(WaitOp wait, CollectiveOpInterface start, PatternRewriter &rewriter) {
    auto isOurs = [&](Value future) { return future.getDefiningOp() == start.getOperation(); };
    SmallVector<Value> others =
        llvm::to_vector(llvm::make_filter_range(wait.getFutures(), std::not_fn(isOurs)));
    rewriter.setInsertionPoint(wait);
    SmallVector<Value> results, rest;
    if (!others.empty())
      llvm::append_range(rest, WaitOp::create(rewriter, wait.getLoc(), others).getResults());
    unsigned next = 0;
    for (Value future : wait.getFutures())
      results.push_back(isOurs(future)
                            ? start.getTensors()[cast<OpResult>(future).getResultNumber()]
                            : rest[next++]);
    rewriter.replaceOp(wait, results);
  }
};
} // namespace

void DistDialect::getCanonicalizationPatterns(RewritePatternSet &patterns) const {
  patterns.add<EraseTrivialCollective>(getContext());
}
