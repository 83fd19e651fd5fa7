// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Entries: collectives, and offsets of plan functions.

#include "dialects/exec/Exec.h"
#include "lowering/host/Emission.h"
#include "lowering/host/RuntimeAbi.h"

#include "runtime/abi/shardrt_program.h"

#include <cstddef>

using namespace mlir;

namespace shardc::host {
namespace {

Type pointerType(MLIRContext *context) { return LLVM::LLVMPointerType::get(context); }

/// A list of numbers in memory: constant data, or filled on the stack.
Value numberList(OpBuilder &b, GlobalPool &pool, Operation *op, ArrayRef<int64_t> numbers,
                 ValueRange &dynamic) {
  Location loc = op->getLoc();
  if (!llvm::any_of(numbers, ShapedType::isDynamic))
    return pool.integers(b, loc, numbers);
  Value list = stackSlot(b, loc, op, numbers.size() * sizeof(int64_t));
  for (auto [i, number] : llvm::enumerate(numbers)) {
    Value value;
    if (ShapedType::isDynamic(number)) {
      value = dynamic.front();
      dynamic = dynamic.drop_front();
    } else {
      value = constantInt(b, loc, number);
    }
    abi::storeField(b, loc, value, list, i * sizeof(int64_t));
  }
  return list;
}

ArrayRef<int64_t> listAt(ArrayAttr lists, unsigned i) {
  return cast<DenseI64ArrayAttr>(lists[i]).asArrayRef();
}

/// How much room the result of an exchange along dim 0 has whose counts are known when it runs; 0
/// where as much arrives as it has room for.
template <typename Op> int64_t roomOf(Op op, unsigned i) {
  auto type = cast<MemRefType>(op.getOutputs()[i].getType());
  bool isOpen = op.getGatherDims()[i] == 0 && op.getScatterDims()[i] == 0 &&
                llvm::any_of(listAt(op.getGatherExtents(), i), ShapedType::isDynamic);
  return isOpen && !type.isDynamicDim(0) ? type.getDimSize(0) : 0;
}

template <typename Op> struct LowerCollective : ConvertOpToLLVMPattern<Op> {
  explicit LowerCollective(const Emission &emission)
      : ConvertOpToLLVMPattern<Op>(emission.converter), emission(emission) {}

  LogicalResult matchAndRewrite(Op op, typename Op::Adaptor adaptor,
                                ConversionPatternRewriter &b) const override {
    Location loc = op.getLoc();
    Type pointer = pointerType(op.getContext());
    emission.mark(b, op);
    Value all = LLVM::AddressOfOp::create(b, loc, pointer, kCollectivesSymbol);
    Value descriptor =
        LLVM::GEPOp::create(b, loc, pointer, b.getI8Type(), all,
                            ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(
                                emission.tables.collective(op) * sizeof(shardrt_collective))});
    unsigned count = op.getInputs().size();
    Value tensors = emission.parts.argument(
        b, op, std::max<size_t>(1, count) * sizeof(shardrt_collective_tensor));
    ValueRange dynamic = adaptor.getSizes();
    for (unsigned i = 0; i < count; ++i) {
      auto set = [&](size_t field, Value value) {
        abi::storeField(b, loc, value, tensors, i * sizeof(shardrt_collective_tensor) + field);
      };
      set(offsetof(shardrt_collective_tensor, in), adaptor.getInputs()[i]);
      set(offsetof(shardrt_collective_tensor, out), adaptor.getOutputs()[i]);
      set(offsetof(shardrt_collective_tensor, extents),
          numberList(b, emission.pool, op, listAt(op.getExtents(), i), dynamic));
      set(offsetof(shardrt_collective_tensor, gather),
          numberList(b, emission.pool, op, listAt(op.getGatherExtents(), i), dynamic));
      set(offsetof(shardrt_collective_tensor, scatter),
          numberList(b, emission.pool, op, listAt(op.getScatterExtents(), i), dynamic));
      set(offsetof(shardrt_collective_tensor, room), constantInt(b, loc, roomOf(op, i)));
    }
    finish(op, b, descriptor, tensors);
    return success();
  }

  void finish(exec::CollectiveOp op, ConversionPatternRewriter &b, Value descriptor,
              Value tensors) const {
    emission.returnIfFailed(
        b, op, abi::callCollective(b, op.getLoc(), emission.frame(op), descriptor, tensors));
    b.eraseOp(op);
  }
  void finish(exec::StartOp op, ConversionPatternRewriter &b, Value descriptor,
              Value tensors) const {
    b.replaceOp(op, abi::callStart(b, op.getLoc(), emission.frame(op), descriptor, tensors));
  }

  Emission emission;
};

struct LowerWait : ConvertOpToLLVMPattern<exec::WaitOp> {
  explicit LowerWait(const Emission &emission)
      : ConvertOpToLLVMPattern(emission.converter), emission(emission) {}
  LogicalResult matchAndRewrite(exec::WaitOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &b) const override {
    emission.returnIfFailed(b, op,
                            abi::callWait(b, op.getLoc(), emission.frame(op), adaptor.getToken()));
    b.eraseOp(op);
    return success();
  }

  Emission emission;
};

struct LowerSetOffset : ConvertOpToLLVMPattern<exec::SetOffsetOp> {
  explicit LowerSetOffset(const Emission &emission)
      : ConvertOpToLLVMPattern(emission.converter), emission(emission) {}
  LogicalResult matchAndRewrite(exec::SetOffsetOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &b) const override {
    Value offsets = emission.frame(op).field(b, op.getLoc(), pointerType(getContext()),
                                             offsetof(shardrt_frame, offsets));
    abi::storeField(b, op.getLoc(), adaptor.getOffset(), offsets, op.getSlot() * sizeof(int64_t));
    b.eraseOp(op);
    return success();
  }

  Emission emission;
};

struct LowerSetArenaBytes : ConvertOpToLLVMPattern<exec::SetArenaBytesOp> {
  explicit LowerSetArenaBytes(const Emission &emission)
      : ConvertOpToLLVMPattern(emission.converter) {}
  LogicalResult matchAndRewrite(exec::SetArenaBytesOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &b) const override {
    abi::storeField(b, op.getLoc(), adaptor.getBytes(), frameOf(op),
                    offsetof(shardrt_frame, arena_bytes));
    b.eraseOp(op);
    return success();
  }
};

} // namespace

void populateCollectivePatterns(const Emission &emission, RewritePatternSet &patterns) {
  patterns.add<LowerCollective<exec::CollectiveOp>, LowerCollective<exec::StartOp>, LowerWait,
               LowerSetOffset, LowerSetArenaBytes>(emission);
}

} // namespace shardc::host
