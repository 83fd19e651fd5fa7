// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/cuda/scatter/WordBuilder.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::cuda;

Value WordBuilder::constant(int64_t value) const {
  return arith::ConstantIntOp::create(builder, loc, type, value);
}

Value WordBuilder::of(OpFoldResult number) const {
  if (std::optional<int64_t> known = getConstantIntValue(number))
    return constant(*known);
  return cast<Value>(number);
}

Value WordBuilder::fromIndex(Value index) const {
  return builder.createOrFold<arith::IndexCastOp>(loc, type, index);
}

Value WordBuilder::toIndex(Value word) const {
  return builder.createOrFold<arith::IndexCastUIOp>(loc, builder.getIndexType(), word);
}

Value WordBuilder::fromI32(Value number) const {
  return type.isInteger(32) ? number : builder.createOrFold<arith::ExtUIOp>(loc, type, number);
}

Value WordBuilder::add(Value a, Value b) const {
  return builder.createOrFold<arith::AddIOp>(loc, a, b);
}
Value WordBuilder::sub(Value a, Value b) const {
  return builder.createOrFold<arith::SubIOp>(loc, a, b);
}
Value WordBuilder::mul(Value a, Value b) const {
  return builder.createOrFold<arith::MulIOp>(loc, a, b);
}
Value WordBuilder::div(Value a, Value b) const {
  return builder.createOrFold<arith::DivUIOp>(loc, a, b);
}
Value WordBuilder::rem(Value a, Value b) const {
  return builder.createOrFold<arith::RemUIOp>(loc, a, b);
}
Value WordBuilder::min(Value a, Value b) const {
  return builder.createOrFold<arith::MinUIOp>(loc, a, b);
}
Value WordBuilder::isBelow(Value a, Value b) const {
  return builder.createOrFold<arith::CmpIOp>(loc, arith::CmpIPredicate::ult, a, b);
}
Value WordBuilder::isEqual(Value a, Value b) const {
  return builder.createOrFold<arith::CmpIOp>(loc, arith::CmpIPredicate::eq, a, b);
}

Value WordBuilder::load(Value memory, Value at) const {
  return memref::LoadOp::create(builder, loc, memory, toIndex(at));
}

void WordBuilder::store(Value value, Value memory, Value at) const {
  memref::StoreOp::create(builder, loc, value, memory, toIndex(at));
}

SmallVector<Value> WordBuilder::delinearise(Value number, ArrayRef<OpFoldResult> sizes) const {
  SmallVector<Value> position(sizes.size());
  for (size_t i = sizes.size(); i-- > 0;) {
    if (i == 0) {
      position[i] = number;
      break;
    }
    Value size = of(sizes[i]);
    position[i] = rem(number, size);
    number = div(number, size);
  }
  return position;
}

OpFoldResult shardc::cuda::multiplyNumbers(const WordBuilder &words, OpFoldResult a,
                                           OpFoldResult b) {
  auto x = getConstantIntValue(a), y = getConstantIntValue(b);
  if (x && y)
    return words.builder.getIndexAttr(*x * *y);
  if (x == 1)
    return b;
  if (y == 1)
    return a;
  return words.mul(words.of(a), words.of(b));
}

OpFoldResult shardc::cuda::divideNumberUp(const WordBuilder &words, OpFoldResult a, int64_t b) {
  if (auto x = getConstantIntValue(a))
    return words.builder.getIndexAttr((*x + b - 1) / b);
  return words.div(words.add(cast<Value>(a), words.constant(b - 1)), words.constant(b));
}

OpFoldResult shardc::cuda::sizeOf(const WordBuilder &words, Value memory, int64_t dim) {
  auto type = cast<MemRefType>(memory.getType());
  if (type.isDynamicDim(dim))
    return words.fromIndex(memref::DimOp::create(words.builder, words.loc, memory, dim));
  return words.builder.getIndexAttr(type.getDimSize(dim));
}

SmallVector<OpFoldResult> shardc::cuda::sizesOf(const WordBuilder &words, Value memory) {
  SmallVector<OpFoldResult> sizes;
  for (int64_t dim = 0, rank = cast<MemRefType>(memory.getType()).getRank(); dim < rank; ++dim)
    sizes.push_back(sizeOf(words, memory, dim));
  return sizes;
}

OpFoldResult shardc::cuda::productOf(const WordBuilder &words, ArrayRef<OpFoldResult> sizes) {
  OpFoldResult product = words.builder.getIndexAttr(1);
  for (OpFoldResult size : sizes)
    product = multiplyNumbers(words, product, size);
  return product;
}

void shardc::cuda::launchBlocks(OpBuilder &builder, Location loc, Value x, Value y, int64_t threads,
                                ArrayRef<MemRefType> shared,
                                function_ref<void(OpBuilder &, const LaunchedBlock &)> body) {
  Value one = arith::ConstantIndexOp::create(builder, loc, 1);
  Value count = arith::ConstantIndexOp::create(builder, loc, threads);
  SmallVector<Type> types(shared.begin(), shared.end());
  auto launch = gpu::LaunchOp::create(builder, loc, x, y, one, count, one, one,
                                      /*dynamicSharedMemorySize=*/nullptr,
                                      /*asyncTokenType=*/nullptr, /*asyncDependencies=*/{}, types);
  OpBuilder inner = OpBuilder::atBlockBegin(&launch.getBody().front());
  LaunchedBlock block{launch.getThreadIds().x,
                      launch.getBlockIds().x,
                      launch.getBlockIds().y,
                      launch.getGridSize().y,
                      {}};
  for (BlockArgument memory : launch.getWorkgroupAttributions())
    block.shared.push_back(memory);
  body(inner, block);
  gpu::TerminatorOp::create(inner, loc);
}

void shardc::cuda::forEachNumber(const WordBuilder &words, OpFoldResult count,
                                 function_ref<void(const WordBuilder &, Value)> body) {
  constexpr int64_t kThreads = 256;
  OpBuilder &builder = words.builder;
  Location loc = words.loc;
  OpFoldResult blocks = divideNumberUp(words, count, kThreads);
  std::optional<int64_t> known = getConstantIntValue(blocks);
  Value x = known ? Value(arith::ConstantIndexOp::create(builder, loc, *known))
                  : words.toIndex(cast<Value>(blocks));
  Value one = arith::ConstantIndexOp::create(builder, loc, 1);
  launchBlocks(builder, loc, x, one, kThreads, {}, [&](OpBuilder &b, const LaunchedBlock &block) {
    WordBuilder w = words.at(b);
    Value number =
        w.add(w.mul(w.fromIndex(block.x), w.constant(kThreads)), w.fromIndex(block.thread));
    auto guard =
        scf::IfOp::create(b, loc, w.isBelow(number, w.of(count)), /*withElseRegion=*/false);
    OpBuilder then = guard.getThenBodyBuilder();
    body(words.at(then), number);
  });
}
