// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/host/RuntimeAbi.h"

#include "runtime/abi/shardrt_program.h"

#include <cstddef>

using namespace mlir;

namespace shardc::host::abi {
namespace {

Type pointerType(OpBuilder &builder) { return LLVM::LLVMPointerType::get(builder.getContext()); }

/// Calls services->[field](runtime, arguments...).
LLVM::CallOp callService(OpBuilder &builder, Location loc, const Frame &frame, size_t field,
                         Type result, ValueRange arguments) {
  Type pointer = pointerType(builder);
  Value runtime = frame.field(builder, loc, pointer, offsetof(shardrt_frame, runtime));
  Value function = frame.service(builder, loc, field);
  SmallVector<Value> operands{function, runtime};
  llvm::append_range(operands, arguments);
  SmallVector<Type> types{pointer};
  llvm::append_range(types, arguments.getTypes());
  auto type = LLVM::LLVMFunctionType::get(result, types);
  return LLVM::CallOp::create(builder, loc, type, operands);
}

} // namespace

Value Frame::field(OpBuilder &builder, Location loc, Type type, size_t bytes) const {
  return loadField(builder, loc, type, frame, bytes);
}

Value Frame::service(OpBuilder &builder, Location loc, size_t bytes) const {
  Type pointer = pointerType(builder);
  Value services = field(builder, loc, pointer, offsetof(shardrt_frame, services));
  return loadField(builder, loc, pointer, services, bytes);
}

Value loadField(OpBuilder &builder, Location loc, Type type, Value base, size_t bytes) {
  Value at = LLVM::GEPOp::create(builder, loc, pointerType(builder), builder.getI8Type(), base,
                                 ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(bytes)});
  return LLVM::LoadOp::create(builder, loc, type, at);
}

void storeField(OpBuilder &builder, Location loc, Value value, Value base, size_t bytes) {
  Value at = LLVM::GEPOp::create(builder, loc, pointerType(builder), builder.getI8Type(), base,
                                 ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(bytes)});
  LLVM::StoreOp::create(builder, loc, value, at);
}

void callParallelFor(OpBuilder &builder, Location loc, const Frame &frame, Value function,
                     Value argument, Value count, Value grain) {
  callService(builder, loc, frame, offsetof(shardrt_services, parallel_for),
              LLVM::LLVMVoidType::get(builder.getContext()), {function, argument, count, grain});
}

Value callFail(OpBuilder &builder, Location loc, const Frame &frame, Value location,
               Value message) {
  return callService(builder, loc, frame, offsetof(shardrt_services, fail), builder.getI32Type(),
                     {location, message})
      .getResult();
}

Value callGemm(OpBuilder &builder, Location loc, const Frame &frame, Value gemm) {
  return callService(builder, loc, frame, offsetof(shardrt_services, gemm), builder.getI32Type(),
                     {gemm})
      .getResult();
}

Value callCollective(OpBuilder &builder, Location loc, const Frame &frame, Value descriptor,
                     Value tensors) {
  return callService(builder, loc, frame, offsetof(shardrt_services, collective),
                     builder.getI32Type(), {descriptor, tensors})
      .getResult();
}

Value callStart(OpBuilder &builder, Location loc, const Frame &frame, Value descriptor,
                Value tensors) {
  return callService(builder, loc, frame, offsetof(shardrt_services, start), builder.getI64Type(),
                     {descriptor, tensors})
      .getResult();
}

Value callWait(OpBuilder &builder, Location loc, const Frame &frame, Value token) {
  return callService(builder, loc, frame, offsetof(shardrt_services, wait), builder.getI32Type(),
                     {token})
      .getResult();
}

Value callScratch(OpBuilder &builder, Location loc, const Frame &frame, Value slot, Value bytes) {
  LLVM::CallOp call = callService(builder, loc, frame, offsetof(shardrt_services, scratch),
                                  pointerType(builder), {slot, bytes});
  NamedAttribute noAlias =
      builder.getNamedAttr(LLVM::LLVMDialect::getNoAliasAttrName(), builder.getUnitAttr());
  call.setResAttrsAttr(builder.getArrayAttr(builder.getDictionaryAttr(noAlias)));
  return call.getResult();
}

Value callLaunch(OpBuilder &builder, Location loc, const Frame &frame, Value launch) {
  return callService(builder, loc, frame, offsetof(shardrt_services, launch), builder.getI32Type(),
                     {launch})
      .getResult();
}

Value callCommit(OpBuilder &builder, Location loc, const Frame &frame) {
  return callService(builder, loc, frame, offsetof(shardrt_services, commit), builder.getI32Type(),
                     {})
      .getResult();
}

Value callReadSizes(OpBuilder &builder, Location loc, const Frame &frame, Value sizes, Value from,
                    Value count, Value atMost) {
  return callService(builder, loc, frame, offsetof(shardrt_services, read_sizes),
                     builder.getI32Type(), {sizes, from, count, atMost})
      .getResult();
}

Value callOp(OpBuilder &builder, Location loc, const Frame &frame, Value call, Value function) {
  return callService(builder, loc, frame, offsetof(shardrt_services, call_op), builder.getI32Type(),
                     {call, function})
      .getResult();
}

void callMark(OpBuilder &builder, Location loc, const Frame &frame, Value op) {
  callService(builder, loc, frame, offsetof(shardrt_services, mark),
              LLVM::LLVMVoidType::get(builder.getContext()), {op});
}

} // namespace shardc::host::abi
