// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/cpu/RuntimeAbi.h"

#include "runtime/abi/shardrt_program.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SHA1.h"

#include <cstddef>

using namespace mlir;

namespace shardc::cpu::abi {
namespace {

Type pointerType(OpBuilder &builder) { return LLVM::LLVMPointerType::get(builder.getContext()); }

/// Calls services->[field](runtime, arguments...).
LLVM::CallOp callService(OpBuilder &builder, Location loc, Value frame, size_t field, Type result,
                         ValueRange arguments) {
  Type pointer = pointerType(builder);
  Value services = loadField(builder, loc, pointer, frame, offsetof(shardrt_frame, services));
  Value runtime = loadField(builder, loc, pointer, frame, offsetof(shardrt_frame, runtime));
  Value function = loadField(builder, loc, pointer, services, field);
  SmallVector<Value> operands{function, runtime};
  llvm::append_range(operands, arguments);
  SmallVector<Type> types{pointer};
  llvm::append_range(types, arguments.getTypes());
  auto type = LLVM::LLVMFunctionType::get(result, types);
  return LLVM::CallOp::create(builder, loc, type, operands);
}

} // namespace

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

Value stringConstant(OpBuilder &builder, Location loc, Operation *from, StringRef text) {
  auto module = from->getParentOfType<ModuleOp>();
  std::string name = "str_" + llvm::toHex(llvm::SHA1::hash(llvm::arrayRefFromStringRef(text)),
                                          /*LowerCase=*/true)
                                  .substr(0, 20);
  auto global = module.lookupSymbol<LLVM::GlobalOp>(name);
  if (!global) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(module.getBody());
    std::string terminated = text.str() + '\0';
    auto type = LLVM::LLVMArrayType::get(builder.getI8Type(), terminated.size());
    global =
        LLVM::GlobalOp::create(builder, loc, type, /*isConstant=*/true, LLVM::Linkage::Internal,
                               name, builder.getStringAttr(terminated));
  }
  return LLVM::AddressOfOp::create(builder, loc, global);
}

void callParallelFor(OpBuilder &builder, Location loc, Value frame, Value function, Value argument,
                     Value count, Value grain) {
  callService(builder, loc, frame, offsetof(shardrt_services, parallel_for),
              LLVM::LLVMVoidType::get(builder.getContext()), {function, argument, count, grain});
}

Value callFail(OpBuilder &builder, Location loc, Value frame, Value location, Value message) {
  return callService(builder, loc, frame, offsetof(shardrt_services, fail), builder.getI32Type(),
                     {location, message})
      .getResult();
}

Value callFailed(OpBuilder &builder, Location loc, Value frame) {
  return callService(builder, loc, frame, offsetof(shardrt_services, failed), builder.getI32Type(),
                     {})
      .getResult();
}

Value callGemm(OpBuilder &builder, Location loc, Value frame, Value gemm) {
  return callService(builder, loc, frame, offsetof(shardrt_services, gemm), builder.getI32Type(),
                     {gemm})
      .getResult();
}

void callMark(OpBuilder &builder, Location loc, Value frame, Value op) {
  callService(builder, loc, frame, offsetof(shardrt_services, mark),
              LLVM::LLVMVoidType::get(builder.getContext()), {op});
}

} // namespace shardc::cpu::abi
