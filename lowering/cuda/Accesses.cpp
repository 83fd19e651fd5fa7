// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/cuda/Accesses.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace shardc::cuda {

int64_t bytesOfElement(Type element) {
  return llvm::divideCeil(element.getIntOrFloatBitWidth(), 8);
}

MemRefType sharedMemory(ArrayRef<int64_t> shape, Type element) {
  auto space = gpu::AddressSpaceAttr::get(element.getContext(), gpu::AddressSpace::Workgroup);
  return MemRefType::get(shape, element, MemRefLayoutAttrInterface(), space);
}

/// Whether the low bits of an index, those below the power of two `factor`, are 0.
static Value hasZeroBits(OpBuilder &builder, Location loc, Value index, int64_t factor) {
  Value mask = arith::ConstantIndexOp::create(builder, loc, factor - 1);
  Value bits = arith::AndIOp::create(builder, loc, index, mask);
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, bits, zero);
}

Value isAligned(OpBuilder &builder, Location loc, Value memory, int64_t bytes) {
  Value address = memref::ExtractAlignedPointerAsIndexOp::create(builder, loc, memory);
  return hasZeroBits(builder, loc, address, bytes);
}

Value isMultiple(OpBuilder &builder, Location loc, OpFoldResult size, int64_t factor) {
  if (std::optional<int64_t> constant = getConstantIntValue(size))
    return arith::ConstantIntOp::create(builder, loc, *constant % factor == 0, 1);
  return hasZeroBits(builder, loc, cast<Value>(size), factor);
}

Value flatView(OpBuilder &builder, Location loc, Value memory, OpFoldResult size) {
  auto from = cast<MemRefType>(memory.getType());
  std::optional<int64_t> constant = getConstantIntValue(size);
  auto type = MemRefType::get(constant ? *constant : ShapedType::kDynamic, from.getElementType(),
                              MemRefLayoutAttrInterface(), from.getMemorySpace());
  if (memory.getType() == type)
    return memory;
  if (constant) // which may be a value that is a constant
    size = builder.getIndexAttr(*constant);
  return memref::ReinterpretCastOp::create(builder, loc, type, memory, builder.getIndexAttr(0),
                                           ArrayRef<OpFoldResult>(size),
                                           ArrayRef<OpFoldResult>(builder.getIndexAttr(1)));
}

int64_t accessLanes(Type element, int64_t count) {
  return std::min(count, kVectorBytes / bytesOfElement(element));
}

/// The positions, `lanes` further along the last dim.
static SmallVector<Value> shifted(OpBuilder &builder, Location loc, ValueRange positions,
                                  int64_t lanes) {
  SmallVector<Value> result(positions);
  if (lanes == 0)
    return result;
  Value more = arith::ConstantIndexOp::create(builder, loc, lanes);
  result.back() = arith::AddIOp::create(builder, loc, result.back(), more);
  return result;
}

SmallVector<Value> loadVectors(OpBuilder &builder, Location loc, Value memory, ValueRange positions,
                               int64_t count) {
  Type element = cast<MemRefType>(memory.getType()).getElementType();
  int64_t lanes = accessLanes(element, count);
  SmallVector<Value> result;
  for (int64_t first = 0; first < count; first += lanes)
    result.push_back(vector::LoadOp::create(builder, loc, VectorType::get(lanes, element), memory,
                                            shifted(builder, loc, positions, first),
                                            /*nontemporal=*/false,
                                            llvm::MaybeAlign(lanes * bytesOfElement(element))));
  return result;
}

SmallVector<Value> loadLanes(OpBuilder &builder, Location loc, Value memory, ValueRange positions,
                             int64_t count) {
  Type element = cast<MemRefType>(memory.getType()).getElementType();
  int64_t lanes = accessLanes(element, count);
  SmallVector<Value> result;
  if (lanes == 1) {
    for (int64_t lane = 0; lane < count; ++lane)
      result.push_back(
          memref::LoadOp::create(builder, loc, memory, shifted(builder, loc, positions, lane)));
    return result;
  }
  for (Value vector : loadVectors(builder, loc, memory, positions, count))
    for (int64_t lane = 0; lane < lanes; ++lane)
      result.push_back(vector::ExtractOp::create(builder, loc, vector, lane));
  return result;
}

void storeLanes(OpBuilder &builder, Location loc, ValueRange values, Value memory,
                ValueRange positions) {
  Type element = cast<MemRefType>(memory.getType()).getElementType();
  int64_t count = values.size(), lanes = accessLanes(element, count);
  for (int64_t first = 0; first < count; first += lanes) {
    SmallVector<Value> at = shifted(builder, loc, positions, first);
    if (lanes == 1) {
      memref::StoreOp::create(builder, loc, values[first], memory, at);
      continue;
    }
    Value vector = vector::FromElementsOp::create(builder, loc, VectorType::get(lanes, element),
                                                  values.slice(first, lanes));
    vector::StoreOp::create(builder, loc, vector, memory, at, /*nontemporal=*/false,
                            llvm::MaybeAlign(lanes * bytesOfElement(element)));
  }
}

} // namespace shardc::cuda
