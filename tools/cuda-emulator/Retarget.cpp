// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/cuda-emulator/Retarget.h"
#include "tools/cuda-emulator/Settings.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/ReplaceConstant.h>

#include <algorithm>
#include <cstddef>

namespace shardc::emulator {
namespace {

using llvm::IRBuilder;
using llvm::Type;
using llvm::Value;

/// Bytes between variables in shared memory that belong to none.
constexpr uint32_t sharedGap = 64;

uint32_t roundUp(uint64_t value, uint64_t unit) {
  return uint32_t((value + unit - 1) / unit * unit);
}

/// Gives the variables of shared memory their places in that of the block.
void placeShared(llvm::Function &function, Value *block, CompiledKernel &kernel) {
  llvm::Module &module = *function.getParent();
  const llvm::DataLayout &layout = module.getDataLayout();
  llvm::SmallVector<llvm::Constant *> used;
  for (llvm::GlobalVariable &variable : module.globals())
    if (variable.getAddressSpace() == sharedSpace && !variable.use_empty())
      used.push_back(&variable);
  if (used.empty())
    return;
  llvm::convertUsersOfConstantsToInstructions(used);
  IRBuilder<> b(&*function.getEntryBlock().getFirstInsertionPt());
  Value *at = b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), block, offsetof(Block, shared));
  auto *base = b.CreateAlignedLoad(b.getPtrTy(), at, llvm::Align(8));
  base->setMetadata(llvm::LLVMContext::MD_invariant_load,
                    llvm::MDNode::get(module.getContext(), {}));
  Value *shared = b.CreateAddrSpaceCast(base, b.getPtrTy(sharedSpace));
  uint32_t offset = 0;
  std::vector<llvm::GlobalVariable *> dynamic;
  for (llvm::Constant *constant : used) {
    auto *variable = llvm::cast<llvm::GlobalVariable>(constant);
    uint64_t bytes = layout.getTypeAllocSize(variable->getValueType());
    if (variable->isDeclaration() || bytes == 0) {
      dynamic.push_back(variable);
      continue;
    }
    offset = roundUp(offset, std::max<uint64_t>(16, variable->getAlign().valueOrOne().value()));
    kernel.shared.push_back({offset, uint32_t(bytes)});
    variable->replaceAllUsesWith(b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), shared, offset));
    offset += uint32_t(bytes) + sharedGap;
  }
  kernel.dynamicOffset = roundUp(offset, 128);
  for (llvm::GlobalVariable *variable : dynamic)
    variable->replaceAllUsesWith(
        b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), shared, kernel.dynamicOffset));
}

/// Branches into blocks that do nothing but report a failure, which ends in a compare-and-swap on
/// the error word.
void collectFailures(llvm::BasicBlock &block, int depth,
                     std::vector<std::pair<llvm::BranchInst *, bool>> &out) {
  for (llvm::BasicBlock *before : llvm::predecessors(&block)) {
    auto *branch = llvm::dyn_cast<llvm::BranchInst>(before->getTerminator());
    if (!branch)
      continue;
    if (branch->isConditional())
      out.push_back({branch, branch->getSuccessor(0) == &block});
    else if (depth)
      collectFailures(*before, depth - 1, out);
  }
}

} // namespace

std::vector<llvm::Instruction *> dropOne(llvm::Function &kernel, uint64_t &rangeChecks) {
  std::vector<llvm::Instruction *> dropped;
  std::vector<llvm::CallInst *> barriers;
  std::vector<std::pair<llvm::BranchInst *, bool>> failures;
  for (llvm::BasicBlock &block : kernel) {
    bool reports = false;
    for (llvm::Instruction &instruction : block) {
      reports |= llvm::isa<llvm::AtomicCmpXchgInst>(instruction);
      auto *call = llvm::dyn_cast<llvm::CallInst>(&instruction);
      if (!call || !call->getCalledFunction())
        continue;
      llvm::StringRef name = call->getCalledFunction()->getName();
      if (name.starts_with("llvm.nvvm.barrier") || name == "llvm.nvvm.bar.warp.sync")
        barriers.push_back(call);
    }
    if (reports)
      collectFailures(block, 3, failures);
  }
  for (llvm::CallInst *barrier : barriers)
    if (counts().next(Dropped::Barrier)) {
      dropped.push_back(barrier->getNextNode());
      barrier->eraseFromParent();
    }
  rangeChecks = failures.size();
  for (auto [branch, failsIfTrue] : failures) {
    if (!counts().next(Dropped::Check))
      continue;
    // Whatever else depends on the condition goes on as if all were well, too.
    Value *condition = branch->getCondition();
    Value *fine = llvm::ConstantInt::getBool(kernel.getContext(), !failsIfTrue);
    if (llvm::isa<llvm::Instruction>(condition))
      condition->replaceAllUsesWith(fine);
    else
      branch->setCondition(fine);
    dropped.push_back(branch);
  }
  return dropped;
}

/// Notes that a thread came by.
void noteReached(llvm::Instruction *place) {
  IRBuilder<> b(place);
  Value *address =
      b.CreateIntToPtr(b.getInt64(reinterpret_cast<uintptr_t>(&counts().reached)), b.getPtrTy());
  b.CreateStore(b.getInt8(1), address, /*isVolatile=*/true);
}

llvm::Function *lowerKernel(llvm::Function *function, CompiledKernel &kernel, Problems &problems) {
  llvm::Module &module = *function->getParent();
  llvm::LLVMContext &context = module.getContext();
  Type *i32 = Type::getInt32Ty(context);
  llvm::SmallVector<Type *> types = {llvm::PointerType::get(context, 0), i32, i32, i32, i32};
  constexpr unsigned own = 5;
  for (llvm::Argument &argument : function->args())
    types.push_back(argument.getType());
  auto *thread =
      llvm::Function::Create(llvm::FunctionType::get(Type::getVoidTy(context), types, false),
                             llvm::GlobalValue::InternalLinkage, kernel.name + ".thread", module);
  thread->splice(thread->begin(), function);
  for (llvm::Argument &argument : function->args()) {
    llvm::Argument *to = thread->getArg(own + argument.getArgNo());
    argument.replaceAllUsesWith(to);
    llvm::AttributeSet attributes = function->getAttributes().getParamAttrs(argument.getArgNo());
    llvm::AttrBuilder builder(context, attributes);
    to->addAttrs(builder);
  }
  function->eraseFromParent();
  thread->addFnAttr(llvm::Attribute::NoUnwind);
  thread->addFnAttr(llvm::Attribute::AlwaysInline);
  ThreadValues values{thread->getArg(0),
                      thread->getArg(1),
                      {thread->getArg(2), thread->getArg(3), thread->getArg(4)}};
  std::vector<llvm::Instruction *> dropped = dropOne(*thread, kernel.rangeChecks);
  for (llvm::Instruction &instruction : llvm::instructions(thread))
    if (auto *alloca = llvm::dyn_cast<llvm::AllocaInst>(&instruction)) {
      auto bytes = alloca->getAllocationSize(module.getDataLayout());
      if (!bytes || bytes->isScalable())
        problems.push_back("local memory of a size that is not known");
      else
        kernel.stackBytes += bytes->getFixedValue();
    }
  if (settings().checks)
    insertChecks(*thread, values, kernel, problems);
  std::for_each(dropped.begin(), dropped.end(), noteReached);
  lowerIntrinsics(*thread, values, kernel, problems);
  placeShared(*thread, values.block, kernel);
  return thread;
}

llvm::Function *makeEntry(llvm::Function *thread, const CompiledKernel &kernel) {
  llvm::Module &module = *thread->getParent();
  llvm::LLVMContext &context = module.getContext();
  Type *i32 = Type::getInt32Ty(context), *ptr = llvm::PointerType::get(context, 0);
  auto *entry =
      llvm::Function::Create(llvm::FunctionType::get(Type::getVoidTy(context), {ptr, i32}, false),
                             llvm::GlobalValue::ExternalLinkage, "entry", module);
  IRBuilder<> b(llvm::BasicBlock::Create(context, "begin", entry));
  Value *block = entry->getArg(0);
  auto field = [&](size_t offset, Type *type) {
    return b.CreateLoad(type, b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), block, offset));
  };
  Value *size[3];
  for (int i = 0; i < 3; ++i)
    size[i] = field(offsetof(Block, size) + 4 * i, i32);
  llvm::SmallVector<Value *> arguments(5);
  arguments[0] = block;
  Value *params = field(offsetof(Block, params), ptr);
  for (unsigned i = 5; i < thread->arg_size(); ++i) {
    llvm::Argument *to = thread->getArg(i);
    Value *value = b.CreateLoad(ptr, b.CreateConstInBoundsGEP1_64(ptr, params, i - 5));
    arguments.push_back(to->hasByValAttr() ? value : b.CreateLoad(to->getType(), value));
  }
  auto call = [&](Value *number, Value *x, Value *y, Value *z) {
    arguments[1] = number;
    arguments[2] = x;
    arguments[3] = y;
    arguments[4] = z;
    b.CreateCall(thread, arguments);
  };
  if (kernel.fibers) {
    Value *number = entry->getArg(1);
    Value *row = b.CreateUDiv(number, size[0]);
    call(number, b.CreateURem(number, size[0]), b.CreateURem(row, size[1]),
         b.CreateUDiv(row, size[1]));
    b.CreateRetVoid();
    return entry;
  }
  // One loop over all threads, which counts the three numbers too.
  llvm::BasicBlock *before = b.GetInsertBlock();
  auto *loop = llvm::BasicBlock::Create(context, "loop", entry);
  auto *end = llvm::BasicBlock::Create(context, "end", entry);
  Value *n = b.CreateMul(b.CreateMul(size[0], size[1]), size[2]);
  b.CreateBr(loop);
  b.SetInsertPoint(loop);
  llvm::PHINode *number = b.CreatePHI(i32, 2), *x = b.CreatePHI(i32, 2), *y = b.CreatePHI(i32, 2),
                *z = b.CreatePHI(i32, 2);
  call(number, x, y, z);
  auto next = [&](Value *value) { return b.CreateAdd(value, b.getInt32(1)); };
  Value *rowEnds = b.CreateICmpEQ(next(x), size[0]);
  Value *planeEnds = b.CreateAnd(rowEnds, b.CreateICmpEQ(next(y), size[1]));
  Value *zero = b.getInt32(0);
  Value *nextNumber = next(number);
  Value *nextX = b.CreateSelect(rowEnds, zero, next(x));
  Value *nextY = b.CreateSelect(planeEnds, zero, b.CreateSelect(rowEnds, next(y), y));
  Value *nextZ = b.CreateSelect(planeEnds, next(z), z);
  for (auto [phi, value] : {std::pair<llvm::PHINode *, Value *>{number, nextNumber},
                            {x, nextX},
                            {y, nextY},
                            {z, nextZ}}) {
    phi->addIncoming(zero, before);
    phi->addIncoming(value, b.GetInsertBlock());
  }
  b.CreateCondBr(b.CreateICmpULT(nextNumber, n), loop, end);
  b.SetInsertPoint(end);
  b.CreateRetVoid();
  return entry;
}

} // namespace shardc::emulator
