// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/host/GlobalPool.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SHA1.h"

using namespace mlir;

namespace shardc::host {
namespace {

/// Names are made of the content, so that a second pool finds what the first one made.
std::string contentName(StringRef prefix, StringRef content) {
  auto hash = llvm::SHA1::hash(llvm::arrayRefFromStringRef(content));
  return (prefix + llvm::toHex(hash, /*LowerCase=*/true)).str();
}

} // namespace

GlobalPool::GlobalPool(ModuleOp module) : module(module) {
  for (auto global : module.getOps<LLVM::GlobalOp>())
    known.insert(global.getSymName());
}

Value GlobalPool::global(OpBuilder &builder, Location loc, const std::string &name,
                         llvm::function_ref<void(OpBuilder &)> create) {
  if (known.insert(name).second) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(module.getBody());
    create(builder);
  }
  return LLVM::AddressOfOp::create(builder, loc, LLVM::LLVMPointerType::get(builder.getContext()),
                                   name);
}

Value GlobalPool::string(OpBuilder &builder, Location loc, StringRef text) {
  std::string name = contentName("string_", text);
  return global(builder, loc, name, [&](OpBuilder &b) {
    std::string terminated = text.str() + '\0';
    auto type = LLVM::LLVMArrayType::get(b.getI8Type(), terminated.size());
    LLVM::GlobalOp::create(b, loc, type, /*isConstant=*/true, LLVM::Linkage::Internal, name,
                           b.getStringAttr(terminated));
  });
}

Value GlobalPool::integers(OpBuilder &builder, Location loc, ArrayRef<int64_t> values,
                           unsigned bits) {
  if (values.empty())
    return LLVM::ZeroOp::create(builder, loc, LLVM::LLVMPointerType::get(builder.getContext()));
  std::string text = std::to_string(bits);
  for (int64_t value : values)
    text += "," + std::to_string(value);
  std::string name = contentName("integers_", text);
  return global(builder, loc, name, [&](OpBuilder &b) {
    Type element = b.getIntegerType(bits);
    SmallVector<APInt> list;
    for (int64_t value : values)
      list.push_back(APInt(64, value, /*isSigned=*/true).trunc(bits));
    auto type = RankedTensorType::get({static_cast<int64_t>(values.size())}, element);
    LLVM::GlobalOp::create(b, loc, LLVM::LLVMArrayType::get(element, values.size()),
                           /*isConstant=*/true, LLVM::Linkage::Internal, name,
                           DenseElementsAttr::get(type, list));
  });
}

Value GlobalPool::record(OpBuilder &builder, Location loc, StringRef prefix,
                         ArrayRef<TypedAttr> fields) {
  SmallVector<Type> types;
  SmallVector<Attribute> values(fields.begin(), fields.end());
  for (TypedAttr field : fields)
    types.push_back(field.getType());
  ArrayAttr list = builder.getArrayAttr(values);
  std::string text;
  llvm::raw_string_ostream(text) << list;
  std::string name = contentName(prefix, text);
  return global(builder, loc, name, [&](OpBuilder &b) {
    LLVM::GlobalOp::create(b, loc, LLVM::LLVMStructType::getLiteral(b.getContext(), types),
                           /*isConstant=*/true, LLVM::Linkage::Internal, name, list);
  });
}

} // namespace shardc::host
