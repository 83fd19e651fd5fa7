// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/simplify/Rules.h"

#include "dialects/interfaces/OpInterfaces.h"
#include "passes/collectives/analysis/Transfers.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::dist;

static bool isLinear(Reduction reduction) {
  return reduction == Reduction::Sum || reduction == Reduction::Avg;
}

namespace {

/// A term of a sum: a reduction, and linear ops between it and the sum, first to last.
struct Term {
  CollectiveOpInterface reduce;
  SmallVector<Operation *> steps;
};

template <typename Op> struct SumOfReduces : SimplifyRule<Op> {
  using SimplifyRule<Op>::SimplifyRule;

  static bool hasSameElements(Operation *op) {
    std::optional<ViewKind> kind = viewKindOf(op);
    return kind && *kind != ViewKind::Expansion && *kind != ViewKind::Part;
  }

  /// Views, signs and scalars that are the same on all ranks: they may come before the reduction
  /// just as well. Nothing else may look at a value on the way.
  std::optional<Term> findTerm(Value value) const {
    Term term;
    SmallVector<Value> scalars;
    while (value.hasOneUse()) {
      Operation *op = value.getDefiningOp();
      if (!op)
        return std::nullopt;
      if (isa<AllReduceOp, ReduceScatterOp>(op)) {
        term.reduce = cast<CollectiveOpInterface>(op);
        if (op->getNumResults() != 1 || term.reduce.isAsync() ||
            !isLinear(*term.reduce.getReductionOrNone()))
          return std::nullopt;
        for (Value scalar : scalars)
          if (!this->around.uniformity.isUniform(scalar, term.reduce.getGroup()))
            return std::nullopt;
        std::reverse(term.steps.begin(), term.steps.end());
        return term;
      }
      bool scales = isa<aten::MulOp, aten::DivOp>(op);
      if (scales) {
        auto scalar = cast<RankedTensorType>(op->getOperand(1).getType());
        auto type = cast<RankedTensorType>(op->getResult(0).getType());
        // Rounding a quotient is not linear, nor is a change of type.
        if (scalar.getRank() != 0 || !isa<FloatType>(type.getElementType()) ||
            op->getOperand(0).getType() != type || op->hasAttr("rounding_mode"))
          return std::nullopt;
        scalars.push_back(op->getOperand(1));
      } else if (!isa<aten::NegOp>(op) && !hasSameElements(op)) {
        return std::nullopt;
      }
      term.steps.push_back(op);
      value = op->getOperand(0);
    }
    return std::nullopt;
  }

  static bool canShare(const Term &a, const Term &b) {
    CollectiveOpInterface x = a.reduce, y = b.reduce;
    if (x.getCollectiveKind() != y.getCollectiveKind() ||
        x.getReductionOrNone() != y.getReductionOrNone() ||
        x.getGroup().getCanonicalGroup() != y.getGroup().getCanonicalGroup())
      return false;
    if (x.getCollectiveKind() == CollectiveKind::AllReduce)
      return true;
    // What is scattered must be cut alike; a view in between would change what is cut.
    return a.steps.empty() && b.steps.empty() && x.getSplitDim(0) == y.getSplitDim(0) &&
           x.getSplitExtents(0) == y.getSplitExtents(0) &&
           llvm::equal(x.getSizes(), y.getSizes()) && x.getOperandType(0) == y.getOperandType(0);
  }

  static Value rebuild(PatternRewriter &rewriter, const Term &term) {
    CollectiveOpInterface reduce = term.reduce;
    Value value = reduce.getTensors()[0];
    for (Operation *step : term.steps) {
      IRMapping mapping;
      mapping.map(step->getOperand(0), value);
      value = rewriter.clone(*step, mapping)->getResult(0);
    }
    return value;
  }

  LogicalResult apply(Op op, PatternRewriter &rewriter) const override {
    if (op.getSelf().getType() != op.getType() || op.getOther().getType() != op.getType())
      return failure();
    std::optional<Term> left = findTerm(op.getSelf()), right = findTerm(op.getOther());
    if (!left || !right || !canShare(*left, *right))
      return failure();
    Value x = rebuild(rewriter, *left), y = rebuild(rewriter, *right);
    auto sum = Op::create(rewriter, op.getLoc(), x.getType(), x, y, op.getAlphaAttr());
    Location location = rewriter.getFusedLoc({left->reduce.getLoc(), right->reduce.getLoc()});
    Transfer transfer = getTransfer(left->reduce, 0);
    transfer.tensor = sum;
    if (isa<AllReduceOp>(left->reduce))
      transfer.result = cast<RankedTensorType>(op.getType());
    Operation *reduce =
        buildCollective(rewriter, location, left->reduce, left->reduce.getGroup(), transfer);
    rewriter.replaceOp(op, reduce->getResults());
    return success();
  }
};

/// div(reduce sum over n ranks, n) -> reduce avg: who writes the sum divides it (B6)
struct AverageOfSum : SimplifyRule<aten::DivOp> {
  using SimplifyRule::SimplifyRule;
  LogicalResult apply(aten::DivOp op, PatternRewriter &rewriter) const override {
    Operation *reduce = op.getSelf().getDefiningOp();
    if (!isa_and_nonnull<AllReduceOp, ReduceScatterOp>(reduce) || !reduce->hasOneUse() ||
        reduce->getNumResults() != 1 || op.getRoundingMode() ||
        op.getType() != op.getSelf().getType())
      return failure();
    auto collective = cast<CollectiveOpInterface>(reduce);
    auto divisor = op.getOther().getDefiningOp<aten::ConstantOp>();
    auto value =
        divisor ? dyn_cast<DenseFPElementsAttr>(divisor.getValue()) : DenseFPElementsAttr();
    if (collective.isAsync() || collective.getReductionOrNone() != Reduction::Sum || !value ||
        !value.isSplat())
      return failure();
    APFloat ranks(value.getSplatValue<APFloat>().getSemantics());
    ranks.convertFromAPInt(APInt(64, collective.getGroup().getGroupSize()), /*IsSigned=*/false,
                           APFloat::rmNearestTiesToEven);
    if (ranks.compare(value.getSplatValue<APFloat>()) != APFloat::cmpEqual)
      return failure();
    Location location = rewriter.getFusedLoc({reduce->getLoc(), op.getLoc()});
    Transfer transfer = getTransfer(collective, 0);
    rewriter.setInsertionPoint(reduce);
    Value average = isa<AllReduceOp>(reduce)
                        ? buildAllReduce(rewriter, location, collective.getGroup(), Reduction::Avg,
                                         transfer.tensor)
                        : buildReduceScatter(rewriter, location, collective.getGroup(),
                                             Reduction::Avg, transfer);
    rewriter.replaceOp(op, average);
    return success();
  }
};

/// all_reduce over one axis of an all_reduce over another -> one over both
struct ChainOfReduces : SimplifyRule<AllReduceOp> {
  using SimplifyRule::SimplifyRule;
  LogicalResult apply(AllReduceOp op, PatternRewriter &rewriter) const override {
    if (op->getNumResults() != 1 || CollectiveOpInterface(op).isAsync())
      return failure();
    auto inner = singleCollective<AllReduceOp>(op.getTensors()[0]);
    if (!inner || !inner->hasOneUse() || inner.getReductionAttr() != op.getReductionAttr())
      return failure();
    auto outerAxes = dyn_cast<AxesAttr>(op.getGroup());
    auto innerAxes = dyn_cast<AxesAttr>(inner.getGroup());
    if (!outerAxes || !innerAxes || outerAxes.getMesh() != innerAxes.getMesh())
      return failure();
    SmallVector<unsigned> indices = outerAxes.getAxisIndices();
    for (unsigned axis : innerAxes.getAxisIndices()) {
      if (llvm::is_contained(indices, axis))
        return failure();
      indices.push_back(axis);
    }
    llvm::sort(indices);
    SmallVector<StringAttr> names;
    for (unsigned axis : indices)
      names.push_back(rewriter.getStringAttr(outerAxes.getMesh().getValue().axes[axis].name));
    auto group = AxesAttr::get(op.getContext(), outerAxes.getMesh(), names);
    Location location = rewriter.getFusedLoc({inner.getLoc(), op.getLoc()});
    rewriter.replaceOp(op, buildAllReduce(rewriter, location, group, op.getReduction().getValue(),
                                          inner.getTensors()[0]));
    return success();
  }
};

} // namespace

void shardc::populateSumRules(RewritePatternSet &patterns, SimplifyContext &around,
                              SimplifyCounts counts) {
  MLIRContext *context = patterns.getContext();
  patterns.add<SumOfReduces<aten::AddOp>, SumOfReduces<aten::SubOp>>(context, around, counts.sums);
  patterns.add<AverageOfSum>(context, around, counts.averages);
  patterns.add<ChainOfReduces>(context, around, counts.chains);
}
