// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/training/Passes.h"

#include "dialects/aten/Aten.h"
#include "dialects/dist/Dist.h"
#include "dialects/dist/FunctionAttributes.h"

#include "llvm/ADT/MapVector.h"

#include <set>

namespace shardc {
#define GEN_PASS_DEF_DELAYGRADIENTSUMS
#include "passes/training/Passes.h.inc"
} // namespace shardc

using namespace mlir;
using namespace shardc;

namespace {

RankedTensorType withLayout(Value value, const Layout &layout) {
  auto type = cast<RankedTensorType>(value.getType());
  return RankedTensorType::get(type.getShape(), type.getElementType(),
                               dist::LayoutAttr::get(type.getContext(), layout));
}

Layout layoutOf(Value value) { return dist::getLayout(value.getType()).getValue(); }

bool isWidening(aten::ToCopyOp cast) {
  Type from = aten::elementTypeOf(cast.getSelf()), to = aten::elementTypeOf(cast.getResult());
  return isa<FloatType>(from) && isa<FloatType>(to) &&
         from.getIntOrFloatBitWidth() < to.getIntOrFloatBitWidth();
}

Value redistributed(OpBuilder &builder, Location loc, Value value, const Layout &layout) {
  RankedTensorType type = withLayout(value, layout);
  if (value.getType() == type)
    return value;
  return dist::RedistributeOp::create(builder, loc, type, value, /*backward=*/false);
}

/// A sum of gradients that a function keeps: an argument, and what it adds to it.
struct KeptSum {
  func::FuncOp function;
  BlockArgument state;
  aten::AddOp add;                ///< null: the function only sets the state
  aten::ToCopyOp cast;            ///< of what is added, behind the reduction; or null
  dist::RedistributeOp reduction; ///< of what is added; or null

  /// False: the state has other users, which want it as it is.
  bool find() {
    if (state.use_empty())
      return true;
    if (!state.hasOneUse())
      return false;
    add = dyn_cast<aten::AddOp>(*state.user_begin());
    if (!add || add.getSelf() != state)
      return false;
    Value added = add.getOther();
    cast = added.getDefiningOp<aten::ToCopyOp>();
    if (cast && !isWidening(cast))
      return true; // a sum of parts that are rounded is another one
    reduction = (cast ? cast.getSelf() : added).getDefiningOp<dist::RedistributeOp>();
    return true;
  }

  /// Axes over which what is added is a sum before its reduction, and the state is none.
  std::set<unsigned> axes() {
    std::set<unsigned> found;
    if (!reduction)
      return found;
    Layout from = layoutOf(reduction.getInput()), to = layoutOf(state);
    for (unsigned axis = 0; axis < from.placements.size(); ++axis)
      if (from.placements[axis] == Placement::partial() && to.placements[axis].isReplicate())
        found.insert(axis);
      else if (from.placements[axis] != to.placements[axis])
        return {};
    return found;
  }

  void rewrite(const Layout &layout) {
    const Type old = state.getType();
    state.setType(withLayout(state, layout));
    if (add)
      rewriteSum(layout, old);
    rewriteResult(layout);
    Operation *end = function.getBody().front().getTerminator();
    function.setType(FunctionType::get(function.getContext(),
                                       function.getBody().front().getArgumentTypes(),
                                       end->getOperandTypes()));
  }

private:
  void rewriteSum(const Layout &layout, Type old) {
    OpBuilder builder(add);
    Value added = redistributed(builder, reduction.getLoc(), reduction.getInput(), layout);
    if (cast) {
      added = aten::ToCopyOp::create(builder, cast.getLoc(), added,
                                     aten::elementTypeOf(cast.getResult()));
      added.setType(withLayout(added, layout));
    }
    add.getOtherMutable().assign(added);
    for (Operation *op : {cast.getOperation(), reduction.getOperation()})
      if (op && op->use_empty())
        op->erase();
    Value sum = add.getResult();
    sum.setType(state.getType());
    // Who redistributes the sum makes this reduction with its own.
    SmallVector<OpOperand *> others;
    for (OpOperand &use : sum.getUses())
      if (!isa<dist::RedistributeOp, func::ReturnOp>(use.getOwner()))
        others.push_back(&use);
    if (others.empty())
      return;
    builder.setInsertionPointAfter(add);
    auto reduced =
        dist::RedistributeOp::create(builder, add.getLoc(), old, sum, /*backward=*/false);
    for (OpOperand *use : others)
      use->set(reduced.getResult());
  }

  void rewriteResult(const Layout &layout) {
    StringRef name = dist::getNames(function.getArgAttrDict(state.getArgNumber())).front();
    Operation *end = function.getBody().front().getTerminator();
    OpBuilder builder(end);
    for (unsigned i = 0; i < function.getNumResults(); ++i) {
      auto kind = function.getResultAttrOfType<StringAttr>(i, dist::kKindAttr);
      if (!kind || kind != "state_mutation" ||
          !llvm::is_contained(dist::getNames(function.getResultAttrDict(i)), name))
        continue;
      Value value = end->getOperand(i);
      // Zeros, mostly.
      auto op = value.getDefiningOp<dist::RedistributeOp>();
      if (op)
        value = op.getInput();
      end->setOperand(i, redistributed(builder, end->getLoc(), value, layout));
      if (op && op->use_empty())
        op->erase();
    }
  }
};

struct DelayGradientSumsPass : shardc::impl::DelayGradientSumsBase<DelayGradientSumsPass> {
  using DelayGradientSumsBase::DelayGradientSumsBase;

  void runOnOperation() override {
    llvm::MapVector<StringRef, SmallVector<KeptSum>> sums; // by the name of the state
    for (auto function : getOperation().getOps<func::FuncOp>())
      for (unsigned i = 0; !function.isDeclaration() && i < function.getNumArguments(); ++i) {
        auto kind = function.getArgAttrOfType<StringAttr>(i, dist::kKindAttr);
        SmallVector<StringRef> names = dist::getNames(function.getArgAttrDict(i));
        if (kind && kind == "state" && names.size() == 1 && names[0].starts_with("gradient.") &&
            dist::getLayout(function.getArgumentTypes()[i]))
          sums[names[0]].push_back({function, function.getArgument(i), {}, {}, {}});
      }
    for (auto &[name, kept] : sums)
      delay(kept);
  }

private:
  void delay(MutableArrayRef<KeptSum> kept) {
    std::optional<std::set<unsigned>> common;
    for (KeptSum &sum : kept) {
      if (!sum.find())
        return;
      if (!sum.add)
        continue;
      std::set<unsigned> own = sum.axes();
      if (common)
        std::erase_if(own, [&](unsigned axis) { return !common->count(axis); });
      common = std::move(own);
    }
    if (!common || common->empty())
      return;
    Layout layout = layoutOf(kept.front().state);
    for (unsigned axis : *common)
      layout = layout.with(axis, Placement::partial());
    for (KeptSum &sum : kept)
      sum.rewrite(layout);
    ++numDelayed;
  }
};

} // namespace
