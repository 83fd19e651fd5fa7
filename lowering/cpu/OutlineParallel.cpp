// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dialects/exec/Exec.h"
#include "lowering/cpu/Passes.h"
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

constexpr StringLiteral kNoAlias = "llvm.noalias";

/// How a value is passed to a function: itself, or a memref as pointer and what its type does not
/// say.
struct Passed {
  MemRefType type; // null: passed as it is
  SmallVector<int64_t> strides;
  int64_t offset = 0;

  explicit Passed(Type valueType) {
    type = dyn_cast<MemRefType>(valueType);
    if (type && failed(type.getStridesAndOffset(strides, offset)))
      type = {};
  }

  void types(Type original, SmallVectorImpl<Type> &result) const {
    if (!type) {
      result.push_back(original);
      return;
    }
    Type index = IndexType::get(original.getContext());
    result.push_back(MemRefType::get({}, type.getElementType(), MemRefLayoutAttrInterface(),
                                     type.getMemorySpace()));
    if (ShapedType::isDynamic(offset))
      result.push_back(index);
    result.append(type.getNumDynamicDims(), index);
    result.append(llvm::count_if(strides, ShapedType::isDynamic), index);
  }

  /// Arguments for `value`.
  void take(OpBuilder &builder, Location loc, Value value, SmallVectorImpl<Value> &result) const {
    if (!type) {
      result.push_back(value);
      return;
    }
    auto parts = memref::ExtractStridedMetadataOp::create(builder, loc, value);
    result.push_back(parts.getBaseBuffer());
    if (ShapedType::isDynamic(offset))
      result.push_back(parts.getOffset());
    for (auto [size, part] : llvm::zip_equal(type.getShape(), parts.getSizes()))
      if (ShapedType::isDynamic(size))
        result.push_back(part);
    for (auto [stride, part] : llvm::zip_equal(strides, parts.getStrides()))
      if (ShapedType::isDynamic(stride))
        result.push_back(part);
  }

  /// The value again, from arguments, which are taken off the front.
  Value rebuild(OpBuilder &builder, Location loc, ArrayRef<BlockArgument> &arguments) const {
    auto next = [&]() -> Value {
      Value value = arguments.front();
      arguments = arguments.drop_front();
      return value;
    };
    Value first = next();
    if (!type)
      return first;
    auto part = [&](int64_t known) {
      return ShapedType::isDynamic(known) ? OpFoldResult(next())
                                          : OpFoldResult(builder.getIndexAttr(known));
    };
    OpFoldResult from = part(offset);
    SmallVector<OpFoldResult> sizes = llvm::map_to_vector(type.getShape(), part);
    SmallVector<OpFoldResult> steps = llvm::map_to_vector(strides, part);
    return memref::ReinterpretCastOp::create(builder, loc, type, first, from, sizes, steps);
  }
};

/// Adds block arguments for `value`'s type.
void addArguments(Block &block, const Passed &passed, Type original, Location loc) {
  SmallVector<Type> types;
  passed.types(original, types);
  for (Type type : types)
    block.addArgument(type, loc);
}

void markPointers(func::FuncOp function) {
  for (auto [position, type] : llvm::enumerate(function.getArgumentTypes()))
    if (isa<MemRefType>(type))
      function.setArgAttr(position, kNoAlias, UnitAttr::get(function.getContext()));
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
      hoistAllocations(kernel, nullptr, slots, [&] { return frameIn(kernel); });
      flattenSignature(kernel);
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
    SmallVector<std::pair<Value, Passed>> passed;
    IRMapping mapping;
    OpBuilder inner = OpBuilder::atBlockEnd(entry);
    for (Value value : captured) {
      if (matchPattern(value, m_Constant())) {
        mapping.map(value, inner.clone(*value.getDefiningOp())->getResult(0));
        continue;
      }
      Passed how(value.getType());
      how.take(builder, loc, value, arguments);
      addArguments(*entry, how, value.getType(), loc);
      passed.emplace_back(value, how);
    }
    Value begin = entry->addArgument(builder.getIndexType(), loc);
    Value end = entry->addArgument(builder.getIndexType(), loc);
    ArrayRef<BlockArgument> rest = entry->getArguments();
    for (auto &[value, how] : passed)
      mapping.map(value, how.rebuild(inner, loc, rest));
    body.setType(builder.getFunctionType(entry->getArgumentTypes(), {}));
    markPointers(body);

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
        arguments.push_back(frameIn(kernel));
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

  static Value frameIn(func::FuncOp kernel) {
    OpBuilder builder = OpBuilder::atBlockBegin(&kernel.front());
    return exec::FrameOp::create(builder, kernel.getLoc(),
                                 LLVM::LLVMPointerType::get(kernel.getContext()));
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

  void flattenSignature(func::FuncOp kernel) {
    Block &entry = kernel.getBody().front();
    Location loc = kernel.getLoc();
    OpBuilder builder = OpBuilder::atBlockBegin(&entry);
    unsigned count = entry.getNumArguments();
    SmallVector<Passed> passed;
    Type pointer = LLVM::LLVMPointerType::get(&getContext());
    for (BlockArgument argument : entry.getArguments()) {
      passed.emplace_back(argument.getType());
      passed.back().offset = 0;
    }
    entry.addArgument(pointer, loc); // the frame
    entry.addArgument(pointer, loc); // the location of the launch
    auto writes = kernel->getAttrOfType<DenseI64ArrayAttr>(exec::kWritesAttr);
    SmallVector<int64_t> written;
    for (unsigned i = 0; i < count; ++i) {
      if (writes && llvm::is_contained(writes.asArrayRef(), i))
        written.push_back(entry.getNumArguments() - count);
      addArguments(entry, passed[i], entry.getArgument(i).getType(), loc);
    }
    if (writes)
      kernel->setAttr(exec::kWritesAttr, builder.getDenseI64ArrayAttr(written));
    ArrayRef<BlockArgument> rest = entry.getArguments().drop_front(count + 2);
    for (unsigned i = 0; i < count; ++i)
      entry.getArgument(i).replaceAllUsesWith(passed[i].rebuild(builder, loc, rest));
    entry.eraseArguments(0, count);
    kernel.setAllArgAttrs(ArrayRef<DictionaryAttr>());
    kernel.setType(builder.getFunctionType(entry.getArgumentTypes(), {}));
    kernel->setAttr(exec::kOutlinedAttr, builder.getUnitAttr());
    markPointers(kernel);
  }

  int64_t bufferAlignment = 0; // of the target
};

} // namespace
