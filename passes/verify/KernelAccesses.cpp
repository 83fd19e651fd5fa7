// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/verify/KernelAccesses.h"

#include "dialects/exec/Exec.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

using namespace mlir;
using namespace shardc;

KernelAccesses::KernelAccesses(FunctionOpInterface kernel, SymbolTableCollection &symbols)
    : symbols(symbols) {
  for (BlockArgument argument : kernel.getArguments())
    if (isa<MemRefType, LLVM::LLVMPointerType>(argument.getType()))
      alias(argument, argument);
  visitFunction(kernel, Fields());
}

ArrayRef<MemoryAccess> KernelAccesses::of(Value memory) const {
  auto it = accesses.find(memory);
  return it == accesses.end() ? ArrayRef<MemoryAccess>() : ArrayRef<MemoryAccess>(it->second);
}

/// Whether a value of this type may stand for memory: a size that is read off a descriptor does
/// not.
static bool standsForMemory(Type type) {
  if (auto record = dyn_cast<LLVM::LLVMStructType>(type))
    return llvm::any_of(record.getBody(), standsForMemory);
  return isa<MemRefType, LLVM::LLVMPointerType>(type);
}

void KernelAccesses::alias(Value value, Value memory) {
  if (memory && standsForMemory(value.getType()))
    memoryOf[value] = memory;
}

void KernelAccesses::visitFunction(FunctionOpInterface function, const Fields &fields) {
  function->walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (op != function)
      visit(op, fields);
  });
}

/// The field of the struct at `base` to which `address` points: [base, field].
static std::optional<std::pair<Value, int64_t>> fieldOf(Value address) {
  auto at = address.getDefiningOp<LLVM::GEPOp>();
  if (!at || !at.getDynamicIndices().empty() || at.getRawConstantIndices().size() != 2 ||
      at.getRawConstantIndices()[0] != 0)
    return std::nullopt;
  return std::pair(at.getBase(), int64_t(at.getRawConstantIndices()[1]));
}

/// Ops that make another name for memory, and access none.
bool KernelAccesses::visitMove(Operation *op, const Fields &fields) {
  if (isa<memref::AllocOp, memref::AllocaOp, exec::ScratchOp>(op)) {
    alias(op->getResult(0), op->getResult(0));
    allocated.push_back(op->getResult(0));
    return true;
  }
  if (auto view = dyn_cast<ViewLikeOpInterface>(op)) {
    for (Value result : op->getResults())
      if (isa<MemRefType, LLVM::LLVMPointerType>(result.getType()))
        alias(result, memoryOf.lookup(view.getViewSource()));
    return true;
  }
  if (isa<UnrealizedConversionCastOp, LLVM::InsertValueOp, LLVM::ExtractValueOp, LLVM::GEPOp,
          LLVM::BitcastOp, LLVM::AddrSpaceCastOp>(op)) {
    for (Value operand : op->getOperands())
      if (Value memory = memoryOf.lookup(operand))
        alias(op->getResult(0), memory);
    return true;
  }
  if (auto store = dyn_cast<LLVM::StoreOp>(op))
    if (Value memory = memoryOf.lookup(store.getValue())) {
      auto field = fieldOf(store.getAddr());
      if (field && field->first.getDefiningOp<LLVM::AllocaOp>())
        packed[field->first][field->second] = memory;
      else
        opaque.push_back(op);
      return true;
    }
  if (auto load = dyn_cast<LLVM::LoadOp>(op))
    if (auto field = fieldOf(load.getAddr()); field && !memoryOf.contains(load.getAddr())) {
      auto argument = dyn_cast<BlockArgument>(field->first);
      if (argument && argument.getArgNumber() == 0)
        if (auto it = fields.find(field->second); it != fields.end())
          alias(load.getResult(), it->second);
      return true;
    }
  if (auto branch = dyn_cast<BranchOpInterface>(op)) {
    for (unsigned i = 0; i < op->getNumSuccessors(); ++i) {
      SuccessorOperands operands = branch.getSuccessorOperands(i);
      for (auto [argument, value] : llvm::zip(
               op->getSuccessor(i)->getArguments().drop_front(operands.getProducedOperandCount()),
               operands.getForwardedOperands()))
        alias(argument, memoryOf.lookup(value));
    }
    return true;
  }
  return false;
}

void KernelAccesses::enter(Operation *callee, ValueRange arguments, const Fields &fields) {
  auto function = dyn_cast_or_null<FunctionOpInterface>(callee);
  if (!function || function.isExternal())
    return;
  for (auto [parameter, argument] : llvm::zip(function.getArguments(), arguments))
    alias(parameter, memoryOf.lookup(argument));
  visitFunction(function, fields);
}

/// Bodies of loops, functions of a device, and tasks that get their arguments through a struct.
void KernelAccesses::visitCall(Operation *op) {
  if (auto call = dyn_cast<exec::ParallelCallOp>(op))
    return enter(symbols.lookupNearestSymbolFrom(op, call.getBodyAttr()), call.getArgs(), Fields());
  if (auto call = dyn_cast<gpu::LaunchFuncOp>(op)) {
    launch = call;
    enter(symbols.lookupNearestSymbolFrom(op, call.getKernel()), call.getKernelOperands(),
          Fields());
    launch = nullptr;
    return;
  }
  auto call = cast<LLVM::CallOp>(op);
  if (FlatSymbolRefAttr callee = call.getCalleeAttr()) {
    Operation *function = symbols.lookupNearestSymbolFrom(op, callee);
    bool isExternal = !function || cast<FunctionOpInterface>(function).isExternal();
    if (isExternal &&
        llvm::any_of(call.getArgOperands(), [&](Value value) { return memoryOf.contains(value); }))
      opaque.push_back(op);
    return enter(function, call.getArgOperands(), Fields());
  }
  Operation *task = nullptr;
  Fields fields;
  for (Value operand : call.getArgOperands()) {
    if (auto address = operand.getDefiningOp<LLVM::AddressOfOp>())
      if (Operation *target = symbols.lookupNearestSymbolFrom(op, address.getGlobalNameAttr());
          isa_and_nonnull<LLVM::LLVMFuncOp>(target))
        task = target;
    if (auto it = packed.find(operand); it != packed.end())
      fields = it->second;
  }
  if (task)
    enter(task, ValueRange(), fields);
}

void KernelAccesses::visit(Operation *op, const Fields &fields) {
  if (unsigned set = readForOperands(op))
    for (Value result : op->getResults())
      readFrom[result] = set;
  if (visitMove(op, fields))
    return;
  if (isa<exec::ParallelCallOp, gpu::LaunchFuncOp, LLVM::CallOp>(op))
    return visitCall(op);
  if (auto read = dyn_cast<bufferization::ToTensorOp>(op))
    return access(op, memoryOf.lookup(read.getBuffer()), true, false);
  if (auto write = dyn_cast<bufferization::MaterializeInDestinationOp>(op))
    return access(op, memoryOf.lookup(write.getDest()), false, true);
  if (auto check = dyn_cast<exec::CheckRangeOp>(op))
    return access(op, memoryOf.lookup(check.getIndices()), true, false);
  // What has a body says it with the ops in it; sizes are no contents.
  auto effects = dyn_cast<MemoryEffectOpInterface>(op);
  if (!effects) {
    bool isOpaque = !op->hasTrait<OpTrait::HasRecursiveMemoryEffects>() &&
                    !op->hasTrait<OpTrait::IsTerminator>();
    if (isOpaque &&
        llvm::any_of(op->getOperands(), [&](Value value) { return memoryOf.contains(value); }))
      opaque.push_back(op);
    return;
  }
  llvm::SmallSetVector<Value, 4> touched;
  for (Value operand : op->getOperands())
    if (Value memory = memoryOf.lookup(operand))
      touched.insert(memory);
  SmallVector<MemoryEffects::EffectInstance> instances;
  effects.getEffects(instances);
  for (Value memory : touched) {
    bool reads = false, writes = false;
    for (const MemoryEffects::EffectInstance &instance : instances) {
      if (!instance.getValue() || memoryOf.lookup(instance.getValue()) != memory)
        continue;
      reads |= isa<MemoryEffects::Read>(instance.getEffect());
      writes |= isa<MemoryEffects::Write>(instance.getEffect());
    }
    access(op, memory, reads, writes);
  }
}

void KernelAccesses::access(Operation *op, Value memory, bool reads, bool writes) {
  if (!memory || (!reads && !writes))
    return;
  unsigned number = memoryNumbers.try_emplace(memory, memoryNumbers.size()).first->second;
  bool updates = writes && (reads || llvm::binary_search(sets[readForOperands(op)], number));
  Operation *place = launch ? launch : op->getParentOfType<gpu::LaunchOp>().getOperation();
  accesses[memory].push_back({op, reads, writes, updates, place});
  if (!reads)
    return;
  unsigned one = setNumber({number});
  for (Value result : op->getResults())
    readFrom[result] = unite(readFrom.lookup(result), one);
}

unsigned KernelAccesses::readForOperands(Operation *op) {
  unsigned set = 0;
  for (Value operand : op->getOperands())
    set = unite(set, readFrom.lookup(operand));
  return set;
}

unsigned KernelAccesses::setNumber(std::vector<unsigned> members) {
  auto [it, inserted] = setNumbers.try_emplace(members, sets.size());
  if (inserted)
    sets.push_back(std::move(members));
  return it->second;
}

unsigned KernelAccesses::unite(unsigned a, unsigned b) {
  if (a == b || b == 0)
    return a;
  if (a == 0)
    return b;
  auto it = unions.find({std::min(a, b), std::max(a, b)});
  if (it != unions.end())
    return it->second;
  std::vector<unsigned> both;
  std::set_union(sets[a].begin(), sets[a].end(), sets[b].begin(), sets[b].end(),
                 std::back_inserter(both));
  return unions[{std::min(a, b), std::max(a, b)}] = setNumber(std::move(both));
}
