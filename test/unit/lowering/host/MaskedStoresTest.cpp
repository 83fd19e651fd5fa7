// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "lowering/host/MaskedStores.h"
#include "lowering/host/HostCode.h"

#include "llvm/AsmParser/Parser.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Support/SourceMgr.h"

#include "gtest/gtest.h"

using namespace llvm;

namespace {

/// A function that stores `value`, of 4 lanes of `element`, with this mask.
std::unique_ptr<Module> storing(LLVMContext &context, StringRef element, StringRef mask) {
  std::string type = ("<4 x " + element + ">").str();
  std::string text = "define void @f(" + type + " %value, ptr %p, <4 x i1> %some) {\n" +
                     "  call void @llvm.masked.store(" + type + " %value, ptr align 8 %p, " +
                     "<4 x i1> " + mask.str() + ")\n  ret void\n}\n";
  std::string name = "llvm.masked.store.v4" + element.str() + ".p0";
  size_t at = text.find("llvm.masked.store(");
  text.replace(at, strlen("llvm.masked.store"), name);
  SMDiagnostic error;
  std::unique_ptr<Module> module = parseAssemblyString(text, error, context);
  EXPECT_TRUE(module) << error.getMessage().str();
  return module;
}

struct Stores {
  std::vector<StoreInst *> scalar;
  unsigned masked = 0;
};

Stores storesAfterwards(Module &module) {
  Function &function = *module.getFunction("f");
  FunctionAnalysisManager analyses;
  shardc::host::ScalariseMaskedStores::run(function, analyses);
  EXPECT_FALSE(verifyModule(module, &errs()));
  Stores stores;
  for (Instruction &instruction : instructions(function)) {
    if (auto *store = dyn_cast<StoreInst>(&instruction))
      stores.scalar.push_back(store);
    if (auto *call = dyn_cast<IntrinsicInst>(&instruction))
      stores.masked += call->getIntrinsicID() == Intrinsic::masked_store;
  }
  return stores;
}

TEST(MaskedStores, OneLaneIsAScalarStoreOfItsElement) {
  LLVMContext context;
  for (unsigned lane = 0; lane < 4; ++lane) {
    std::string mask;
    for (unsigned i = 0; i < 4; ++i)
      mask += std::string(i == 0 ? "<i1 " : ", i1 ") + (i == lane ? "true" : "false");
    std::unique_ptr<Module> module = storing(context, "i16", mask + ">");
    Stores stores = storesAfterwards(*module);
    ASSERT_EQ(stores.scalar.size(), 1U);
    EXPECT_EQ(stores.masked, 0U);
    StoreInst *store = stores.scalar.front();
    EXPECT_TRUE(store->getValueOperand()->getType()->isIntegerTy(16));
    auto *element = cast<ExtractElementInst>(store->getValueOperand());
    EXPECT_EQ(cast<ConstantInt>(element->getIndexOperand())->getZExtValue(), lane);
    APInt offset(64, 0);
    const DataLayout &layout = module->getDataLayout();
    const Value *base =
        store->getPointerOperand()->stripAndAccumulateConstantOffsets(layout, offset, true);
    EXPECT_EQ(base, module->getFunction("f")->getArg(1));
    EXPECT_EQ(offset.getZExtValue(), 2 * lane);
    EXPECT_EQ(store->getAlign().value(), lane == 0 ? 8U : lane == 2 ? 4U : 2U);
  }
}

TEST(MaskedStores, OthersStay) {
  LLVMContext context;
  for (StringRef mask : {"<i1 true, i1 true, i1 false, i1 false>", "zeroinitializer", "%some",
                         "splat (i1 true)", "<i1 true, i1 poison, i1 false, i1 false>"}) {
    Stores stores = storesAfterwards(*storing(context, "i32", mask));
    EXPECT_EQ(stores.scalar.size(), 0U) << mask.str();
    EXPECT_EQ(stores.masked, 1U) << mask.str();
  }
  // Bits, which have no addresses of their own.
  Stores bits =
      storesAfterwards(*storing(context, "i1", "<i1 true, i1 false, i1 false, i1 false>"));
  EXPECT_EQ(bits.masked, 1U);
}

/// A loop whose last iteration has one lane, which LLVM cuts short from 64 bits.
TEST(MaskedStores, HostCodeHasNoneOfOneLane) {
  LLVMContext context;
  SMDiagnostic error;
  std::unique_ptr<Module> module =
      parseAssemblyString("define void @f(<8 x i64> %wide, ptr %p) {\n"
                          "  %value = trunc <8 x i64> %wide to <8 x i8>\n"
                          "  call void @llvm.masked.store.v8i8.p0(<8 x i8> %value, ptr align 1 %p, "
                          "<8 x i1> <i1 true, i1 false, i1 false, i1 false, i1 false, i1 false, "
                          "i1 false, i1 false>)\n"
                          "  ret void\n}\n",
                          error, context);
  ASSERT_TRUE(module) << error.getMessage().str();
  llvm::Expected<shardc::target::Processor> processor =
      shardc::target::makeProcessor("x86_64-unknown-linux-gnu", "skylake-avx512", "");
  ASSERT_TRUE(bool(processor)) << toString(processor.takeError());
  llvm::Expected<shardc::target::ObjectCode> object = shardc::host::emitObject(*module, *processor);
  ASSERT_TRUE(bool(object)) << toString(object.takeError());
  Function &function = *module->getFunction("f");
  for (Instruction &instruction : instructions(function))
    if (auto *call = dyn_cast<IntrinsicInst>(&instruction))
      EXPECT_NE(call->getIntrinsicID(), Intrinsic::masked_store);
  bool storesAByte = llvm::any_of(instructions(function), [](const Instruction &instruction) {
    auto *store = dyn_cast<StoreInst>(&instruction);
    return store && store->getValueOperand()->getType()->isIntegerTy(8);
  });
  EXPECT_TRUE(storesAByte);
}

} // namespace
