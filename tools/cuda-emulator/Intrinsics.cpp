// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What of llvm.nvvm.* the emulated device has, as code of the host.
#include "tools/cuda-emulator/Retarget.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>

#include <cstddef>
#include <map>
#include <optional>
#include <set>

namespace shardc::emulator {
namespace {

using llvm::IRBuilder;
using llvm::StringRef;
using llvm::Type;
using llvm::Value;
using llvm::Intrinsic::ID;

constexpr unsigned inWords = 16, outWords = 8;

class Lowering {
public:
  Lowering(llvm::Function &function, const ThreadValues &values, CompiledKernel &kernel,
           Problems &problems)
      : function(function), values(values), kernel(kernel), problems(problems),
        module(*function.getParent()), context(function.getContext()) {}

  void run() {
    std::vector<llvm::CallInst *> calls;
    for (llvm::Instruction &instruction : llvm::instructions(function))
      if (auto *call = llvm::dyn_cast<llvm::CallInst>(&instruction))
        calls.push_back(call);
    for (llvm::CallInst *call : calls)
      lower(*call);
    for (const std::string &name : missing)
      problems.push_back(name);
  }

private:
  void lower(llvm::CallInst &call) {
    if (call.isInlineAsm()) {
      missing.insert("inline assembly");
      return;
    }
    llvm::Function *callee = call.getCalledFunction();
    if (!callee) {
      missing.insert("a call through a pointer");
      return;
    }
    StringRef name = callee->getName();
    IRBuilder<> b(&call);
    Value *result = nullptr;
    if (callee->getIntrinsicID() == llvm::Intrinsic::trap) {
      result = b.CreateCall(support(module, "emulated_trap"),
                            {values.block, values.thread, b.getInt32(addSite(kernel, call))});
    } else if (!name.consume_front("llvm.nvvm.")) {
      return;
    } else if (name.consume_front("read.ptx.sreg.")) {
      result = specialRegister(b, name);
    } else {
      result = synchronisation(b, name, call);
      if (!result)
        result = arithmetic(b, name, call);
    }
    if (!result) {
      missing.insert(callee->getName().str());
      return;
    }
    if (!call.getType()->isVoidTy())
      call.replaceAllUsesWith(result);
    call.eraseFromParent();
  }

  Value *blockField(IRBuilder<> &b, size_t offset) {
    Value *at = b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), values.block, offset);
    auto *load = b.CreateAlignedLoad(b.getInt32Ty(), at, llvm::Align(4));
    load->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(context, {}));
    return load;
  }

  Value *lane(IRBuilder<> &b) { return b.CreateAnd(values.thread, warpThreads - 1); }

  Value *specialRegister(IRBuilder<> &b, StringRef name) {
    for (auto [prefix, offset] : {std::pair<StringRef, size_t>{"ntid.", offsetof(Block, size)},
                                  {"nctaid.", offsetof(Block, grid)},
                                  {"ctaid.", offsetof(Block, index)}})
      if (name.starts_with(prefix) && name.size() == prefix.size() + 1 && name.back() != 'w')
        return blockField(b, offset + 4 * (name.back() - 'x'));
    if (name.starts_with("tid.") && name.size() == 5 && name.back() != 'w')
      return values.index[name.back() - 'x'];
    if (name == "laneid")
      return lane(b);
    if (name == "warpid")
      return b.CreateUDiv(values.thread, b.getInt32(warpThreads));
    if (name == "warpsize")
      return b.getInt32(warpThreads);
    Value *bit = b.CreateShl(b.getInt32(1), lane(b)), *below = b.CreateSub(bit, b.getInt32(1));
    if (name == "lanemask.eq")
      return bit;
    if (name == "lanemask.lt")
      return below;
    if (name == "lanemask.le")
      return b.CreateOr(bit, below);
    if (name == "lanemask.gt")
      return b.CreateNot(b.CreateOr(bit, below));
    if (name == "lanemask.ge")
      return b.CreateNot(below);
    return nullptr;
  }

  llvm::AllocaInst *words(llvm::AllocaInst *&made, unsigned n) {
    if (!made) {
      IRBuilder<> b(&*function.getEntryBlock().getFirstInsertionPt());
      made = b.CreateAlloca(llvm::ArrayType::get(b.getInt32Ty(), n));
      made->setAlignment(llvm::Align(16));
    }
    return made;
  }

  Value *waitingSite(IRBuilder<> &b, llvm::CallInst &call, const char *kind) {
    uint32_t site = addSite(kernel, call);
    kernel.waiting.push_back({kind, site});
    return b.getInt32(site);
  }

  /// Comes together with the other lanes of the mask. What comes out is in `outMemory`.
  void together(IRBuilder<> &b, llvm::CallInst &call, WarpOperation operation, Value *mask,
                llvm::ArrayRef<Value *> in) {
    kernel.fibers = true;
    llvm::AllocaInst *from = words(inMemory, inWords), *to = words(outMemory, outWords);
    unsigned offset = 0;
    for (Value *value : in) {
      b.CreateAlignedStore(value, b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), from, offset),
                           llvm::Align(4));
      offset += module.getDataLayout().getTypeStoreSize(value->getType());
    }
    b.CreateCall(support(module, "emulated_warp"),
                 {values.block, values.thread, b.getInt32(uint32_t(operation)), mask, from, to,
                  operation == WarpOperation::Sync         ? waitingSite(b, call, "warp-sync")
                  : operation < WarpOperation::LoadMatrix1 ? waitingSite(b, call, "mask")
                                                           : b.getInt32(addSite(kernel, call))});
  }

  Value *outWord(IRBuilder<> &b, unsigned i, Type *type) {
    Value *at = b.CreateConstInBoundsGEP1_64(b.getInt32Ty(), outMemory, i);
    if (type->isIntegerTy(1))
      return b.CreateTrunc(b.CreateAlignedLoad(b.getInt32Ty(), at, llvm::Align(4)), type);
    return b.CreateAlignedLoad(type, at, llvm::Align(4));
  }

  /// The words as the result of the call: one, or the members of a struct.
  Value *outAs(IRBuilder<> &b, Type *type) {
    auto *members = llvm::dyn_cast<llvm::StructType>(type);
    if (!members)
      return outWord(b, 0, type);
    Value *result = llvm::PoisonValue::get(type);
    for (unsigned i = 0; i < members->getNumElements(); ++i)
      result = b.CreateInsertValue(result, outWord(b, i, members->getElementType(i)), i);
    return result;
  }

  Value *nothing() { return llvm::UndefValue::get(Type::getInt1Ty(context)); }

  Value *synchronisation(IRBuilder<> &b, StringRef name, llvm::CallInst &call) {
    auto argument = [&](unsigned i) { return call.getArgOperand(i); };
    if (name == "barrier0" || name == "barrier.cta.sync.aligned.all" ||
        name == "barrier.cta.sync.all") {
      // Named barriers other than number 0 would need counts of their own.
      if (call.arg_size() == 1 && !llvm::cast<llvm::Constant>(argument(0))->isNullValue())
        return nullptr;
      kernel.fibers = true;
      return b.CreateCall(support(module, "emulated_barrier"),
                          {values.block, values.thread, waitingSite(b, call, "barrier")});
    }
    if (name == "bar.warp.sync") {
      together(b, call, WarpOperation::Sync, argument(0), {});
      return nothing();
    }
    if (name.starts_with("membar.") || name == "nanosleep")
      return nothing();
    if (name == "activemask")
      return nullptr;
    static const auto &shuffles =
        *new std::map<StringRef, WarpOperation>{{"up", WarpOperation::ShuffleUp},
                                                {"down", WarpOperation::ShuffleDown},
                                                {"bfly", WarpOperation::ShuffleButterfly},
                                                {"idx", WarpOperation::ShuffleIndex}};
    if (StringRef rest = name; rest.consume_front("shfl.sync.")) {
      auto [mode, type] = rest.split('.');
      auto found = shuffles.find(mode);
      if (found == shuffles.end())
        return nullptr;
      together(b, call, found->second, argument(0), {argument(1), argument(2), argument(3)});
      return outAs(b, call.getType());
    }
    static const auto &votes =
        *new std::map<StringRef, WarpOperation>{{"vote.any.sync", WarpOperation::VoteAny},
                                                {"vote.all.sync", WarpOperation::VoteAll},
                                                {"vote.uni.sync", WarpOperation::VoteUniform},
                                                {"vote.ballot.sync", WarpOperation::VoteBallot}};
    if (auto found = votes.find(name); found != votes.end()) {
      together(b, call, found->second, argument(0), {b.CreateZExt(argument(1), b.getInt32Ty())});
      return outAs(b, call.getType());
    }
    static const auto &reductions = *new std::map<StringRef, WarpOperation>{
        {"redux.sync.add", WarpOperation::ReduceAdd},
        {"redux.sync.min", WarpOperation::ReduceMin},
        {"redux.sync.max", WarpOperation::ReduceMax},
        {"redux.sync.umin", WarpOperation::ReduceUnsignedMin},
        {"redux.sync.umax", WarpOperation::ReduceUnsignedMax},
        {"redux.sync.and", WarpOperation::ReduceAnd},
        {"redux.sync.or", WarpOperation::ReduceOr},
        {"redux.sync.xor", WarpOperation::ReduceXor}};
    if (auto found = reductions.find(name); found != reductions.end()) {
      together(b, call, found->second, argument(1), {argument(0)});
      return outAs(b, call.getType());
    }
    static const auto &products = *new std::map<StringRef, WarpOperation>{
        {"mma.m16n8k16.row.col.f32.f32", WarpOperation::MultiplyF16K16},
        {"mma.m16n8k16.row.col.bf16", WarpOperation::MultiplyBf16K16},
        {"mma.m16n8k8.row.col.f32.f32", WarpOperation::MultiplyF16K8},
        {"mma.m16n8k8.row.col.bf16", WarpOperation::MultiplyBf16K8},
        {"mma.m16n8k8.row.col.tf32", WarpOperation::MultiplyTf32K8},
        {"mma.m16n8k4.row.col.tf32", WarpOperation::MultiplyTf32K4}};
    if (auto found = products.find(name); found != products.end()) {
      std::vector<Value *> in(call.arg_begin(), call.arg_end());
      together(b, call, found->second, b.getInt32(~0u), in);
      return outAs(b, call.getType());
    }
    if (StringRef rest = name; rest.consume_front("ldmatrix.sync.aligned.m8n8.x")) {
      bool transposed = rest.contains(".trans.");
      unsigned i = rest[0] == '1' ? 0 : rest[0] == '2' ? 1 : 2;
      if (!rest.contains(".b16"))
        return nullptr;
      auto operation = WarpOperation(
          uint32_t(transposed ? WarpOperation::LoadMatrix1Transposed : WarpOperation::LoadMatrix1) +
          i);
      together(b, call, operation, b.getInt32(~0u),
               {b.CreatePtrToInt(argument(0), b.getInt64Ty())});
      return outAs(b, call.getType());
    }
    return asynchronous(b, name, call);
  }

  Value *asynchronous(IRBuilder<> &b, StringRef name, llvm::CallInst &call) {
    if (!name.consume_front("cp.async."))
      return nullptr;
    if (name == "commit.group" || name == "wait.all" || name == "wait.group") {
      kernel.fibers = true;
      if (name == "wait.group")
        return b.CreateCall(support(module, "emulated_wait_copies"),
                            {values.block, values.thread, call.getArgOperand(0),
                             waitingSite(b, call, "copy-wait")});
      bool waits = name == "wait.all";
      return b.CreateCall(
          support(module, waits ? "emulated_wait_all_copies" : "emulated_commit_copies"),
          {values.block, values.thread, waitingSite(b, call, waits ? "copy-wait" : "copy-commit")});
    }
    if (!name.consume_front("ca.shared.global.") && !name.consume_front("cg.shared.global."))
      return nullptr;
    kernel.fibers = true;
    unsigned bytes = name.starts_with("16") ? 16 : name.starts_with("8") ? 8 : 4;
    Type *i64 = b.getInt64Ty();
    return b.CreateCall(support(module, "emulated_async_copy"),
                        {values.block, values.thread, b.CreatePtrToInt(call.getArgOperand(0), i64),
                         b.CreatePtrToInt(call.getArgOperand(1), i64), b.getInt32(bytes),
                         name.ends_with(".s") ? call.getArgOperand(2) : b.getInt32(bytes),
                         b.getInt32(addSite(kernel, call))});
  }

  Value *arithmetic(IRBuilder<> &b, StringRef name, llvm::CallInst &call) {
    auto argument = [&](unsigned i) { return call.getArgOperand(i); };
    Type *type = call.getType();
    auto is = [&](std::initializer_list<StringRef> prefixes) {
      for (StringRef prefix : prefixes)
        if (name == prefix || name.starts_with((prefix + ".").str()))
          return true;
      return false;
    };
    if (is({"fma.rn"}))
      return b.CreateIntrinsic(llvm::Intrinsic::fma, {type},
                               {argument(0), argument(1), argument(2)});
    if (is({"add.rn"}))
      return b.CreateFAdd(argument(0), argument(1));
    if (is({"mul.rn"}))
      return b.CreateFMul(argument(0), argument(1));
    if (is({"div.rn", "div.approx", "div.full"}))
      return b.CreateFDiv(argument(0), argument(1));
    if (is({"rcp.rn", "rcp.approx"}))
      return b.CreateFDiv(llvm::ConstantFP::get(type, 1.0), argument(0));
    if (is({"rsqrt.approx"}))
      return b.CreateFDiv(llvm::ConstantFP::get(type, 1.0),
                          b.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, argument(0)));
    std::optional<ID> same;
    if (is({"sqrt.rn", "sqrt.approx", "sqrt"}))
      same = llvm::Intrinsic::sqrt;
    else if (is({"ex2.approx"}))
      same = llvm::Intrinsic::exp2;
    else if (is({"lg2.approx"}))
      same = llvm::Intrinsic::log2;
    else if (is({"sin.approx"}))
      same = llvm::Intrinsic::sin;
    else if (is({"cos.approx"}))
      same = llvm::Intrinsic::cos;
    else if (is({"fabs"}))
      same = llvm::Intrinsic::fabs;
    else if (is({"floor"}))
      same = llvm::Intrinsic::floor;
    else if (is({"ceil"}))
      same = llvm::Intrinsic::ceil;
    else if (is({"trunc"}))
      same = llvm::Intrinsic::trunc;
    else if (is({"round"}))
      same = llvm::Intrinsic::roundeven;
    if (same)
      return b.CreateUnaryIntrinsic(*same, argument(0));
    if (is({"fmin", "fmax"}) && !name.contains("xorsign")) {
      bool least = name.starts_with("fmin"), nan = name.contains("nan");
      return b.CreateBinaryIntrinsic(least
                                         ? nan ? llvm::Intrinsic::minimum : llvm::Intrinsic::minnum
                                     : nan ? llvm::Intrinsic::maximum
                                           : llvm::Intrinsic::maxnum,
                                     argument(0), argument(1));
    }
    if (is({"saturate"})) {
      Value *least = b.CreateBinaryIntrinsic(llvm::Intrinsic::maxnum, argument(0),
                                             llvm::ConstantFP::get(type, 0.0));
      return b.CreateBinaryIntrinsic(llvm::Intrinsic::minnum, least,
                                     llvm::ConstantFP::get(type, 1.0));
    }
    if (name == "ff2bf16x2.rn" || name == "ff2f16x2.rn") {
      Type *element = type->getScalarType();
      Value *pair = b.CreateInsertElement(llvm::PoisonValue::get(type),
                                          b.CreateFPTrunc(argument(1), element), uint64_t(0));
      return b.CreateInsertElement(pair, b.CreateFPTrunc(argument(0), element), uint64_t(1));
    }
    if (name == "f2bf16.rn")
      return b.CreateFPTrunc(argument(0), type);
    if (is({"mulhi"})) {
      bool isUnsigned = name.ends_with(".ui") || name.ends_with(".ull") || name.ends_with(".us");
      unsigned bits = type->getIntegerBitWidth();
      Type *wide = b.getIntNTy(2 * bits);
      Value *product = b.CreateMul(b.CreateIntCast(argument(0), wide, !isUnsigned),
                                   b.CreateIntCast(argument(1), wide, !isUnsigned));
      return b.CreateTrunc(b.CreateLShr(product, bits), type);
    }
    return nullptr;
  }

  llvm::Function &function;
  const ThreadValues &values;
  CompiledKernel &kernel;
  Problems &problems;
  llvm::Module &module;
  llvm::LLVMContext &context;
  llvm::AllocaInst *inMemory = nullptr, *outMemory = nullptr;
  std::set<std::string> missing;
};

} // namespace

void lowerIntrinsics(llvm::Function &function, const ThreadValues &values, CompiledKernel &kernel,
                     Problems &problems) {
  Lowering(function, values, kernel, problems).run();
}

llvm::FunctionCallee support(llvm::Module &module, StringRef name) {
  llvm::LLVMContext &c = module.getContext();
  Type *ptr = llvm::PointerType::get(c, 0), *i32 = Type::getInt32Ty(c), *i64 = Type::getInt64Ty(c),
       *none = Type::getVoidTy(c);
  llvm::SmallVector<Type *> types;
  bool access = false;
  if (name == "emulated_barrier" || name == "emulated_trap" || name == "emulated_commit_copies" ||
      name == "emulated_wait_all_copies")
    types = {ptr, i32, i32};
  else if (name == "emulated_warp")
    types = {ptr, i32, i32, i32, ptr, ptr, i32};
  else if (name == "emulated_async_copy")
    types = {ptr, i32, i64, i64, i32, i32, i32};
  else if (name == "emulated_wait_copies")
    types = {ptr, i32, i32, i32};
  else if (name == "emulated_range")
    types = {ptr, i64, i64, i32, i32, i32}, access = true;
  else
    types = {ptr, i64, i32, i32}, access = true;
  llvm::FunctionCallee callee =
      module.getOrInsertFunction(name, llvm::FunctionType::get(none, types, false));
  auto *function = llvm::cast<llvm::Function>(callee.getCallee());
  function->addFnAttr(llvm::Attribute::NoUnwind);
  // Checks look at nothing that the kernel sees: real accesses may move around them.
  if (access)
    function->setMemoryEffects(llvm::MemoryEffects::inaccessibleMemOnly());
  return callee;
}

} // namespace shardc::emulator
