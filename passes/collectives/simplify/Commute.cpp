// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/simplify/Rules.h"

#include "passes/collectives/analysis/Transfers.h"

#include "mlir/IR/IRMapping.h"

#include <numeric>

using namespace mlir;
using namespace shardc;
using namespace shardc::dist;

static Type elementOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getElementType();
}

static bool movesOneTensor(CollectiveOpInterface op) {
  return op->getNumResults() == 1 && !op.isAsync() && !op.getReductionOrNone();
}

namespace {

/// to_copy to a narrower type behind every use of what a collective moves -> the narrow type moves
template <typename Op> struct NarrowBeforeMove : SimplifyRule<Op> {
  using SimplifyRule<Op>::SimplifyRule;
  LogicalResult apply(Op op, PatternRewriter &rewriter) const override {
    if (!movesOneTensor(op) || op->use_empty())
      return failure();
    auto first = dyn_cast<aten::ToCopyOp>(*op->user_begin());
    if (!first || elementBytes(first.getDtype()) >= elementBytes(elementOf(first.getSelf())))
      return failure();
    SmallVector<aten::ToCopyOp> casts;
    for (Operation *user : op->getUsers()) {
      auto cast = dyn_cast<aten::ToCopyOp>(user);
      if (!cast || cast.getType() != first.getType())
        return failure();
      casts.push_back(cast);
    }
    Transfer transfer = getTransfer(op, 0);
    auto type = cast<RankedTensorType>(transfer.tensor.getType()).clone(first.getDtype());
    transfer.tensor = aten::ToCopyOp::create(rewriter, first.getLoc(), type, transfer.tensor,
                                             first.getDtypeAttr());
    transfer.result = transfer.result.clone(first.getDtype());
    Operation *moved =
        buildCollective(rewriter, op.getLoc(), op, op.getGroup(), transfer).getOperation();
    for (aten::ToCopyOp cast : casts)
      rewriter.replaceOp(cast, moved->getResults());
    rewriter.eraseOp(op);
    return success();
  }
};

/// collective of a tensor that was just cast to a wider type -> the narrow type moves
template <typename Op> struct WidenAfterMove : SimplifyRule<Op> {
  using SimplifyRule<Op>::SimplifyRule;
  LogicalResult apply(Op op, PatternRewriter &rewriter) const override {
    if (!movesOneTensor(op))
      return failure();
    Transfer transfer = getTransfer(op, 0);
    auto cast = transfer.tensor.getDefiningOp<aten::ToCopyOp>();
    if (!cast || elementBytes(elementOf(cast.getSelf())) >= elementBytes(cast.getDtype()))
      return failure();
    RankedTensorType wide = transfer.result;
    transfer.tensor = cast.getSelf();
    transfer.result = wide.clone(elementOf(cast.getSelf()));
    Operation *moved =
        buildCollective(rewriter, op.getLoc(), op, op.getGroup(), transfer).getOperation();
    rewriter.replaceOpWithNewOp<aten::ToCopyOp>(op, wide, moved->getResult(0), cast.getDtypeAttr());
    return success();
  }
};

/// all_gather of a view of a shard -> view of the gathered shard
struct GatherOfView : SimplifyRule<AllGatherOp> {
  using SimplifyRule::SimplifyRule;
  LogicalResult apply(AllGatherOp op, PatternRewriter &rewriter) const override {
    if (!movesOneTensor(op))
      return failure();
    Transfer transfer = getTransfer(op, 0);
    Operation *view = transfer.tensor.getDefiningOp();
    std::optional<int64_t> dim = view ? dimBefore(view, transfer.concatDim) : std::nullopt;
    if (!dim)
      return failure();
    auto source = cast<RankedTensorType>(view->getOperand(0).getType());
    SmallVector<int64_t> shape(source.getShape());
    int64_t viewed = transfer.result.getDimSize(transfer.concatDim);
    if (isa<aten::ViewOp>(view)) {
      // Other dims may have become part of this one, or this one may have lost some.
      int64_t piece =
          cast<RankedTensorType>(transfer.tensor.getType()).getDimSize(transfer.concatDim);
      if (!transfer.concatExtents.empty() || viewed != piece * op.getGroup().getGroupSize())
        return failure();
      shape[*dim] *= op.getGroup().getGroupSize();
    } else {
      shape[*dim] = viewed;
    }
    RankedTensorType result = transfer.result;
    transfer.tensor = view->getOperand(0);
    transfer.concatDim = *dim;
    transfer.result = source.clone(shape);
    Value whole = buildAllGather(rewriter, op.getLoc(), op.getGroup(), transfer);
    rewriter.replaceOp(op, rebuild(rewriter, view, whole, result));
    return success();
  }

  /// Which dim of the view's operand holds the shards that dim `dim` of its result holds, so that
  /// concatenation may come before the view.
  static std::optional<int64_t> dimBefore(Operation *view, int64_t dim) {
    if (auto op = dyn_cast<aten::TransposeOp>(view)) {
      auto a = static_cast<int64_t>(op.getDim0()), b = static_cast<int64_t>(op.getDim1());
      return dim == a ? b : dim == b ? a : dim;
    }
    if (auto op = dyn_cast<aten::PermuteOp>(view))
      return op.getDims()[dim];
    if (auto op = dyn_cast<aten::UnsqueezeOp>(view)) {
      auto at = static_cast<int64_t>(op.getDim());
      return dim == at ? std::nullopt : std::optional<int64_t>(dim - (dim > at));
    }
    if (isa<aten::CloneOp>(view))
      return dim;
    // Elements are repeated behind the gather, and need not travel more than once.
    if (auto op = dyn_cast<aten::ExpandOp>(view)) {
      auto from = cast<RankedTensorType>(op.getSelf().getType());
      auto to = cast<RankedTensorType>(op.getType());
      int64_t at = dim - (to.getRank() - from.getRank());
      bool isRepeated =
          at < 0 || from.getDimSize(at) != to.getDimSize(dim) || from.getDimSize(at) == 1;
      return from.hasStaticShape() && to.hasStaticShape() && !isRepeated ? std::optional(at)
                                                                         : std::nullopt;
    }
    auto op = dyn_cast<aten::ViewOp>(view);
    if (!op)
      return std::nullopt;
    auto from = cast<RankedTensorType>(op.getSelf().getType());
    auto to = cast<RankedTensorType>(op.getType());
    if (!from.hasStaticShape() || !to.hasStaticShape() || to.getNumElements() == 0)
      return std::nullopt;
    // A piece of either dim is one run of elements behind each index of the dims before it, so
    // these must be as many.
    auto before = [](ArrayRef<int64_t> shape) {
      return std::accumulate(shape.begin(), shape.end(), int64_t(1), std::multiplies<>());
    };
    int64_t outer = before(to.getShape().take_front(dim));
    for (int64_t at = 0; at < from.getRank(); ++at)
      if (before(from.getShape().take_front(at)) == outer && from.getDimSize(at) != 1)
        return at;
    return std::nullopt;
  }

  static Value rebuild(PatternRewriter &rewriter, Operation *view, Value whole,
                       RankedTensorType type) {
    if (isa<aten::ViewOp>(view))
      return aten::ViewOp::create(rewriter, view->getLoc(), type, whole, type.getShape(),
                                  ValueRange());
    if (isa<aten::ExpandOp>(view))
      return aten::ExpandOp::create(rewriter, view->getLoc(), type, whole, type.getShape(),
                                    ValueRange());
    IRMapping mapping;
    mapping.map(view->getOperand(0), whole);
    Operation *clone = rewriter.clone(*view, mapping);
    clone->getResult(0).setType(type);
    return clone->getResult(0);
  }
};

/// permute(permute x) over one group -> one permute; nothing where every rank gets its own again
struct PermuteOfPermute : SimplifyRule<PermuteOp> {
  using SimplifyRule::SimplifyRule;
  LogicalResult apply(PermuteOp op, PatternRewriter &rewriter) const override {
    if (!isPlain(op))
      return failure();
    auto inner = op.getTensors()[0].getDefiningOp<PermuteOp>();
    if (!inner || !isPlain(inner) || !inner->hasOneUse() ||
        inner.getGroup().getCanonicalGroup() != op.getGroup().getCanonicalGroup())
      return failure();
    int64_t size = op.getGroup().getGroupSize();
    SmallVector<int64_t> sourceOf(size, -1); // of the inner one, by target
    for (size_t i = 0; i + 1 < inner.getPairs().size(); i += 2)
      sourceOf[inner.getPairs()[i + 1]] = inner.getPairs()[i];
    // Whoever would get what has no source gets zeros: it is in no pair.
    SmallVector<int64_t> pairs;
    int64_t own = 0;
    for (size_t i = 0; i + 1 < op.getPairs().size(); i += 2) {
      int64_t source = sourceOf[op.getPairs()[i]], target = op.getPairs()[i + 1];
      if (source < 0)
        continue;
      pairs.append({source, target});
      own += source == target;
    }
    if (own == size) {
      rewriter.replaceOp(op, inner.getTensors());
      return success();
    }
    auto fused = PermuteOp::create(rewriter, rewriter.getFusedLoc({inner.getLoc(), op.getLoc()}),
                                   op->getResultTypes(), inner.getTensors(), ValueRange(),
                                   op.getGroup(), rewriter.getDenseI64ArrayAttr(pairs),
                                   op.getDimsAttr(), op.getExtentsAttr());
    rewriter.replaceOp(op, fused);
    return success();
  }

  /// One tensor of one shape on all ranks.
  static bool isPlain(PermuteOp op) {
    return movesOneTensor(op) && !op.getExtents() &&
           cast<RankedTensorType>(op.getTensors()[0].getType()).hasStaticShape();
  }
};

} // namespace

void shardc::populateCommuteRules(RewritePatternSet &patterns, SimplifyContext &around,
                                  SimplifyCounts counts) {
  MLIRContext *context = patterns.getContext();
  patterns
      .add<NarrowBeforeMove<AllGatherOp>, NarrowBeforeMove<AllToAllOp>, NarrowBeforeMove<PermuteOp>,
           NarrowBeforeMove<BroadcastOp>, WidenAfterMove<AllGatherOp>, WidenAfterMove<AllToAllOp>,
           WidenAfterMove<PermuteOp>, WidenAfterMove<BroadcastOp>>(context, around, counts.casts);
  patterns.add<GatherOfView>(context, around, counts.views);
  patterns.add<PermuteOfPermute>(context, around, counts.permutes);
}
