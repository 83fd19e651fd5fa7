// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Calls of checks before accesses to memory. Accesses to what surely is a thread's own (allocas,
// parameters) need none.
#include "tools/cuda-emulator/Retarget.h"

#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/raw_ostream.h>

#include <algorithm>
#include <bit>

namespace shardc::emulator {
namespace {

using llvm::IRBuilder;
using llvm::Value;

class Checks {
public:
  Checks(llvm::Function &function, const ThreadValues &values, CompiledKernel &kernel,
         Problems &problems)
      : function(function), values(values), kernel(kernel), problems(problems),
        layout(function.getParent()->getDataLayout()) {}

  void run() {
    std::vector<llvm::Instruction *> all;
    for (llvm::Instruction &instruction : llvm::instructions(function))
      all.push_back(&instruction);
    for (llvm::Instruction *instruction : all)
      visit(*instruction);
  }

private:
  void visit(llvm::Instruction &instruction) {
    if (auto *load = llvm::dyn_cast<llvm::LoadInst>(&instruction))
      return access(instruction, load->getPointerOperand(), load->getType(), load->getAlign(),
                    false, load->isAtomic());
    if (auto *store = llvm::dyn_cast<llvm::StoreInst>(&instruction))
      return access(instruction, store->getPointerOperand(), store->getValueOperand()->getType(),
                    store->getAlign(), true, store->isAtomic());
    if (auto *exchange = llvm::dyn_cast<llvm::AtomicCmpXchgInst>(&instruction))
      return access(instruction, exchange->getPointerOperand(),
                    exchange->getCompareOperand()->getType(), exchange->getAlign(), true, true);
    if (llvm::isa<llvm::AtomicRMWInst>(&instruction)) {
      problems.push_back("an atomic operation other than compare-and-swap");
      return;
    }
    auto *call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
    if (!call)
      return;
    if (auto *transfer = llvm::dyn_cast<llvm::MemTransferInst>(call)) {
      range(*call, transfer->getRawSource(), transfer->getLength(), false);
      range(*call, transfer->getRawDest(), transfer->getLength(), true);
    } else if (auto *set = llvm::dyn_cast<llvm::MemSetInst>(call)) {
      range(*call, set->getRawDest(), set->getLength(), true);
    } else if (call->getIntrinsicID() == llvm::Intrinsic::masked_load) {
      masked(*call, call->getArgOperand(0), call->getType(), call->getArgOperand(1), false);
    } else if (call->getIntrinsicID() == llvm::Intrinsic::masked_store) {
      masked(*call, call->getArgOperand(1), call->getArgOperand(0)->getType(),
             call->getArgOperand(2), true);
    } else if (call->getIntrinsicID() == llvm::Intrinsic::masked_gather ||
               call->getIntrinsicID() == llvm::Intrinsic::masked_scatter) {
      problems.push_back(call->getCalledFunction()->getName().str());
    }
  }

  bool isOwn(Value *pointer) {
    const Value *object = llvm::getUnderlyingObject(pointer);
    if (llvm::isa<llvm::AllocaInst>(object))
      return true;
    auto *argument = llvm::dyn_cast<llvm::Argument>(object);
    return argument && argument->hasByValAttr();
  }

  uint32_t siteAndAlignment(llvm::Instruction &instruction, uint64_t alignment) {
    return addSite(kernel, instruction) << 4 | uint32_t(std::countr_zero(alignment));
  }

  void access(llvm::Instruction &instruction, Value *pointer, llvm::Type *type, llvm::Align align,
              bool write, bool atomic) {
    if (isOwn(pointer))
      return;
    IRBuilder<> b(&instruction);
    uint64_t bytes = layout.getTypeStoreSize(type);
    // What is less aligned than its size, code generation for the device takes apart.
    uint64_t alignment = std::min<uint64_t>({align.value(), std::bit_floor(bytes), 16});
    uint32_t site = siteAndAlignment(instruction, alignment);
    Value *address = b.CreatePtrToInt(pointer, b.getInt64Ty());
    if (atomic || !std::has_single_bit(bytes) || bytes > 16) {
      b.CreateCall(support(*function.getParent(), "emulated_range"),
                   {values.block, address, b.getInt64(bytes), values.thread, b.getInt32(site),
                    b.getInt32((write ? 1 : 0) | (atomic ? 2 : 0))});
      return;
    }
    bool shared = pointer->getType()->getPointerAddressSpace() == sharedSpace;
    std::string name = std::string(shared ? "emulated_shared_" : "emulated_") +
                       (write ? "write" : "read") + std::to_string(bytes);
    b.CreateCall(support(*function.getParent(), name),
                 {values.block, address, values.thread, b.getInt32(site)});
  }

  void range(llvm::IntrinsicInst &call, Value *pointer, Value *bytes, bool write) {
    if (isOwn(pointer))
      return;
    IRBuilder<> b(&call);
    b.CreateCall(support(*function.getParent(), "emulated_range"),
                 {values.block, b.CreatePtrToInt(pointer, b.getInt64Ty()),
                  b.CreateZExtOrTrunc(bytes, b.getInt64Ty()), values.thread,
                  b.getInt32(siteAndAlignment(call, 1)), b.getInt32(write)});
  }

  void masked(llvm::IntrinsicInst &call, Value *pointer, llvm::Type *type, Value *mask,
              bool write) {
    auto *vector = llvm::dyn_cast<llvm::FixedVectorType>(type);
    if (!vector) {
      problems.push_back(call.getCalledFunction()->getName().str());
      return;
    }
    if (isOwn(pointer))
      return;
    IRBuilder<> b(&call);
    uint64_t bytes = layout.getTypeStoreSize(vector->getElementType());
    uint32_t site = siteAndAlignment(call, std::bit_floor(bytes));
    Value *address = b.CreatePtrToInt(pointer, b.getInt64Ty());
    for (unsigned i = 0; i < vector->getNumElements(); ++i)
      b.CreateCall(
          support(*function.getParent(), "emulated_range"),
          {values.block, b.CreateAdd(address, b.getInt64(i * bytes)),
           b.CreateSelect(b.CreateExtractElement(mask, i), b.getInt64(bytes), b.getInt64(0)),
           values.thread, b.getInt32(site), b.getInt32(write)});
  }

  llvm::Function &function;
  const ThreadValues &values;
  CompiledKernel &kernel;
  Problems &problems;
  const llvm::DataLayout &layout;
};

} // namespace

void insertChecks(llvm::Function &function, const ThreadValues &values, CompiledKernel &kernel,
                  Problems &problems) {
  Checks(function, values, kernel, problems).run();
}

uint32_t addSite(CompiledKernel &kernel, const llvm::Instruction &instruction) {
  std::string text;
  llvm::raw_string_ostream out(text);
  if (auto *call = llvm::dyn_cast<llvm::CallInst>(&instruction)) {
    llvm::StringRef name =
        call->getCalledFunction() ? call->getCalledFunction()->getName() : "call";
    name.consume_front("llvm.nvvm.");
    out << name;
  } else if (auto *store = llvm::dyn_cast<llvm::StoreInst>(&instruction)) {
    out << "store " << *store->getValueOperand()->getType();
  } else {
    out << instruction.getOpcodeName() << " " << *instruction.getType();
  }
  out << " (check " << kernel.sites.size() << ")";
  if (const llvm::DebugLoc &location = instruction.getDebugLoc()) {
    out << " at ";
    location.print(out);
  }
  kernel.sites.push_back(text);
  return uint32_t(kernel.sites.size() - 1);
}

} // namespace shardc::emulator
