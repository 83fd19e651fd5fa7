// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// exec-verify-kernels: what a kernel promises about memory holds in whatever form its body has.

#include "passes/verify/Passes.h"

#include "dialects/exec/Exec.h"
#include "dialects/exec/Overwrites.h"
#include "passes/verify/DeviceWrites.h"
#include "passes/verify/InPlaceReads.h"
#include "passes/verify/KernelAccesses.h"
#include "passes/verify/Variation.h"
#include "passes/verify/Violations.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

namespace shardc {
#define GEN_PASS_DEF_VERIFYKERNELS
#include "passes/verify/Passes.h.inc"
} // namespace shardc

using namespace mlir;
using namespace shardc;

namespace {

bool isMemory(Type type) { return isa<MemRefType, LLVM::LLVMPointerType>(type); }

class KernelVerifier {
public:
  KernelVerifier(FunctionOpInterface kernel, SymbolTableCollection &symbols, Violations &violations)
      : kernel(kernel), accesses(kernel, symbols), violations(violations) {}

  void verify();
  int64_t getNumUnproven() const { return device.getNumUnproven(); }

private:
  void add(Location place, const Twine &what) {
    violations.add(place, "kernel '" + kernel.getName() + "' " + what);
  }
  llvm::SmallDenseSet<int64_t> readArguments(StringRef attribute);
  void checkDestination(unsigned number, ArrayRef<MemoryAccess> list, bool isInPlace);
  void checkIterations(exec::ParallelOp loop);
  bool isItsOwn(const MemoryAccess &access, Value memory, const Variation &variation);

  FunctionOpInterface kernel;
  KernelAccesses accesses;
  DeviceWrites device;
  Violations &violations;
};

/// `isInPlace`: it is read before, too.
void KernelVerifier::checkDestination(unsigned number, ArrayRef<MemoryAccess> list,
                                      bool isInPlace) {
  std::string argument = ("argument " + Twine(number)).str();
  const MemoryAccess *first = nullptr;
  // On a device threads and launches share a destination.
  SmallVector<MemoryAccess> parts;
  for (const MemoryAccess &access : list) {
    if (!first && access.reads && !isInPlace)
      return add(access.op->getLoc(),
                 "reads " + argument + ", a destination, before it is written");
    if (!access.writes || (access.updates && !isInPlace))
      continue;
    if (access.launch)
      parts.push_back(access);
    if (first && kernel->hasAttr(exec::kOverwritesAttr))
      continue;
    if (first && !(access.launch && first->launch))
      return add(access.op->getLoc(),
                 "writes " + argument + " twice: every destination is written exactly once");
    first = &access;
  }
  if (!first)
    add(kernel.getLoc(),
        "never writes " + argument + ": every destination is written exactly once");
  device.check(parts, argument, [&](Operation *op, const Twine &what) { add(op->getLoc(), what); });
}

/// Whether each iteration writes another part of `memory`, as far as the operands say.
bool KernelVerifier::isItsOwn(const MemoryAccess &access, Value memory,
                              const Variation &variation) {
  return llvm::any_of(access.op->getOperands(), [&](Value operand) {
    bool isPlace = operand.getType().isIndex() || accesses.memoryBehind(operand) == memory;
    return isPlace && variation.of(operand);
  });
}

/// Iterations run on several threads: what they share they may only read.
void KernelVerifier::checkIterations(exec::ParallelOp loop) {
  if (std::optional<int64_t> count = getConstantIntValue(loop.getCount()); count && *count <= 1)
    return;
  Variation variation(loop.getBody(), {{loop.getInductionVariable(), 1}});
  llvm::SmallPtrSet<Operation *, 32> inside;
  loop.getBody().walk([&](Operation *op) { inside.insert(op); });
  SmallVector<Value> shared(kernel.getArguments());
  llvm::copy_if(accesses.buffers(), std::back_inserter(shared),
                [&](Value buffer) { return !inside.contains(buffer.getDefiningOp()); });
  for (Value memory : shared)
    for (const MemoryAccess &access : accesses.of(memory))
      if (access.writes && inside.contains(access.op) && !isItsOwn(access, memory, variation))
        add(access.op->getLoc(), "writes one place in all iterations of a parallel loop");
}

/// The arguments that an attribute names.
llvm::SmallDenseSet<int64_t> KernelVerifier::readArguments(StringRef attribute) {
  llvm::SmallDenseSet<int64_t> numbers;
  auto list = kernel->getAttrOfType<DenseI64ArrayAttr>(attribute);
  for (int64_t number : list ? list.asArrayRef() : ArrayRef<int64_t>()) {
    if (number < 0 || number >= kernel.getNumArguments() ||
        !isMemory(kernel.getArgumentTypes()[number])) {
      add(kernel.getLoc(),
          "has no memory as argument " + Twine(number) + ", which '" + attribute + "' names");
      continue;
    }
    numbers.insert(number);
  }
  return numbers;
}

void KernelVerifier::verify() {
  if (!kernel->hasAttrOfType<DenseI64ArrayAttr>(exec::kWritesAttr))
    return add(kernel.getLoc(),
               "does not say with '" + exec::kWritesAttr + "' which arguments it writes");
  llvm::SmallDenseSet<int64_t> destinations = readArguments(exec::kWritesAttr);
  llvm::SmallDenseSet<int64_t> inPlace = readArguments(exec::kInPlaceAttr);
  for (int64_t number : inPlace)
    if (!destinations.contains(number))
      add(kernel.getLoc(), "names argument " + Twine(number) + " with '" + exec::kInPlaceAttr +
                               "', which it does not write");
  for (Operation *op : accesses.unknown())
    add(op->getLoc(), "hands memory to '" + op->getName().getStringRef() +
                          "', which does not say what it does with it");
  for (BlockArgument argument : kernel.getArguments()) {
    unsigned number = argument.getArgNumber();
    // Without elements there is nothing to write, and nothing is wrong with doing it.
    auto memory = dyn_cast<MemRefType>(argument.getType());
    if (memory && llvm::is_contained(memory.getShape(), 0))
      continue;
    ArrayRef<MemoryAccess> list = accesses.of(argument);
    if (destinations.contains(number)) {
      bool isInPlace = inPlace.contains(number);
      checkDestination(number, list, isInPlace);
      if (isInPlace)
        checkInPlaceReads(argument, [&](Operation *op, const Twine &what) {
          add(op->getLoc(), what + " argument " + Twine(number) + ", which it writes in place");
        });
      continue;
    }
    for (const MemoryAccess &access : list)
      if (access.writes)
        add(access.op->getLoc(), "writes argument " + Twine(number) + ", which is no destination");
  }
  kernel->walk([&](exec::ParallelOp loop) { checkIterations(loop); });
  for (Value buffer : accesses.buffers())
    if (ArrayRef<MemoryAccess> list = accesses.of(buffer); !list.empty() && list.front().reads)
      add(list.front().op->getLoc(), "reads a buffer of its own before it is written");
}

struct VerifyKernels : shardc::impl::VerifyKernelsBase<VerifyKernels> {
  void runOnOperation() override {
    SymbolTableCollection symbols;
    Violations violations;
    for (auto function : getOperation().getOps<FunctionOpInterface>()) {
      // Before it has memory, a kernel returns its results.
      if (!function->hasAttr(exec::kKernelAttr) || function.isExternal() ||
          (!function->hasAttr(exec::kWritesAttr) &&
           llvm::none_of(function.getArgumentTypes(), isMemory)))
        continue;
      KernelVerifier verifier(function, symbols, violations);
      verifier.verify();
      ++kernels;
      unproven += verifier.getNumUnproven();
    }
    if (failed(violations.report()))
      signalPassFailure();
    markAllAnalysesPreserved();
  }
};

} // namespace
