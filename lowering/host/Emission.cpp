// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/host/Emission.h"

#include "runtime/abi/shardrt_program.h"

#include <cstddef>

using namespace mlir;

namespace shardc::host {

static LLVM::LLVMFuncOp functionAround(Operation *op) {
  return op->getParentOfType<LLVM::LLVMFuncOp>();
}

static Type pointerType(OpBuilder &b) { return LLVM::LLVMPointerType::get(b.getContext()); }

Value frameOf(Operation *op) { return functionAround(op).getBody().front().getArgument(0); }

Value constantInt(OpBuilder &b, Location loc, int64_t value, unsigned bits) {
  return LLVM::ConstantOp::create(b, loc, b.getIntegerType(bits),
                                  b.getIntegerAttr(b.getIntegerType(bits), value));
}

Value stackSlot(OpBuilder &b, Location loc, Operation *op, int64_t bytes) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&functionAround(op).getBody().front());
  Value count = constantInt(b, loc, bytes);
  return LLVM::AllocaOp::create(b, loc, pointerType(b), b.getI8Type(), count, /*alignment=*/16);
}

Value FunctionParts::load(OpBuilder &b, LLVM::LLVMFuncOp function, Type type, Value base,
                          size_t bytes) {
  OpBuilder::InsertionGuard guard(b);
  Value &last = parts[function].lastLoad;
  if (last)
    b.setInsertionPointAfterValue(last);
  else
    b.setInsertionPointToStart(&function.getBody().front());
  return last = abi::loadField(b, function.getLoc(), type, base, bytes);
}

Value FunctionParts::field(OpBuilder &b, Operation *op, Type type, size_t bytes) {
  LLVM::LLVMFuncOp function = functionAround(op);
  Value &value = parts[function].fields[bytes];
  if (!value)
    value = load(b, function, type, frameOf(op), bytes);
  return value;
}

Value FunctionParts::service(OpBuilder &b, Operation *op, size_t bytes) {
  LLVM::LLVMFuncOp function = functionAround(op);
  Value services = field(b, op, pointerType(b), offsetof(shardrt_frame, services));
  Value &value = parts[function].services[bytes];
  if (!value)
    value = load(b, function, pointerType(b), services, bytes);
  return value;
}

Value FunctionParts::argument(OpBuilder &b, Operation *op, size_t bytes) {
  LLVM::LLVMFuncOp function = functionAround(op);
  Value &value = parts[function].arguments[bytes];
  if (!value)
    value = stackSlot(b, function.getLoc(), op, bytes);
  return value;
}

Block *FunctionParts::failure(OpBuilder &b, Operation *op) {
  LLVM::LLVMFuncOp function = functionAround(op);
  Block *&block = parts[function].failure;
  if (!block) {
    OpBuilder::InsertionGuard guard(b);
    Region &body = function.getBody();
    block = b.createBlock(&body, body.end(), b.getI32Type(), function.getLoc());
    LLVM::ReturnOp::create(b, function.getLoc(), block->getArgument(0));
  }
  return block;
}

FunctionFrame::FunctionFrame(FunctionParts &parts, Operation *op)
    : Frame(frameOf(op)), parts(parts), op(op) {}

Value FunctionFrame::field(OpBuilder &b, Location, Type type, size_t bytes) const {
  return parts.field(b, op, type, bytes);
}

Value FunctionFrame::service(OpBuilder &b, Location, size_t bytes) const {
  return parts.service(b, op, bytes);
}

void Emission::mark(OpBuilder &b, Operation *op) const {
  if (std::optional<unsigned> index = tables.op(op))
    abi::callMark(b, op->getLoc(), frame(op), constantInt(b, op->getLoc(), *index, 32));
}

void Emission::returnIfFailed(OpBuilder &b, Operation *op, Value status) const {
  auto &rewriter = static_cast<ConversionPatternRewriter &>(b);
  Location loc = op->getLoc();
  Block *failure = parts.failure(b, op);
  Block *before = b.getInsertionBlock();
  Block *after = rewriter.splitBlock(before, b.getInsertionPoint());
  b.setInsertionPointToEnd(before);
  Value zero = constantInt(b, loc, 0, 32);
  Value failed = LLVM::ICmpOp::create(b, loc, LLVM::ICmpPredicate::ne, status, zero);
  LLVM::CondBrOp::create(b, loc, failed, failure, status, after, ValueRange());
  b.setInsertionPointToStart(after);
}

} // namespace shardc::host
