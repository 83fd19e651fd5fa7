// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/aten/Aten.h"
#include "dialects/aten/DimOrigins.h"
#include "dialects/aten/EraseUnused.h"
#include "dialects/aten/TrainingAttention.h"
#include "dialects/aten/passes/IndexToView.h"
#include "dialects/aten/passes/Passes.h"

using namespace mlir;

namespace shardc::aten {

#define GEN_PASS_DEF_ATENFOLDMASKS
#include "dialects/aten/passes/Passes.h.inc"

namespace {

bool hasEncoding(Operation *op) {
  auto isEncoded = [](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor && tensor.getEncoding();
  };
  return llvm::any_of(op->getOperandTypes(), isEncoded) ||
         llvm::any_of(op->getResultTypes(), isEncoded);
}

struct FoldMasks : impl::AtenFoldMasksBase<FoldMasks> {
  void runOnOperation() override {
    func::FuncOp function = getOperation();
    if (function.isExternal())
      return;
    // One walk in program order: what is built for an op is looked at in its place.
    SmallVector<Operation *> ops;
    function.walk([&](Operation *op) {
      if (op->getDialect() == getContext().getLoadedDialect<AtenDialect>() && !hasEncoding(op))
        ops.push_back(op);
    });
    AffineForms forms;
    for (Operation *op : ops) {
      forms.visit(op);
      if (auto attention = dyn_cast<ScaledDotProductAttentionOp>(op))
        foldAttentionMask(attention, forms);
      else if (op->hasAttr(kTrainingAttentionAttr))
        noteAttentionMask(op, forms);
      else if (Value value = replacement(op, forms))
        op->getResult(0).replaceAllUsesWith(value);
    }
    eraseUnused(function);
  }

  /// What stands for the result of `op`; null to keep it.
  Value replacement(Operation *op, AffineForms &forms) {
    if (op->getNumResults() != 1 || isa<ConstantOp>(op))
      return {};
    OpBuilder builder(op);
    auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
    if (!type)
      return {};
    Value value;
    if (std::optional<int64_t> splat = forms.getSplat(op->getResult(0));
        splat && type.hasStaticShape()) {
      unsigned width = type.getElementTypeBitWidth();
      auto element = APInt(width, static_cast<uint64_t>(*splat), /*isSigned=*/width > 1,
                           /*implicitTrunc=*/true);
      value =
          ConstantOp::create(builder, op->getLoc(), type, DenseElementsAttr::get(type, element));
      ++splats;
    } else if (auto index = dyn_cast<IndexOp>(op)) {
      value = buildIndexAsView(builder, index, forms);
      indexings += value != nullptr;
    } else if (isa<BitwiseAndOp, LogicalAndOp>(op) && type.getElementType().isInteger(1)) {
      value = otherSide(builder, op, type, forms);
      conjunctions += value != nullptr;
    }
    if (value)
      forms.copy(value, op->getResult(0));
    return value;
  }

  /// For a conjunction with true: the other operand, broadcast to the result.
  static Value otherSide(OpBuilder &builder, Operation *op, RankedTensorType type,
                         const AffineForms &forms) {
    for (unsigned i : {0, 1}) {
      const MaskForm *mask = forms.getMask(op->getOperand(i));
      Value other = op->getOperand(1 - i);
      if (!mask || !mask->isTrue() || !elementTypeOf(other).isInteger(1))
        continue;
      if (other.getType() == type)
        return other;
      return expandTo(builder, op, type, other, op->getOperand(i));
    }
    return {};
  }

  /// `value` broadcast to `type`, which is its broadcast shape with `partner`.
  static Value expandTo(OpBuilder &builder, Operation *op, RankedTensorType type, Value value,
                        Value partner) {
    SmallVector<OpFoldResult> sizes;
    for (auto [i, size] : llvm::enumerate(type.getShape())) {
      if (!ShapedType::isDynamic(size)) {
        sizes.push_back(builder.getIndexAttr(size));
        continue;
      }
      int64_t back = type.getRank() - static_cast<int64_t>(i);
      auto tells = [&](Value v) {
        int64_t dim = typeOf(v).getRank() - back;
        return dim >= 0 && typeOf(v).isDynamicDim(dim);
      };
      Value source = tells(value) ? value : partner;
      sizes.push_back(
          materializeSize(builder, op->getLoc(), source, typeOf(source).getRank() - back));
    }
    SmallVector<Value> dynamic;
    SmallVector<int64_t> fixed;
    dispatchIndexOpFoldResults(sizes, dynamic, fixed);
    return ExpandOp::create(builder, op->getLoc(), value, fixed, dynamic);
  }

  /// The mask of an attention that is composed of other ops, for when it becomes one op again.
  static void noteAttentionMask(Operation *op, const AffineForms &forms) {
    auto part = op->getAttrOfType<StringAttr>(kAttentionPartAttr);
    if (!part || part != kAttentionMask)
      return;
    Value mask = op->getOperand(0);
    StringRef form = forms.isAllVisible(mask) ? StringRef(kMaskShowsAll)
                     : forms.isCausal(mask)   ? StringRef(kMaskIsCausal)
                                              : StringRef();
    if (!form.empty())
      op->setAttr(kAttentionMaskFormAttr, StringAttr::get(op->getContext(), form));
  }

  void foldAttentionMask(ScaledDotProductAttentionOp op, const AffineForms &forms) {
    Value mask = op.getAttnMask();
    if (!mask)
      return;
    if (forms.isAllVisible(mask)) {
      ++invisible;
    } else if (forms.isCausal(mask)) {
      op.setIsCausal(true);
      ++causal;
    } else {
      // The op broadcasts its mask, rows and columns at least: no need to write it out.
      for (auto expand = mask.getDefiningOp<ExpandOp>();
           expand && typeOf(expand.getSelf()).getRank() >= 2;
           expand = mask.getDefiningOp<ExpandOp>())
        mask = expand.getSelf();
      op.getAttnMaskMutable().assign(mask);
      return;
    }
    op.getAttnMaskMutable().clear();
  }
};

} // namespace
} // namespace shardc::aten
