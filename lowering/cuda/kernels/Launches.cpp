// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/cuda/kernels/Launches.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"

#include <limits>

using namespace mlir;

namespace shardc::cuda {

gpu::LaunchOp createLaunch(OpBuilder &host, Location loc, ArrayRef<OpFoldResult> grid,
                           ArrayRef<int64_t> block, TypeRange shared,
                           llvm::function_ref<void(OpBuilder &, gpu::LaunchOp)> body) {
  auto extent = [&](ArrayRef<OpFoldResult> sizes, unsigned i) -> Value {
    OpFoldResult size = i < sizes.size() ? sizes[i] : OpFoldResult(host.getIndexAttr(1));
    return getValueOrCreateConstantIndexOp(host, loc, size);
  };
  SmallVector<OpFoldResult> threads = getAsIndexOpFoldResult(host.getContext(), block);
  SmallVector<Value> sizes;
  for (ArrayRef<OpFoldResult> list : {grid, ArrayRef<OpFoldResult>(threads)})
    for (unsigned i = 0; i < 3; ++i)
      sizes.push_back(extent(list, i));
  auto launch =
      gpu::LaunchOp::create(host, loc, sizes[0], sizes[1], sizes[2], sizes[3], sizes[4], sizes[5],
                            /*dynamicSharedMemorySize=*/nullptr, /*asyncTokenType=*/nullptr,
                            /*asyncDependencies=*/{}, shared);
  OpBuilder inner = OpBuilder::atBlockBegin(&launch.getBody().front());
  body(inner, launch);
  inner.setInsertionPointToEnd(&launch.getBody().front());
  gpu::TerminatorOp::create(inner, loc);
  return launch;
}

std::optional<int64_t> staticProduct(ArrayRef<OpFoldResult> sizes) {
  int64_t product = 1;
  for (OpFoldResult size : sizes) {
    std::optional<int64_t> constant = getConstantIntValue(size);
    if (!constant || __builtin_mul_overflow(product, *constant, &product) ||
        product > (int64_t(1) << 62))
      return std::nullopt;
  }
  return product;
}

OpFoldResult multiply(OpBuilder &host, Location loc, ArrayRef<OpFoldResult> sizes) {
  if (std::optional<int64_t> product = staticProduct(sizes))
    return host.getIndexAttr(*product);
  Value result;
  for (OpFoldResult size : sizes) {
    if (isOneInteger(size))
      continue;
    Value value = getValueOrCreateConstantIndexOp(host, loc, size);
    result = result ? arith::MulIOp::create(host, loc, result, value).getResult() : value;
  }
  return result;
}

OpFoldResult divideUp(OpBuilder &host, Location loc, OpFoldResult size, int64_t by) {
  if (by == 1)
    return size;
  if (std::optional<int64_t> constant = getConstantIntValue(size))
    return host.getIndexAttr(llvm::divideCeil(*constant, by));
  Value step = arith::ConstantIndexOp::create(host, loc, by);
  return arith::CeilDivUIOp::create(host, loc, cast<Value>(size), step).getResult();
}

DeviceIndex::DeviceIndex(OpBuilder &builder, Location loc, std::optional<int64_t> bound)
    : builder(builder), loc(loc),
      integer(bound && *bound <= std::numeric_limits<int32_t>::max() ? Type(builder.getI32Type())
                                                                     : builder.getIndexType()) {}

Value DeviceIndex::constant(int64_t value) const {
  return arith::ConstantOp::create(builder, loc, builder.getIntegerAttr(integer, value));
}

Value DeviceIndex::of(OpFoldResult index) const {
  if (std::optional<int64_t> value = getConstantIntValue(index))
    return constant(*value);
  if (integer.isIndex())
    return cast<Value>(index);
  return arith::IndexCastUIOp::create(builder, loc, integer, cast<Value>(index));
}

Value DeviceIndex::toIndex(Value value) const {
  if (integer.isIndex())
    return value;
  return arith::IndexCastUIOp::create(builder, loc, builder.getIndexType(), value);
}

/// Positions are less than 2^31, or than 2^63: no sum and no product of them wraps.
template <typename Op> static Value arithmetic(OpBuilder &builder, Location loc, Value a, Value b) {
  auto flags = arith::IntegerOverflowFlags::nsw | arith::IntegerOverflowFlags::nuw;
  return builder.createOrFold<Op>(loc, a, b, flags);
}

Value DeviceIndex::add(Value a, Value b) const {
  return arithmetic<arith::AddIOp>(builder, loc, a, b);
}
Value DeviceIndex::mul(Value a, Value b) const {
  return arithmetic<arith::MulIOp>(builder, loc, a, b);
}
Value DeviceIndex::div(Value a, Value b) const {
  return builder.createOrFold<arith::DivUIOp>(loc, a, b);
}
Value DeviceIndex::rem(Value a, Value b) const {
  return builder.createOrFold<arith::RemUIOp>(loc, a, b);
}
Value DeviceIndex::less(Value a, Value b) const {
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult, a, b);
}

Value DeviceIndex::globalThread(gpu::LaunchOp launch) const {
  std::optional<int64_t> size = getConstantIntValue(launch.getBlockSizeX());
  return add(mul(of(launch.getBlockIds().x), constant(*size)), of(launch.getThreadIds().x));
}

SmallVector<Value> DeviceIndex::delinearize(Value number, ArrayRef<OpFoldResult> extents) const {
  SmallVector<Value> result(extents.size());
  int first = 0;
  while (first + 1 < static_cast<int>(extents.size()) && isOneInteger(extents[first]))
    ++first;
  for (int i = static_cast<int>(extents.size()) - 1; i >= 0; --i) {
    if (isOneInteger(extents[i])) {
      result[i] = constant(0);
    } else if (i <= first) {
      result[i] = number;
    } else {
      Value extent = of(extents[i]);
      result[i] = rem(number, extent);
      number = div(number, extent);
    }
  }
  return result;
}

} // namespace shardc::cuda
