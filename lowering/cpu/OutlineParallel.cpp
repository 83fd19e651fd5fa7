// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dialects/exec/Exec.h"
#include "lowering/cpu/Passes.h"
#include "lowering/host/KernelArguments.h"
#include "lowering/target/Target.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/DataLayoutInterfaces.h"
#include "mlir/Transforms/RegionUtils.h"

namespace shardc::cpu {
#define GEN_PASS_DEF_CPUOUTLINEPARALLEL
#include "lowering/cpu/Passes.h.inc"
} // namespace shardc::cpu

using namespace mlir;
using namespace shardc;

namespace {

/// Adds block arguments for `value`'s type.
void addArguments(Block &block, const host::PassedValue &passed, Type original, Location loc) {
  SmallVector<Type> types;
  passed.types(original, types);
  for (Type type : types)
    block.addArgument(type, loc);
}

struct OutlineParallel : cpu::impl::CpuOutlineParallelBase<OutlineParallel> {
  using CpuOutlineParallelBase::CpuOutlineParallelBase;

  void runOnOperation() override {
    FailureOr<target::Limits> limits = target::readLimits(getOperation());
    if (failed(limits))
      return signalPassFailure();
    bufferAlignment = limits->bufferAlignment;
    SymbolTable symbols(getOperation());
    SmallVector<func::FuncOp> kernels;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (function->hasAttr(exec::kKernelAttr) && !function.isDeclaration())
        kernels.push_back(function);
    for (func::FuncOp kernel : kernels) {
      SmallVector<exec::ParallelOp> loops;
      kernel.walk([&](exec::ParallelOp loop) { loops.push_back(loop); });
      unsigned slots = 0;
      for (exec::ParallelOp loop : loops) {
        if (loop->getParentOfType<exec::ParallelOp>()) {
          loop.emitOpError("is inside another parallel loop");
          return signalPassFailure();
        }
        outline(loop, symbols, slots);
      }
      hoistAllocations(kernel, nullptr, slots, [&] { return host::frameIn(kernel); });
      host::flattenKernelSignature(kernel);
    }
  }

  void outline(exec::ParallelOp loop, SymbolTable &symbols, unsigned &slots) {
    auto kernel = loop->getParentOfType<func::FuncOp>();
    Location loc = loop.getLoc();
    OpBuilder builder(loop);
    llvm::SetVector<Value> captured;
    getUsedValuesDefinedAbove(loop.getBody(), captured);

    auto body = func::FuncOp::create(loc, (kernel.getName() + "_body").str(),
                                     builder.getFunctionType({}, {}));
    body.setPrivate();
    Block *entry = body.addEntryBlock();
    SmallVector<Value> arguments;
    SmallVector<std::pair<Value, host::PassedValue>> passed;
    IRMapping mapping;
    OpBuilder inner = OpBuilder::atBlockEnd(entry);
    for (Value value : captured) {
      if (matchPattern(value, m_Constant())) {
        mapping.map(value, inner.clone(*value.getDefiningOp())->getResult(0));
        continue;
      }
      host::PassedValue how(value.getType());
      how.take(builder, loc, value, arguments);
      addArguments(*entry, how, value.getType(), loc);
      passed.emplace_back(value, how);
    }
    Value begin = entry->addArgument(builder.getIndexType(), loc);
    Value end = entry->addArgument(builder.getIndexType(), loc);
    ValueRange rest = entry->getArguments();
    for (auto &[value, how] : passed)
      mapping.map(value, how.rebuild(inner, loc, rest));
    body.setType(builder.getFunctionType(entry->getArgumentTypes(), {}));
    host::markPointers(body);

    Value one = arith::ConstantIndexOp::create(inner, loc, 1);
    auto range = scf::ForOp::create(inner, loc, begin, end, one);
    mapping.map(loop.getInductionVariable(), range.getInductionVar());
    OpBuilder inLoop = OpBuilder::atBlockBegin(range.getBody());
    for (Operation &op : loop.getBody().front())
      inLoop.clone(op, mapping);
    func::ReturnOp::create(inner, loc);
    symbols.insert(body, std::next(kernel->getIterator()));
    Value frame;
    hoistAllocations(body, range, slots, [&] {
      if (!frame) {
        arguments.push_back(host::frameIn(kernel));
        unsigned position = entry->getNumArguments() - 2;
        frame = entry->insertArgument(position, arguments.back().getType(), loc);
        body.setType(builder.getFunctionType(entry->getArgumentTypes(), {}));
      }
      return frame;
    });

    exec::ParallelCallOp::create(builder, loc, body.getName(), arguments, loop.getCount(),
                                 loop.getGrain());
    loop.erase();
    ++bodies;
  }

  /// Buffers are allocated once for the function: small ones on its stack, the others as scratch
  /// memory, of the frame that `frame` makes. `before`: the loop around them, if any.
  void hoistAllocations(func::FuncOp function, Operation *before, unsigned &slots,
                        llvm::function_ref<Value()> frame) {
    SmallVector<memref::AllocOp> allocations;
    function.walk([&](memref::AllocOp op) { allocations.push_back(op); });
    int64_t stack = 0;
    DataLayout layout = DataLayout::closest(function);
    for (memref::AllocOp op : allocations) {
      MemRefType type = op.getType();
      if (before)
        op->moveBefore(before);
      else if (op->getBlock() != &function.front() && op.getDynamicSizes().empty())
        op->moveBefore(&function.front().front());
      OpBuilder builder(op);
      int64_t bytes = type.hasStaticShape()
                          ? type.getNumElements() *
                                static_cast<int64_t>(layout.getTypeSize(type.getElementType()))
                          : maxStackBytes + 1;
      Value buffer;
      if (stack + bytes <= maxStackBytes) {
        stack += bytes;
        buffer = memref::AllocaOp::create(builder, op.getLoc(), type, ValueRange(),
                                          builder.getI64IntegerAttr(bufferAlignment));
      } else {
        buffer = exec::ScratchOp::create(builder, op.getLoc(), type, frame(), slots++,
                                         op.getDynamicSizes());
        ++scratch;
      }
      op.replaceAllUsesWith(buffer);
      op.erase();
    }
  }

  int64_t bufferAlignment = 0; // of the target
};

} // namespace
