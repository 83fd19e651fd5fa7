// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Entries: memory and kernel launches.

#include "dialects/exec/Exec.h"
#include "lowering/host/EmitPattern.h"
#include "lowering/host/RuntimeAbi.h"

#include "runtime/abi/shardrt_program.h"

#include "dialects/interfaces/ModelLocation.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

#include <cstddef>

using namespace mlir;

namespace shardc::host {
namespace {

Value offsetPointer(OpBuilder &b, Location loc, Type element, Value base, Value offset) {
  return LLVM::GEPOp::create(b, loc, pointerType(b.getContext()), element, base,
                             ArrayRef<LLVM::GEPArg>{offset});
}

struct LowerArgument : EmitPattern<exec::ArgumentOp> {
  using EmitPattern::EmitPattern;
  LogicalResult matchAndRewrite(exec::ArgumentOp op, OpAdaptor,
                                ConversionPatternRewriter &b) const override {
    size_t field = 0;
    switch (op.getKind()) {
    case exec::ArgumentKind::Input:
      field = offsetof(shardrt_frame, inputs);
      break;
    case exec::ArgumentKind::Parameter:
      field = offsetof(shardrt_frame, parameters);
      break;
    case exec::ArgumentKind::Output:
      field = offsetof(shardrt_frame, outputs);
      break;
    }
    Type pointer = pointerType(getContext());
    Value list = emission.frame(op).field(b, op.getLoc(), pointer, field);
    b.replaceOp(op, abi::loadField(b, op.getLoc(), pointer, list, op.getIndex() * sizeof(void *)));
    return success();
  }
};

struct LowerAlloc : EmitPattern<exec::AllocOp> {
  using EmitPattern::EmitPattern;
  LogicalResult matchAndRewrite(exec::AllocOp op, OpAdaptor,
                                ConversionPatternRewriter &b) const override {
    Location loc = op.getLoc();
    Value offset;
    if (op.getOffset()) {
      offset = constantInt(b, loc, *op.getOffset());
    } else if (op.getSlot()) {
      Value offsets = emission.frame(op).field(b, loc, pointerType(getContext()),
                                               offsetof(shardrt_frame, offsets));
      offset = abi::loadField(b, loc, b.getI64Type(), offsets, *op.getSlot() * sizeof(int64_t));
    } else {
      return b.notifyMatchFailure(op, "has no place in the arena");
    }
    Value arena =
        emission.frame(op).field(b, loc, pointerType(getContext()), offsetof(shardrt_frame, arena));
    b.replaceOp(op, offsetPointer(b, loc, b.getI8Type(), arena, offset));
    return success();
  }
};

struct LowerReinterpretCast : EmitPattern<memref::ReinterpretCastOp> {
  using EmitPattern::EmitPattern;
  LogicalResult matchAndRewrite(memref::ReinterpretCastOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &b) const override {
    Value pointer = adaptor.getSource();
    int64_t known = op.getStaticOffsets().front();
    if (known == 0) {
      b.replaceOp(op, pointer);
      return success();
    }
    Value offset = ShapedType::isDynamic(known) ? adaptor.getOffsets().front()
                                                : constantInt(b, op.getLoc(), known);
    Type element = getTypeConverter()->convertType(op.getType().getElementType());
    b.replaceOp(op, offsetPointer(b, op.getLoc(), element, pointer, offset));
    return success();
  }
};

/// Another type of the same memory (BufferShape).
struct LowerCast : EmitPattern<memref::CastOp> {
  using EmitPattern::EmitPattern;
  LogicalResult matchAndRewrite(memref::CastOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &b) const override {
    b.replaceOp(op, adaptor.getSource());
    return success();
  }
};

struct LowerGlobal : EmitPattern<memref::GlobalOp> {
  using EmitPattern::EmitPattern;
  LogicalResult matchAndRewrite(memref::GlobalOp op, OpAdaptor,
                                ConversionPatternRewriter &b) const override {
    auto elements = dyn_cast_or_null<DenseElementsAttr>(op.getInitialValueAttr());
    if (!elements)
      return b.notifyMatchFailure(op, "has no value");
    Type element = elements.getElementType();
    int64_t count = elements.getNumElements();
    auto type = LLVM::LLVMArrayType::get(element, count);
    Attribute flat = elements.reshape(RankedTensorType::get({count}, element));
    b.replaceOpWithNewOp<LLVM::GlobalOp>(op, type, /*isConstant=*/true, LLVM::Linkage::Internal,
                                         op.getSymName(), count ? flat : Attribute(),
                                         emission.alignment);
    return success();
  }
};

struct LowerGetGlobal : EmitPattern<memref::GetGlobalOp> {
  using EmitPattern::EmitPattern;
  LogicalResult matchAndRewrite(memref::GetGlobalOp op, OpAdaptor,
                                ConversionPatternRewriter &b) const override {
    b.replaceOpWithNewOp<LLVM::AddressOfOp>(op, pointerType(getContext()), op.getName());
    return success();
  }
};

struct LowerLaunch : EmitPattern<exec::LaunchOp> {
  using EmitPattern::EmitPattern;
  LogicalResult matchAndRewrite(exec::LaunchOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &b) const override {
    Location loc = op.getLoc();
    emission.mark(b, op);
    Value location = emission.pool.string(b, loc, describePlace(loc));
    SmallVector<target::LaunchArgument> arguments;
    for (auto [original, value] : llvm::zip_equal(op.getArgs(), adaptor.getArgs())) {
      target::LaunchArgument &argument = arguments.emplace_back();
      argument.value = value;
      if (!isa<MemRefType>(original.getType()))
        continue;
      FailureOr<BufferShape> shape = BufferShape::of(original, b);
      if (failed(shape))
        return b.notifyMatchFailure(op, "has an operand of unknown shape");
      argument.sizes = std::move(shape->dynamicSizes);
      argument.strides = std::move(shape->dynamicStrides);
    }
    if (failed(emission.launches->emit({op, frameOf(op), location, arguments}, b)))
      return failure();
    b.eraseOp(op);
    return success();
  }
};

struct LowerCommit : EmitPattern<exec::CommitOp> {
  using EmitPattern::EmitPattern;
  LogicalResult matchAndRewrite(exec::CommitOp op, OpAdaptor,
                                ConversionPatternRewriter &b) const override {
    emission.returnIfFailed(b, op, abi::callCommit(b, op.getLoc(), emission.frame(op)));
    b.eraseOp(op);
    return success();
  }
};

struct LowerReadSizes : EmitPattern<exec::ReadSizesOp> {
  using EmitPattern::EmitPattern;
  LogicalResult matchAndRewrite(exec::ReadSizesOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &b) const override {
    Location loc = op.getLoc();
    size_t count = op.getSizes().size();
    Value list = stackSlot(b, loc, op, static_cast<int64_t>(count * sizeof(int64_t)));
    emission.returnIfFailed(b, op,
                            abi::callReadSizes(b, loc, emission.frame(op), list,
                                               adaptor.getMemory(),
                                               constantInt(b, loc, static_cast<int64_t>(count)),
                                               constantInt(b, loc, op.getAtMost())));
    SmallVector<Value> sizes;
    for (size_t i = 0; i < count; ++i)
      sizes.push_back(abi::loadField(b, loc, b.getI64Type(), list, i * sizeof(int64_t)));
    b.replaceOp(op, sizes);
    return success();
  }
};

} // namespace

void populateHostPatterns(const Emission &emission, RewritePatternSet &patterns) {
  patterns.add<LowerArgument, LowerAlloc, LowerReinterpretCast, LowerCast, LowerGlobal,
               LowerGetGlobal, LowerLaunch, LowerCommit, LowerReadSizes>(emission);
}

} // namespace shardc::host
