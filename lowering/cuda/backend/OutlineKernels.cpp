// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dialects/exec/Exec.h"
#include "lowering/cuda/backend/KernelFacts.h"
#include "lowering/cuda/backend/Passes.h"
#include "lowering/cuda/core/Chips.h"
#include "lowering/host/KernelArguments.h"
#include "lowering/target/Target.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/Utils/GPUUtils.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/DataLayoutInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "mlir/Transforms/RegionUtils.h"

namespace shardc::cuda {
#define GEN_PASS_DEF_CUDAOUTLINEKERNELS
#include "lowering/cuda/backend/Passes.h.inc"
} // namespace shardc::cuda

using namespace mlir;
using namespace shardc;

namespace {

constexpr int64_t kMostBlocks[3] = {(int64_t(1) << 31) - 1, 65535, 65535};

/// The argument or allocation that a value is a view of.
Value rootOf(Value memory) {
  while (auto view = memory.getDefiningOp<ViewLikeOpInterface>())
    memory = view.getViewSource();
  return memory;
}

int64_t alignedBytes(MemRefType type, const DataLayout &layout) {
  return llvm::alignTo(type.getNumElements() *
                           static_cast<int64_t>(layout.getTypeSize(type.getElementType())),
                       cuda::kSharedAlignment);
}

/// Makes a function of the device from one launch.
class LaunchOutliner {
public:
  LaunchOutliner(func::FuncOp kernel, gpu::LaunchOp launch) : kernel(kernel), launch(launch) {}

  /// Says everything that is wrong with the launch at once.
  LogicalResult check();
  /// The function; the launch becomes one of it.
  gpu::GPUFuncOp run(SymbolTable &symbols);
  bool isShareDynamic() const { return sharedBytes > cuda::kStaticSharedBytes; }

private:
  InFlightDiagnostic refuse() {
    problems = true;
    return launch.emitError("kernel '") << kernel.getName() << "' ";
  }
  void passValues();
  void limitGrid();
  void placeShared(gpu::GPUFuncOp function);
  void markPointers(gpu::GPUFuncOp function, ValueRange operands);

  func::FuncOp kernel;
  gpu::LaunchOp launch;
  int64_t sharedBytes = 0;
  bool problems = false;
  /// Of pointers that the launch passes: the memory behind each.
  DenseMap<Value, Value> roots;
};

LogicalResult LaunchOutliner::check() {
  if (launch.getAsyncToken() || !launch.getAsyncDependencies().empty())
    refuse() << "launches asynchronously: launches of a kernel run in order";
  if (launch.hasClusterSize())
    refuse() << "has clusters of blocks, which not all chips have";
  if (launch.getDynamicSharedMemorySize())
    refuse() << "asks for dynamic shared memory: it says what it shares with attributions";
  gpu::KernelDim3 block = launch.getBlockSizeOperandValues();
  int64_t threads = 1;
  for (Value size : {block.x, block.y, block.z}) {
    std::optional<int64_t> known = getConstantIntValue(size);
    if (!known || *known < 1) {
      refuse() << "has blocks of unknown size: block sizes are constants of at least 1";
      threads = 1;
      break;
    }
    threads *= *known;
  }
  if (threads > cuda::kMostThreads)
    refuse() << "has " << threads << " threads in a block, of at most " << cuda::kMostThreads;
  DataLayout layout = DataLayout::closest(launch);
  for (BlockArgument memory : launch.getWorkgroupAttributions()) {
    auto type = cast<MemRefType>(memory.getType());
    if (!type.hasStaticShape() || !type.getLayout().isIdentity())
      refuse() << "shares memory of type " << type << ": sizes of shared memory are constants";
    else
      sharedBytes += alignedBytes(type, layout);
  }
  if (sharedBytes > cuda::kMostSharedBytes)
    refuse() << "needs " << sharedBytes << " bytes of shared memory in a block, of at most "
             << cuda::kMostSharedBytes;
  gpu::KernelDim3 grid = launch.getGridSizeOperandValues();
  const Value sizes[] = {grid.x, grid.y, grid.z};
  for (auto [size, most] : llvm::zip_equal(sizes, kMostBlocks))
    if (std::optional<int64_t> known = getConstantIntValue(size);
        known && (*known < 0 || *known > most))
      refuse() << "has a grid of " << *known << " blocks in a dim, of at most " << most;
  return failure(problems);
}

/// The first three operands are sizes of the grid. More blocks than it may have are a failure of
/// the run; what is launched then is safe.
void LaunchOutliner::limitGrid() {
  OpBuilder builder(launch);
  Location loc = launch.getLoc();
  for (auto [operand, most] : llvm::zip(launch->getOpOperands(), kMostBlocks)) {
    Value size = operand.get();
    if (getConstantIntValue(size))
      continue;
    Value limit = arith::ConstantIndexOp::create(builder, loc, most);
    Value tooMany = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ugt, size, limit);
    exec::FailIfOp::create(builder, loc, tooMany, "more elements than a launch has blocks for");
    operand.set(arith::MinUIOp::create(builder, loc, size, limit));
  }
}

/// Values from outside that the body uses become what a function takes: memory a pointer and
/// numbers, a bit a byte. Constants are made again inside.
void LaunchOutliner::passValues() {
  Region &body = launch.getBody();
  Location loc = launch.getLoc();
  llvm::SetVector<Value> captured;
  getUsedValuesDefinedAbove(body, captured);
  OpBuilder outside(launch), inside = OpBuilder::atBlockBegin(&body.front());
  for (Value value : captured) {
    Value again;
    if (matchPattern(value, m_Constant())) {
      again = inside.clone(*value.getDefiningOp())->getResult(0);
    } else if (isa<MemRefType>(value.getType())) {
      host::PassedValue how(value.getType());
      SmallVector<Value> parts;
      how.take(outside, loc, value, parts);
      roots[parts.front()] = rootOf(value);
      ValueRange rest = parts;
      again = how.rebuild(inside, loc, rest);
    } else if (value.getType().isInteger(1)) {
      Value byte = arith::ExtUIOp::create(outside, loc, outside.getI8Type(), value);
      again = arith::TruncIOp::create(inside, loc, inside.getI1Type(), byte);
    } else {
      continue;
    }
    value.replaceUsesWithIf(again, [&](OpOperand &use) {
      return body.isAncestor(use.getOwner()->getParentRegion()) &&
             use.getOwner() != again.getDefiningOp();
    });
  }
}

/// Shared memory in excess of what every launch has is dynamic: parts of one array, whose size the
/// launch says.
void LaunchOutliner::placeShared(gpu::GPUFuncOp function) {
  if (!isShareDynamic())
    return;
  Block &entry = function.getBody().front();
  OpBuilder builder = OpBuilder::atBlockBegin(&entry);
  Location loc = function.getLoc();
  auto space = gpu::AddressSpaceAttr::get(function.getContext(),
                                          gpu::GPUDialect::getWorkgroupAddressSpace());
  auto bytes = MemRefType::get({ShapedType::kDynamic}, builder.getI8Type(),
                               MemRefLayoutAttrInterface(), space);
  Value all = gpu::DynamicSharedMemoryOp::create(builder, loc, bytes);
  DataLayout layout = DataLayout::closest(function);
  int64_t offset = 0;
  unsigned first = function.getFirstWorkgroupAttributionIndex();
  SmallVector<BlockArgument> attributions(function.getWorkgroupAttributions());
  for (BlockArgument memory : attributions) {
    auto type = cast<MemRefType>(memory.getType());
    Value at = arith::ConstantIndexOp::create(builder, loc, offset);
    memory.replaceAllUsesWith(memref::ViewOp::create(builder, loc, type, all, at, ValueRange()));
    offset += alignedBytes(type, layout);
  }
  entry.eraseArguments(first, attributions.size());
  function->setAttr(function.getNumWorkgroupAttributionsAttrName(), builder.getI64IntegerAttr(0));
  function->setAttr(exec::kSharedBytesAttr, builder.getI64IntegerAttr(sharedBytes));
}

/// Two pointers into one buffer may alias; others do not. Arguments that the kernel does not write
/// (`exec.writes`, which is verified) are read only, which LLVM cannot tell where code looks at
/// their alignment.
void LaunchOutliner::markPointers(gpu::GPUFuncOp function, ValueRange operands) {
  DenseMap<Value, unsigned> count;
  for (auto [pointer, root] : roots)
    ++count[root];
  MLIRContext *context = function.getContext();
  auto mark = [&](unsigned number, StringRef name) {
    function.setArgAttr(number, StringAttr::get(context, name), UnitAttr::get(context));
  };
  auto writes = kernel->getAttrOfType<DenseI64ArrayAttr>(exec::kWritesAttr);
  for (auto [number, operand] : llvm::enumerate(operands)) {
    auto root = roots.find(operand);
    if (root == roots.end())
      continue;
    if (count[root->second] == 1)
      mark(number, LLVM::LLVMDialect::getNoAliasAttrName());
    auto argument = dyn_cast<BlockArgument>(root->second);
    if (writes && argument && argument.getOwner() == &kernel.getBody().front() &&
        !llvm::is_contained(writes.asArrayRef(), argument.getArgNumber()))
      mark(number, LLVM::LLVMDialect::getReadonlyAttrName());
  }
}

gpu::GPUFuncOp LaunchOutliner::run(SymbolTable &symbols) {
  limitGrid();
  passValues();
  SmallVector<Value> operands;
  gpu::GPUFuncOp function = outlineKernelFunc(launch, kernel.getName(), operands);
  symbols.insert(function);
  // For how many blocks of a multiprocessor registers are to be divided.
  StringRef blocks = NVVM::NVVMDialect::getMinctasmAttrName();
  if (Attribute least = launch->getDiscardableAttr(blocks))
    function->setDiscardableAttr(blocks, least);
  placeShared(function);
  markPointers(function, operands);
  OpBuilder builder(launch);
  Value shared;
  if (isShareDynamic())
    shared = arith::ConstantIntOp::create(builder, launch.getLoc(), sharedBytes, 32);
  gpu::LaunchFuncOp::create(builder, launch.getLoc(), function, launch.getGridSizeOperandValues(),
                            launch.getBlockSizeOperandValues(), shared, operands);
  launch.erase();
  return function;
}

struct OutlineKernels : cuda::impl::CudaOutlineKernelsBase<OutlineKernels> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto target = target::readTarget(module);
    if (failed(target))
      return signalPassFailure();
    cuda::ChipChoice chips =
        cuda::chooseChips(*target ? (*target)->property("chip").str() : std::string());
    if (!chips.problem.empty()) {
      module.emitError("the target's chip: ") << chips.problem;
      return signalPassFailure();
    }
    SmallVector<func::FuncOp> kernels;
    for (auto function : module.getOps<func::FuncOp>())
      if (function->hasAttr(exec::kKernelAttr) && !function.isDeclaration())
        kernels.push_back(function);
    if (kernels.empty())
      return;
    OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
    auto device = gpu::GPUModuleOp::create(builder, module.getLoc(), cuda::kKernelModule);
    module->setAttr(gpu::GPUDialect::getContainerModuleAttrName(), builder.getUnitAttr());
    SymbolTable symbols(device);
    bool valid = true;
    for (func::FuncOp kernel : kernels)
      valid &= succeeded(outline(kernel, symbols));
    if (!valid)
      signalPassFailure();
  }

  LogicalResult outline(func::FuncOp kernel, SymbolTable &symbols) {
    SmallVector<gpu::LaunchOp> list;
    kernel.walk([&](gpu::LaunchOp launch) { list.push_back(launch); });
    bool valid = true;
    for (gpu::LaunchOp launch : list) {
      LaunchOutliner outliner(kernel, launch);
      if (failed(outliner.check())) {
        valid = false;
        continue;
      }
      outliner.run(symbols);
      ++launches;
      numDynamic += outliner.isShareDynamic();
    }
    if (!valid)
      return failure();
    takeScratch(kernel);
    host::flattenKernelSignature(kernel);
    return success();
  }

  /// Temporaries of the whole device are buffers that the runtime keeps.
  void takeScratch(func::FuncOp kernel) {
    SmallVector<memref::AllocOp> allocations;
    kernel.walk([&](memref::AllocOp op) { allocations.push_back(op); });
    if (allocations.empty())
      return;
    Value frame = host::frameIn(kernel);
    unsigned slots = 0;
    for (memref::AllocOp op : allocations) {
      OpBuilder builder(op);
      Value buffer = exec::ScratchOp::create(builder, op.getLoc(), op.getType(), frame, slots++,
                                             op.getDynamicSizes());
      op.replaceAllUsesWith(buffer);
      op.erase();
      ++scratch;
    }
  }
};

} // namespace
