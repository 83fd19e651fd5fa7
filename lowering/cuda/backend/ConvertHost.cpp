// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dialects/exec/Exec.h"
#include "lowering/cuda/backend/KernelFacts.h"
#include "lowering/cuda/backend/Passes.h"
#include "lowering/host/KernelPatterns.h"
#include "lowering/host/RuntimeAbi.h"
#include "runtime/abi/shardrt_program.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVM.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/Pattern.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Conversion/UBToLLVM/UBToLLVM.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

#include <cstddef>

namespace shardc::cuda {
#define GEN_PASS_DEF_CUDACONVERTHOST
#include "lowering/cuda/backend/Passes.h.inc"
} // namespace shardc::cuda

using namespace mlir;
using namespace shardc;

namespace {

using KernelNumbers = llvm::StringMap<uint32_t>;

/// A shardrt_launch on the stack, and the service.
struct LaunchLowering : ConvertOpToLLVMPattern<gpu::LaunchFuncOp> {
  LaunchLowering(const LLVMTypeConverter &converter, const KernelNumbers &numbers)
      : ConvertOpToLLVMPattern(converter), numbers(numbers) {}

  LogicalResult matchAndRewrite(gpu::LaunchFuncOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &b) const override {
    auto number = numbers.find(op.getKernelName());
    if (number == numbers.end())
      return b.notifyMatchFailure(op, "launches no kernel of the program");
    Location loc = op.getLoc();
    Type pointer = LLVM::LLVMPointerType::get(getContext());
    Value list = LLVM::ZeroOp::create(b, loc, pointer);
    if (size_t count = op.getNumKernelOperands()) {
      list = slot(b, op, LLVM::LLVMArrayType::get(pointer, count));
      for (auto [i, original, value] :
           llvm::enumerate(op.getKernelOperands(), adaptor.getKernelOperands())) {
        Value parameter = value;
        if (isa<MemRefType>(original.getType()))
          parameter = MemRefDescriptor(value).alignedPtr(b, loc);
        Value memory = slot(b, op, parameter.getType());
        LLVM::StoreOp::create(b, loc, parameter, memory);
        host::abi::storeField(b, loc, memory, list, i * sizeof(void *));
      }
    }
    Value launch =
        slot(b, op, LLVM::LLVMArrayType::get(b.getI64Type(), sizeof(shardrt_launch) / 8));
    auto store = [&](Value value, size_t field) {
      host::abi::storeField(b, loc, value, launch, field);
    };
    store(host::kernelLocation(op), offsetof(shardrt_launch, location));
    store(list, offsetof(shardrt_launch, params));
    store(LLVM::ConstantOp::create(b, loc, b.getI32IntegerAttr(number->second)),
          offsetof(shardrt_launch, kernel));
    const Value sizes[] = {adaptor.getGridSizeX(), adaptor.getGridSizeY(), adaptor.getGridSizeZ()};
    for (auto [dim, size] : llvm::enumerate(sizes))
      store(LLVM::TruncOp::create(b, loc, b.getI32Type(), size),
            offsetof(shardrt_launch, grid) + dim * sizeof(uint32_t));
    // A failure is the run's: the runtime keeps it.
    host::abi::callLaunch(b, loc, host::kernelFrame(op), launch);
    b.eraseOp(op);
    return success();
  }

  static Value slot(ConversionPatternRewriter &b, gpu::LaunchFuncOp op, Type type) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&op->getParentOfType<LLVM::LLVMFuncOp>().getBody().front());
    Value one = LLVM::ConstantOp::create(b, op.getLoc(), b.getI64IntegerAttr(1));
    return LLVM::AllocaOp::create(b, op.getLoc(), LLVM::LLVMPointerType::get(b.getContext()), type,
                                  one, /*alignment=*/8);
  }

  const KernelNumbers &numbers;
};
static_assert(sizeof(shardrt_launch) % 8 == 0);

struct ConvertHost : cuda::impl::CudaConvertHostBase<ConvertHost> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    MLIRContext *context = &getContext();
    KernelNumbers numbers;
    for (auto device : module.getOps<gpu::GPUModuleOp>())
      for (const cuda::KernelFacts &kernel : cuda::readKernelFacts(device)) {
        auto next = static_cast<uint32_t>(numbers.size());
        numbers[kernel.name] = next;
      }
    LowerToLLVMOptions options(context);
    options.useBarePtrCallConv = true;
    LLVMTypeConverter converter(context, options);
    RewritePatternSet patterns(context);
    arith::populateArithToLLVMConversionPatterns(converter, patterns);
    arith::populateCeilFloorDivExpandOpsPatterns(patterns);
    cf::populateControlFlowToLLVMConversionPatterns(converter, patterns);
    populateFuncToLLVMConversionPatterns(converter, patterns);
    populateFinalizeMemRefToLLVMConversionPatterns(converter, patterns);
    ub::populateUBToLLVMConversionPatterns(converter, patterns);
    host::GlobalPool pool(module);
    host::populateKernelPatterns(converter, pool, patterns);
    patterns.add<LaunchLowering>(converter, numbers);
    LLVMConversionTarget target(*context);
    SmallVector<Operation *> roots;
    for (auto function : module.getOps<func::FuncOp>())
      if (function->hasAttr(exec::kKernelAttr))
        roots.push_back(function);
    functions += roots.size();
    if (failed(applyFullConversion(roots, target, std::move(patterns))))
      return signalPassFailure();
    // An entry launches one kernel in many places.
    for (auto function : module.getOps<LLVM::LLVMFuncOp>())
      if (!function.isExternal() && function->hasAttr(exec::kKernelAttr))
        function.setNoInline(true);
  }
};

} // namespace
