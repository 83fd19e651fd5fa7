// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "lowering/cuda/attention/AttentionCode.h"

#include "lowering/cuda/Accesses.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"

#include <limits>

using namespace mlir;

namespace shardc::cuda {

AttentionCode::AttentionCode(OpBuilder builder, Location loc, Type element)
    : builder(builder), loc(loc), element(element),
      type(element.isF64() ? element : Type(builder.getF32Type())) {}

Value AttentionCode::less(Value a, Value b) {
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, a, b);
}

Value AttentionCode::both(Value a, Value b) {
  if (!a || !b)
    return a ? a : b;
  return arith::AndIOp::create(builder, loc, a, b);
}

Value AttentionCode::i32(int64_t v) {
  return arith::ConstantIntOp::create(builder, loc, builder.getI32Type(), v);
}

Value AttentionCode::toI32(Value position) {
  return arith::IndexCastOp::create(builder, loc, builder.getI32Type(), position);
}

Value AttentionCode::toIndex(Value number) {
  return arith::IndexCastUIOp::create(builder, loc, builder.getIndexType(), number);
}

Value AttentionCode::dim(Value memref, int64_t d) {
  int64_t size = sizeOf(memref, d);
  return ShapedType::isDynamic(size) ? memref::DimOp::create(builder, loc, memref, d).getResult()
                                     : index(size);
}

int64_t AttentionCode::sizeOf(Value memref, int64_t d) {
  return cast<MemRefType>(memref.getType()).getDimSize(d);
}

Type AttentionCode::elementOf(Value memref) {
  return cast<MemRefType>(memref.getType()).getElementType();
}

//===-- Control -------------------------------------------------------------------------------===//

void AttentionCode::forEach(Value from, Value to, int64_t step, function_ref<void(Value)> body) {
  carry(from, to, step, {}, [&](Value i, ValueRange) {
    body(i);
    return Values();
  });
}

AttentionCode::Values AttentionCode::carry(Value from, Value to, int64_t step, ValueRange init,
                                           function_ref<Values(Value, ValueRange)> body) {
  auto loop = scf::ForOp::create(builder, loc, from, to, index(step), init,
                                 [&](OpBuilder &inner, Location, Value i, ValueRange values) {
                                   OpBuilder::InsertionGuard guard(builder);
                                   builder.setInsertionPointToEnd(inner.getInsertionBlock());
                                   scf::YieldOp::create(builder, loc, body(i, values));
                                 });
  return Values(loop.getResults());
}

void AttentionCode::when(Value condition, function_ref<void()> body,
                         function_ref<void()> otherwise) {
  auto branch = scf::IfOp::create(builder, loc, condition, /*withElseRegion=*/bool(otherwise));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(branch.thenBlock()->getTerminator());
  body();
  if (!otherwise)
    return;
  builder.setInsertionPoint(branch.elseBlock()->getTerminator());
  otherwise();
}

AttentionCode::Values AttentionCode::change(Value condition, ValueRange values,
                                            function_ref<Values()> body) {
  auto inBranch = [&](OpBuilder &inner, function_ref<Values()> make) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToEnd(inner.getInsertionBlock());
    scf::YieldOp::create(builder, loc, make());
  };
  auto branch = scf::IfOp::create(
      builder, loc, condition, [&](OpBuilder &inner, Location) { inBranch(inner, body); },
      [&](OpBuilder &inner, Location) { inBranch(inner, [&] { return Values(values); }); });
  return Values(branch.getResults());
}

void AttentionCode::launch(Value blocks, int64_t threadCount, ArrayRef<Type> shared,
                           function_ref<void(ValueRange)> body, Value parts) {
  awaited = true;
  anyCopies = false;
  Value one = index(1);
  auto op = gpu::LaunchOp::create(builder, loc, blocks, parts ? parts : one, one,
                                  index(threadCount), one, one,
                                  /*dynamicSharedMemorySize=*/nullptr, /*asyncTokenType=*/nullptr,
                                  /*asyncDependencies=*/{}, /*workgroupAttributions=*/shared);
  // Two blocks hide each other's waits, where shared memory lets them be together; for more, ptxas
  // would spill registers of some kernels.
  int64_t bytes = 0;
  for (Type buffer : shared) {
    auto memory = cast<MemRefType>(buffer);
    bytes += memory.getNumElements() * memory.getElementTypeBitWidth() / 8;
  }
  op->setDiscardableAttr(NVVM::NVVMDialect::getMinctasmAttrName(),
                         builder.getI32IntegerAttr(2 * bytes <= kAttentionChipSharedBytes ? 2 : 1));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(&op.getBody().front());
  thread = op.getThreadIds().x;
  block = op.getBlockIds().x;
  part = op.getBlockIds().y;
  threads = threadCount;
  body(Values(op.getWorkgroupAttributions()));
  gpu::TerminatorOp::create(builder, loc);
}

void AttentionCode::barrier() { gpu::BarrierOp::create(builder, loc); }

void AttentionCode::syncWarp() { NVVM::SyncWarpOp::create(builder, loc, i32(-1)); }

//===-- Numbers -------------------------------------------------------------------------------===//

Value AttentionCode::number(double v) {
  return arith::ConstantOp::create(builder, loc, builder.getFloatAttr(type, v));
}

Value AttentionCode::minusInfinity() { return number(-std::numeric_limits<double>::infinity()); }

Value AttentionCode::fma(Value a, Value b, Value c) {
  return math::FmaOp::create(builder, loc, a, b, c);
}

Value AttentionCode::exp2(Value v) {
  if (element == type)
    return math::Exp2Op::create(builder, loc, v);
  return LLVM::CallIntrinsicOp::create(builder, loc, type,
                                       builder.getStringAttr("llvm.nvvm.ex2.approx.ftz.f32"), v)
      .getResult(0);
}

Value AttentionCode::log2(Value v) { return math::Log2Op::create(builder, loc, v); }

Value AttentionCode::shuffle(Value v, int64_t bits) {
  if (v.getType().getIntOrFloatBitWidth() == 32)
    return gpu::ShuffleOp::create(builder, loc, v, i32(bits), i32(32), gpu::ShuffleMode::XOR)
        .getShuffleResult();
  // Halves of 32 bits.
  Type half = builder.getI32Type();
  auto pair = VectorType::get({1}, v.getType()), halves = VectorType::get({2}, half);
  Value split = vector::BitCastOp::create(
      builder, loc, halves, vector::FromElementsOp::create(builder, loc, pair, v).getResult());
  Values moved;
  for (Value part : elements(split))
    moved.push_back(shuffle(part, bits));
  Value joined = vector::FromElementsOp::create(builder, loc, halves, moved);
  return elements(vector::BitCastOp::create(builder, loc, pair, joined)).front();
}

Value AttentionCode::wide(Value v) { return narrow(v, type); }

Value AttentionCode::narrow(Value v, Type to) {
  Type from = getElementTypeOrSelf(v.getType());
  if (from == getElementTypeOrSelf(to))
    return v;
  if (from.getIntOrFloatBitWidth() < getElementTypeOrSelf(to).getIntOrFloatBitWidth())
    return arith::ExtFOp::create(builder, loc, to, v);
  return arith::TruncFOp::create(builder, loc, to, v);
}

//===-- Memory --------------------------------------------------------------------------------===//

Value AttentionCode::load(Value memref, ValueRange at) {
  return memref::LoadOp::create(builder, loc, memref, at);
}

void AttentionCode::store(Value v, Value memref, ValueRange at) {
  memref::StoreOp::create(builder, loc, v, memref, at);
}

static llvm::MaybeAlign alignmentOf(Type element, int64_t count) {
  return llvm::Align(count * element.getIntOrFloatBitWidth() / 8);
}

Value AttentionCode::loadVector(Value memref, ValueRange at, int64_t count) {
  Type of = elementOf(memref);
  return vector::LoadOp::create(builder, loc, VectorType::get({count}, of), memref, at,
                                /*nontemporal=*/false, alignmentOf(of, count));
}

void AttentionCode::storeVector(Value v, Value memref, ValueRange at) {
  auto vector = cast<VectorType>(v.getType());
  vector::StoreOp::create(builder, loc, v, memref, at, /*nontemporal=*/false,
                          alignmentOf(vector.getElementType(), vector.getNumElements()));
}

AttentionCode::Values AttentionCode::elements(Value vector) {
  Values all;
  for (int64_t i = 0; i < cast<VectorType>(vector.getType()).getDimSize(0); ++i)
    all.push_back(vector::ExtractOp::create(builder, loc, vector, i));
  return all;
}

Value AttentionCode::together(ValueRange numbers) {
  auto vector = VectorType::get({static_cast<int64_t>(numbers.size())}, numbers.front().getType());
  return vector::FromElementsOp::create(builder, loc, vector, numbers);
}

AttentionMatrix AttentionCode::matrix(Value memory, Value batch, Value head, int64_t heads) {
  auto memoryType = cast<MemRefType>(memory.getType());
  SmallVector<int64_t> known;
  int64_t offset;
  [[maybe_unused]] LogicalResult strided = memoryType.getStridesAndOffset(known, offset);
  assert(succeeded(strided) && offset == 0 && "not the argument of a kernel");
  auto metadata = memref::ExtractStridedMetadataOp::create(builder, loc, memory);
  auto stride = [&](int64_t d) -> Value {
    return ShapedType::isDynamic(known[d]) ? metadata.getStrides()[d] : index(known[d]);
  };
  Value start = add(mul(batch, stride(0)), mul(head, stride(1)));
  AttentionMatrix made;
  made.columns = memoryType.getDimSize(3);
  made.heads = heads;
  SmallVector<int64_t> sizes, steps;
  SmallVector<OpFoldResult> dims, strides;
  for (int64_t d : {2, 1, 3}) {
    if (d == 1 && heads == 1)
      continue;
    sizes.push_back(d == 1 ? heads : memoryType.getDimSize(d));
    steps.push_back(known[d]);
    dims.push_back(getAsOpFoldResult(d == 1 ? index(heads) : dim(memory, d)));
    strides.push_back(getAsOpFoldResult(stride(d)));
  }
  auto layout = StridedLayoutAttr::get(builder.getContext(), ShapedType::kDynamic, steps);
  made.memory = memref::ReinterpretCastOp::create(
      builder, loc, MemRefType::get(sizes, memoryType.getElementType(), layout), memory, start,
      dims, strides);
  int64_t bytes = memoryType.getElementTypeBitWidth() / 8;
  if (known.back() != 1 || made.columns <= 0 || made.columns * bytes % 16 != 0)
    return made;
  Value address = memref::ExtractAlignedPointerAsIndexOp::create(builder, loc, memory);
  address = add(address, mul(start, bytes));
  Value bits = fold<arith::OrIOp>(address, mul(stride(2), bytes));
  if (heads > 1)
    bits = fold<arith::OrIOp>(bits, mul(stride(1), bytes));
  made.aligned = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq,
                                       fold<arith::AndIOp>(bits, index(15)), index(0));
  return made;
}

AttentionCode::Values AttentionCode::at(const AttentionMatrix &matrix, Value row, Value column) {
  if (matrix.heads == 1)
    return {row, column};
  return {div(row, matrix.heads), rem(row, matrix.heads), column};
}

Type AttentionCode::tileType(int64_t stages, int64_t rows, const AttentionColumns &columns) const {
  return sharedMemory({stages, rows, columns.stride}, element);
}

AttentionCode::Values AttentionCode::at(const AttentionTile &tile, Value row, Value column) {
  return {tile.stage, row, column};
}

int64_t AttentionCode::piece() const { return 128 / element.getIntOrFloatBitWidth(); }

void AttentionCode::eachPiece(int64_t rows, int64_t pieces, Value first, Value end,
                              function_ref<void(Value, Value)> body,
                              function_ref<void(Value, Value)> beyond) {
  bool fixed = threads % pieces == 0; // the column of a thread
  int64_t step = fixed ? threads / pieces : threads, count = fixed ? rows : rows * pieces;
  Value own = fixed ? div(thread, pieces) : thread;
  Value column = fixed ? rem(thread, pieces) : Value();
  // The rows that there are, in 32 bits.
  Value limit = toI32(maximum(minimum(sub(end, first), index(rows)), index(0)));
  Value turns = index((count + step - 1) / step);
  auto loop = scf::ForOp::create(builder, loc, index(0), turns, index(1));
  // Addresses of unrolled copies would take registers from the products.
  auto rolled = LLVM::LoopUnrollAttr::get(builder.getContext(), builder.getBoolAttr(true), {}, {},
                                          {}, {}, {}, {});
  loop->setAttr("llvm.loop_annotation",
                LLVM::LoopAnnotationAttr::get(builder.getContext(), {}, {}, {}, rolled, {}, {}, {},
                                              {}, {}, {}, {}, {}, {}, {}, {}));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(loop.getBody());
  Value i = add(own, mul(loop.getInductionVar(), step));
  auto visit = [&] {
    Value row = fixed ? i : div(i, pieces), at = fixed ? column : rem(i, pieces);
    Value inside =
        arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, toI32(row), limit);
    if (beyond)
      when(inside, [&] { body(row, at); }, [&] { beyond(row, at); });
    else
      when(inside, [&] { body(row, at); });
  };
  if (count % step == 0)
    visit();
  else
    when(less(i, index(count)), visit);
}

void AttentionCode::byAlignment(const AttentionMatrix &matrix, function_ref<void()> quick,
                                function_ref<void()> slow) {
  if (!matrix.aligned)
    return slow();
  when(matrix.aligned, quick, [&] {
    Value number = thread;
    thread = computedHere(thread);
    slow();
    thread = number;
  });
}

void AttentionCode::copyIn(const AttentionMatrix &from, const AttentionTile &to, Value first,
                           Value end) {
  auto copy = [&](int64_t count) {
    Type some = count == 1 ? element : Type(VectorType::get({count}, element));
    auto clear = [&](Value row, Value which) {
      Value zeros = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(some));
      Values place = at(to, row, mul(which, count));
      count == 1 ? store(zeros, to.memory, place) : storeVector(zeros, to.memory, place);
    };
    auto copyPiece = [&](Value row, Value which) {
      Value column = mul(which, count);
      Values place = at(to, row, column), source = at(from, add(first, row), column);
      if (count == 1)
        return store(load(from.memory, source), to.memory, place);
      awaited = false;
      anyCopies = true;
      nvgpu::DeviceAsyncCopyOp::create(
          builder, loc, nvgpu::DeviceAsyncTokenType::get(builder.getContext()), to.memory, place,
          from.memory, source, builder.getIndexAttr(count), /*srcElements=*/Value(),
          builder.getUnitAttr());
    };
    auto copyRow = [&](Value row, Value which) {
      if (to.padded == from.columns)
        return copyPiece(row, which);
      when(
          less(mul(which, count), index(from.columns)), [&] { copyPiece(row, which); },
          [&] { clear(row, which); });
    };
    eachPiece(to.rows, to.padded / count, first, end, copyRow, clear);
  };
  byAlignment(from, [&] { copy(piece()); }, [&] { copy(1); });
}

void AttentionCode::awaitCopies(bool all) {
  if (all ? !anyCopies : awaited)
    return;
  awaited = true;
  NVVM::CpAsyncCommitGroupOp::create(builder, loc);
  NVVM::CpAsyncWaitGroupOp::create(builder, loc, 0);
}

void AttentionCode::copyOut(const AttentionTile &from, const AttentionMatrix &to, Value first,
                            Value end, Value firstColumn, int64_t columns) {
  if (to.columns == 0)
    return;
  auto copy = [&](int64_t count) {
    auto copyPiece = [&](Value row, Value which) {
      Value column = add(firstColumn, mul(which, count));
      Values source = at(from, row, column), place = at(to, add(first, row), column);
      auto move = [&] {
        if (count == 1)
          store(load(from.memory, source), to.memory, place);
        else
          storeVector(loadVector(from.memory, source, count), to.memory, place);
      };
      // Of several parts only the first begins at 0.
      if (columns == to.columns && matchPattern(firstColumn, m_Zero()))
        move();
      else
        when(less(column, index(to.columns)), move);
    };
    eachPiece(from.rows, columns / count, first, end, copyPiece, {});
  };
  byAlignment(to, [&] { copy(piece()); }, [&] { copy(1); });
}

} // namespace shardc::cuda
