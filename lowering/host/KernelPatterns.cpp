// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/host/KernelPatterns.h"

#include "dialects/exec/Exec.h"
#include "lowering/host/RuntimeAbi.h"

#include "mlir/Conversion/LLVMCommon/Pattern.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace shardc::host {

static Value kernelArgument(Operation *op, unsigned number) {
  return op->getParentOfType<LLVM::LLVMFuncOp>().getBody().front().getArgument(number);
}

Value kernelFrame(Operation *op) { return kernelArgument(op, 0); }
Value kernelLocation(Operation *op) { return kernelArgument(op, 1); }

namespace {

struct FailIfLowering : ConvertOpToLLVMPattern<exec::FailIfOp> {
  FailIfLowering(const LLVMTypeConverter &converter, GlobalPool &pool)
      : ConvertOpToLLVMPattern(converter), pool(pool) {}

  LogicalResult matchAndRewrite(exec::FailIfOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Block *before = rewriter.getInsertionBlock();
    Block *after = rewriter.splitBlock(before, rewriter.getInsertionPoint());
    Block *fail = rewriter.createBlock(after);
    rewriter.setInsertionPointToEnd(before);
    LLVM::CondBrOp::create(rewriter, loc, adaptor.getCondition(), fail, after);
    rewriter.setInsertionPointToStart(fail);
    Value message = pool.string(rewriter, loc, op.getMessage());
    abi::callFail(rewriter, loc, kernelFrame(op), kernelLocation(op), message);
    LLVM::BrOp::create(rewriter, loc, after);
    rewriter.eraseOp(op);
    return success();
  }

  GlobalPool &pool;
};

struct FrameLowering : ConvertOpToLLVMPattern<exec::FrameOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult matchAndRewrite(exec::FrameOp op, OpAdaptor,
                                ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOp(op, kernelFrame(op));
    return success();
  }
};

/// Where there is no memory the function returns; the runtime has recorded why.
struct ScratchLowering : ConvertOpToLLVMPattern<exec::ScratchOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult matchAndRewrite(exec::ScratchOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    MemRefType type = op.getBuffer().getType();
    SmallVector<Value> sizes, strides;
    Value bytes;
    getMemRefDescriptorSizes(loc, type, adaptor.getSizes(), rewriter, sizes, strides, bytes);
    Value slot = LLVM::ConstantOp::create(rewriter, loc, op.getSlotAttr());
    Value memory = abi::callScratch(rewriter, loc, adaptor.getFrame(), slot, bytes);
    Value null = LLVM::ZeroOp::create(rewriter, loc, memory.getType());
    Value none = LLVM::ICmpOp::create(rewriter, loc, LLVM::ICmpPredicate::eq, memory, null);
    Block *before = rewriter.getInsertionBlock();
    Block *after = rewriter.splitBlock(before, rewriter.getInsertionPoint());
    Block *leave = rewriter.createBlock(after);
    LLVM::ReturnOp::create(rewriter, loc, ValueRange());
    rewriter.setInsertionPointToEnd(before);
    LLVM::CondBrOp::create(rewriter, loc, none, leave, after);
    rewriter.setInsertionPointToStart(after);
    Value descriptor = createMemRefDescriptor(loc, type, memory, memory, sizes, strides, rewriter);
    rewriter.replaceOp(op, descriptor);
    return success();
  }
};

} // namespace

void populateKernelPatterns(const LLVMTypeConverter &converter, GlobalPool &pool,
                            RewritePatternSet &patterns) {
  patterns.add<FrameLowering, ScratchLowering>(converter);
  patterns.add<FailIfLowering>(converter, pool);
}

} // namespace shardc::host
