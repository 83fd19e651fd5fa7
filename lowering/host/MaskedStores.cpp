// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "lowering/host/MaskedStores.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"

#include <optional>

using namespace llvm;

namespace shardc::host {

/// The one lane that a mask lets through; nothing where there are none, several, or one that is not
/// known.
static std::optional<unsigned> onlyLane(const Value *mask) {
  const auto *constant = dyn_cast<Constant>(mask);
  const auto *type = dyn_cast<FixedVectorType>(mask->getType());
  if (!constant || !type)
    return std::nullopt;
  std::optional<unsigned> only;
  for (unsigned lane = 0; lane < type->getNumElements(); ++lane) {
    const Constant *bit = constant->getAggregateElement(lane);
    if (bit && bit->isNullValue())
      continue;
    if (only || !bit || !bit->isOneValue())
      return std::nullopt;
    only = lane;
  }
  return only;
}

PreservedAnalyses ScalariseMaskedStores::run(Function &function, FunctionAnalysisManager &) {
  bool isChanged = false;
  for (Instruction &instruction : make_early_inc_range(instructions(function))) {
    auto *store = dyn_cast<IntrinsicInst>(&instruction);
    if (!store || store->getIntrinsicID() != Intrinsic::masked_store)
      continue;
    Value *value = store->getArgOperand(0), *address = store->getArgOperand(1);
    std::optional<unsigned> lane = onlyLane(store->getArgOperand(2));
    if (!lane)
      continue;
    const DataLayout &layout = function.getDataLayout();
    Type *element = value->getType()->getScalarType();
    // Elements follow each other without padding only where they have whole bytes.
    if (layout.getTypeSizeInBits(element) != layout.getTypeStoreSizeInBits(element))
      continue;
    uint64_t offset = *lane * layout.getTypeStoreSize(element).getFixedValue();
    Align align = commonAlignment(store->getParamAlign(1).valueOrOne(), offset);
    IRBuilder<> builder(store);
    Value *one = builder.CreateExtractElement(value, *lane);
    auto *scalar = builder.CreateAlignedStore(
        one, builder.CreateConstInBoundsGEP1_64(builder.getInt8Ty(), address, offset), align);
    scalar->setAAMetadata(store->getAAMetadata());
    store->eraseFromParent();
    isChanged = true;
  }
  if (!isChanged)
    return PreservedAnalyses::all();
  PreservedAnalyses preserved;
  preserved.preserveSet<CFGAnalyses>();
  return preserved;
}

} // namespace shardc::host
