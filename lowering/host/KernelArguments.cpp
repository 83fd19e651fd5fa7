// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/host/KernelArguments.h"

#include "dialects/exec/Exec.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

namespace shardc::host {

PassedValue::PassedValue(Type valueType) {
  type = dyn_cast<MemRefType>(valueType);
  if (type && failed(type.getStridesAndOffset(strides, offset)))
    type = {};
}

void PassedValue::types(Type original, SmallVectorImpl<Type> &result) const {
  if (!type) {
    result.push_back(original);
    return;
  }
  Type index = IndexType::get(original.getContext());
  result.push_back(MemRefType::get({}, type.getElementType(), MemRefLayoutAttrInterface(),
                                   type.getMemorySpace()));
  if (ShapedType::isDynamic(offset))
    result.push_back(index);
  result.append(type.getNumDynamicDims(), index);
  result.append(llvm::count_if(strides, ShapedType::isDynamic), index);
}

void PassedValue::take(OpBuilder &builder, Location loc, Value value,
                       SmallVectorImpl<Value> &result) const {
  if (!type) {
    result.push_back(value);
    return;
  }
  auto parts = memref::ExtractStridedMetadataOp::create(builder, loc, value);
  result.push_back(parts.getBaseBuffer());
  if (ShapedType::isDynamic(offset))
    result.push_back(parts.getOffset());
  for (auto [size, part] : llvm::zip_equal(type.getShape(), parts.getSizes()))
    if (ShapedType::isDynamic(size))
      result.push_back(part);
  for (auto [stride, part] : llvm::zip_equal(strides, parts.getStrides()))
    if (ShapedType::isDynamic(stride))
      result.push_back(part);
}

Value PassedValue::rebuild(OpBuilder &builder, Location loc, ValueRange &arguments) const {
  auto next = [&]() -> Value {
    Value value = arguments.front();
    arguments = arguments.drop_front();
    return value;
  };
  Value first = next();
  if (!type)
    return first;
  auto part = [&](int64_t known) {
    return ShapedType::isDynamic(known) ? OpFoldResult(next())
                                        : OpFoldResult(builder.getIndexAttr(known));
  };
  OpFoldResult from = part(offset);
  SmallVector<OpFoldResult> sizes = llvm::map_to_vector(type.getShape(), part);
  SmallVector<OpFoldResult> steps = llvm::map_to_vector(strides, part);
  return memref::ReinterpretCastOp::create(builder, loc, type, first, from, sizes, steps);
}

void markPointers(func::FuncOp function) {
  for (auto [position, type] : llvm::enumerate(function.getArgumentTypes()))
    if (isa<MemRefType>(type))
      function.setArgAttr(position, LLVM::LLVMDialect::getNoAliasAttrName(),
                          UnitAttr::get(function.getContext()));
}

Value frameIn(func::FuncOp kernel) {
  OpBuilder builder = OpBuilder::atBlockBegin(&kernel.front());
  return exec::FrameOp::create(builder, kernel.getLoc(),
                               LLVM::LLVMPointerType::get(kernel.getContext()));
}

void flattenKernelSignature(func::FuncOp kernel) {
  Block &entry = kernel.getBody().front();
  Location loc = kernel.getLoc();
  OpBuilder builder = OpBuilder::atBlockBegin(&entry);
  unsigned count = entry.getNumArguments();
  SmallVector<PassedValue> passed;
  Type pointer = LLVM::LLVMPointerType::get(kernel.getContext());
  for (BlockArgument argument : entry.getArguments()) {
    passed.emplace_back(argument.getType());
    passed.back().foldOffset();
  }
  entry.addArgument(pointer, loc); // the frame
  entry.addArgument(pointer, loc); // the location of the launch
  constexpr StringLiteral lists[] = {exec::kWritesAttr, exec::kInPlaceAttr};
  SmallVector<int64_t> named[std::size(lists)];
  auto listOf = [&](StringRef name) { return kernel->getAttrOfType<DenseI64ArrayAttr>(name); };
  for (unsigned i = 0; i < count; ++i) {
    for (auto [name, numbers] : llvm::zip_equal(lists, named))
      if (auto list = listOf(name); list && llvm::is_contained(list.asArrayRef(), i))
        numbers.push_back(entry.getNumArguments() - count);
    SmallVector<Type> types;
    passed[i].types(entry.getArgument(i).getType(), types);
    for (Type type : types)
      entry.addArgument(type, loc);
  }
  for (auto [name, numbers] : llvm::zip_equal(lists, named))
    if (listOf(name))
      kernel->setAttr(name, builder.getDenseI64ArrayAttr(numbers));
  SmallVector<Value> arguments(entry.getArguments().drop_front(count + 2));
  ValueRange rest = arguments;
  for (unsigned i = 0; i < count; ++i)
    entry.getArgument(i).replaceAllUsesWith(passed[i].rebuild(builder, loc, rest));
  entry.eraseArguments(0, count);
  kernel.setAllArgAttrs(ArrayRef<DictionaryAttr>());
  kernel.setType(builder.getFunctionType(entry.getArgumentTypes(), {}));
  kernel->setAttr(exec::kOutlinedAttr, builder.getUnitAttr());
  markPointers(kernel);
}

} // namespace shardc::host
