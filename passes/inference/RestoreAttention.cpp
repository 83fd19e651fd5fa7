// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/inference/RestoreAttention.h"
#include "passes/inference/Passes.h"

#include "dialects/aten/Aten.h"
#include "dialects/aten/TrainingAttention.h"
#include "dialects/dist/Dist.h"
#include "dialects/interfaces/ModelLocation.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace shardc;

namespace {

using Parts = llvm::StringMap<aten::AliasOp>;

llvm::MapVector<Attribute, Parts> findAttentions(Block &block) {
  llvm::MapVector<Attribute, Parts> attentions;
  for (auto alias : block.getOps<aten::AliasOp>()) {
    Attribute mark = alias->getAttr(aten::kTrainingAttentionAttr);
    auto part = alias->getAttrOfType<StringAttr>(aten::kAttentionPartAttr);
    if (mark && part)
      attentions[mark][part.getValue()] = alias;
  }
  return attentions;
}

struct Restored {
  aten::AliasOp result;
  OpBuilder builder;
  Type element;

  explicit Restored(aten::AliasOp result)
      : result(result), builder(result), element(aten::elementTypeOf(result.getResult())) {}

  /// A part in the type that the attention computes in.
  Value inType(aten::AliasOp part) {
    Value value = part.getSelf().getType() == part.getType() ? part.getSelf() : part.getResult();
    auto own = cast<RankedTensorType>(value.getType());
    if (own.getElementType() == element || own.getElementType().isInteger(1))
      return value;
    Value made = aten::ToCopyOp::create(builder, result.getLoc(), value, element);
    made.setType(RankedTensorType::get(own.getShape(), element, own.getEncoding()));
    return made;
  }

  void replace(const Parts &parts, DictionaryAttr options) {
    bool isCausal = options.contains("is_causal");
    Value mask;
    if (options.contains("attn_mask")) {
      aten::AliasOp part = parts.lookup(aten::kAttentionMask);
      auto form = part->getAttrOfType<StringAttr>(aten::kAttentionMaskFormAttr);
      isCausal |= form && form == aten::kMaskIsCausal;
      if (!form)
        mask = inType(part);
    }
    Value made = aten::ScaledDotProductAttentionOp::create(
        builder, result.getLoc(), inType(parts.lookup(aten::kAttentionQuery)),
        inType(parts.lookup(aten::kAttentionKey)), inType(parts.lookup(aten::kAttentionValue)),
        mask, APFloat(0.0), isCausal, options.getAs<FloatAttr>("scale"),
        options.contains("enable_gqa"), /*static_first=*/0, /*first=*/Value());
    Type type = result.getType();
    if (made.getType() != type && dist::getLayout(type))
      made = dist::RedistributeOp::create(builder, result.getLoc(), type, made, /*backward=*/false);
    result.getResult().replaceAllUsesWith(made);
    result.erase();
  }
};

} // namespace

unsigned shardc::restoreAttention(Block &block) {
  unsigned count = 0;
  for (auto &[mark, parts] : findAttentions(block)) {
    aten::AliasOp result = parts.lookup(aten::kAttentionResult);
    if (!result)
      continue; // nobody reads it any more
    auto options = result->getAttrOfType<DictionaryAttr>(aten::kAttentionOptionsAttr);
    SmallVector<StringRef> needed = {aten::kAttentionQuery, aten::kAttentionKey,
                                     aten::kAttentionValue};
    if (options && options.contains("attn_mask"))
      needed.push_back(aten::kAttentionMask);
    if (!options ||
        !llvm::all_of(needed, [&parts = parts](StringRef part) { return parts.contains(part); })) {
      emitRemark(result.getLoc()) << "the attention in " << describePlace(result.getLoc())
                                  << " stays composed of products and a softmax in inference: a "
                                     "pass has removed a value that it was made of";
      continue;
    }
    Restored(result).replace(parts, options);
    ++count;
  }
  return count;
}

void shardc::forgetAttention(func::FuncOp function) {
  for (auto alias :
       llvm::make_early_inc_range(function.getBody().front().getOps<aten::AliasOp>())) {
    if (!alias->hasAttr(aten::kTrainingAttentionAttr) ||
        alias.getType() != alias.getSelf().getType())
      continue;
    alias.getResult().replaceAllUsesWith(alias.getSelf());
    alias.erase();
  }
}
