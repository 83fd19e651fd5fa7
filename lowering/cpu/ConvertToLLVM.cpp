// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dialects/exec/Exec.h"
#include "lowering/cpu/Passes.h"
#include "lowering/host/GlobalPool.h"
#include "lowering/host/KernelPatterns.h"
#include "lowering/host/RuntimeAbi.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVM.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/Pattern.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MathToLibm/MathToLibm.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Conversion/UBToLLVM/UBToLLVM.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace shardc::cpu {
#define GEN_PASS_DEF_CPUCONVERTTOLLVM
#include "lowering/cpu/Passes.h.inc"
} // namespace shardc::cpu

using namespace mlir;
using namespace shardc;
using namespace shardc::cpu;

namespace {

/// Packs the arguments into a struct on the stack; a small function unpacks them and calls the
/// body.
struct ParallelCallLowering : ConvertOpToLLVMPattern<exec::ParallelCallOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult matchAndRewrite(exec::ParallelCallOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Type pointer = LLVM::LLVMPointerType::get(getContext());
    SmallVector<Type> fields;
    SmallVector<Value> values;
    for (auto [original, value] : llvm::zip_equal(op.getArgs(), adaptor.getArgs())) {
      Value field = value;
      if (auto type = dyn_cast<MemRefType>(original.getType()))
        field = MemRefDescriptor(value).alignedPtr(rewriter, loc);
      values.push_back(field);
      fields.push_back(field.getType());
    }
    auto context = LLVM::LLVMStructType::getLiteral(getContext(), fields);
    Value one = LLVM::ConstantOp::create(rewriter, loc, rewriter.getI64Type(),
                                         rewriter.getI64IntegerAttr(1));
    Value packed = LLVM::AllocaOp::create(rewriter, loc, pointer, context, one);
    for (auto [i, value] : llvm::enumerate(values)) {
      Value at = LLVM::GEPOp::create(rewriter, loc, pointer, context, packed,
                                     ArrayRef<LLVM::GEPArg>{0, static_cast<int32_t>(i)});
      LLVM::StoreOp::create(rewriter, loc, value, at);
    }
    LLVM::LLVMFuncOp task = makeTask(op, context, rewriter);
    Value function = LLVM::AddressOfOp::create(rewriter, loc, task);
    Value grain = LLVM::ConstantOp::create(rewriter, loc, rewriter.getI64Type(),
                                           rewriter.getI64IntegerAttr(op.getGrain()));
    host::abi::callParallelFor(rewriter, loc, host::kernelFrame(op), function, packed,
                               adaptor.getCount(), grain);
    rewriter.eraseOp(op);
    return success();
  }

  LLVM::LLVMFuncOp makeTask(exec::ParallelCallOp op, LLVM::LLVMStructType context,
                            ConversionPatternRewriter &rewriter) const {
    Location loc = op.getLoc();
    OpBuilder::InsertionGuard guard(rewriter);
    auto parent = op->getParentOfType<LLVM::LLVMFuncOp>();
    rewriter.setInsertionPoint(parent);
    Type pointer = LLVM::LLVMPointerType::get(getContext());
    Type i64 = rewriter.getI64Type();
    Type none = LLVM::LLVMVoidType::get(getContext());
    auto task = LLVM::LLVMFuncOp::create(rewriter, loc, (op.getBody() + "_task").str(),
                                         LLVM::LLVMFunctionType::get(none, {pointer, i64, i64}),
                                         LLVM::Linkage::Internal);
    Block *entry = task.addEntryBlock(rewriter);
    rewriter.setInsertionPointToStart(entry);
    SmallVector<Value> arguments;
    SmallVector<Type> types;
    for (auto [i, field] : llvm::enumerate(context.getBody())) {
      Value at = LLVM::GEPOp::create(rewriter, loc, pointer, context, entry->getArgument(0),
                                     ArrayRef<LLVM::GEPArg>{0, static_cast<int32_t>(i)});
      arguments.push_back(LLVM::LoadOp::create(rewriter, loc, field, at));
      types.push_back(field);
    }
    arguments.append({entry->getArgument(1), entry->getArgument(2)});
    types.append(2, i64);
    LLVM::CallOp::create(rewriter, loc, LLVM::LLVMFunctionType::get(none, types), op.getBodyAttr(),
                         arguments);
    LLVM::ReturnOp::create(rewriter, loc, ValueRange());
    return task;
  }
};

bool isPlan(func::FuncOp function) { return function->hasAttrOfType<UnitAttr>(exec::kPlanAttr); }

struct ConvertToLlvm : cpu::impl::CpuConvertToLlvmBase<ConvertToLlvm> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    MLIRContext *context = &getContext();
    LowerToLLVMOptions options(context);
    options.useBarePtrCallConv = true;
    LLVMTypeConverter converter(context, options);
    RewritePatternSet patterns(context);
    arith::populateArithToLLVMConversionPatterns(converter, patterns);
    // Rounded quotients of sizes that are known at the run only.
    arith::populateCeilFloorDivExpandOpsPatterns(patterns);
    cf::populateControlFlowToLLVMConversionPatterns(converter, patterns);
    populateFuncToLLVMConversionPatterns(converter, patterns);
    populateFinalizeMemRefToLLVMConversionPatterns(converter, patterns);
    // The C library has what LLVM has no intrinsic for.
    populateMathToLLVMConversionPatterns(converter, patterns, /*approximateLog1p=*/false,
                                         /*benefit=*/2);
    populateMathToLibmConversionPatterns(patterns);
    populateVectorToLLVMConversionPatterns(converter, patterns);
    ub::populateUBToLLVMConversionPatterns(converter, patterns);
    module.walk([&](exec::ParallelCallOp) { ++tasks; });
    patterns.add<ParallelCallLowering>(converter);
    host::GlobalPool pool(module);
    host::populateKernelPatterns(converter, pool, patterns);
    LLVMConversionTarget target(*context);
    SmallVector<Operation *> roots;
    for (auto function : module.getOps<func::FuncOp>())
      if (!function->hasAttr(exec::kEntryAttr) && !isPlan(function))
        roots.push_back(function);
    functions += roots.size();
    if (failed(applyFullConversion(roots, target, std::move(patterns))))
      return signalPassFailure();
    // Bodies keep their arguments' aliasing only as long as they are functions of their own. And
    // entries launch one kernel in many places, each of which would be compiled.
    for (auto function : module.getOps<LLVM::LLVMFuncOp>())
      if (!function.isExternal())
        function.setNoInline(true);
  }
};

} // namespace
