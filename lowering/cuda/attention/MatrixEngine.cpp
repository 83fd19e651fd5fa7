// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "lowering/cuda/attention/MatrixEngine.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace shardc::cuda {

MatrixEngine::MatrixEngine(AttentionCode &code, const AttentionPlan &plan)
    : AttentionEngine(code, plan) {
  threadsOfRow = 4;
  lane = code.rem(code.thread, 32);
  int64_t rowsOfWarp = plan.rows / (plan.threads / 32);
  // Of 16 rows a thread has two, of 8 columns two neighbours.
  rowPositions.base = code.add(code.mul(code.div(code.thread, 32), rowsOfWarp), code.div(lane, 4));
  for (int64_t i = 0; i < plan.rowsPerThread(); ++i)
    rowPositions.offsets.push_back(i * 8);
  columnPositions = columnsOfLanes(plan.columns);
}

AttentionPositions MatrixEngine::columnsOfLanes(int64_t columns) const {
  AttentionPositions made;
  made.base = code.mul(code.rem(lane, 4), 2);
  made.group = 2;
  for (int64_t j = 0; j < columns / 4; ++j)
    made.offsets.push_back(j / 2 * 8 + j % 2);
  return made;
}

AttentionPositions MatrixEngine::sumColumns(const AttentionColumns &of) const {
  return columnsOfLanes(of.padded / plan.parts);
}

Value MatrixEngine::pack(Value low, Value high) {
  auto wide = VectorType::get({2}, code.type), narrow = VectorType::get({2}, code.element);
  Value pair = vector::FromElementsOp::create(code.builder, code.loc, wide, ValueRange{low, high});
  pair = code.narrow(pair, narrow);
  if (code.element.isF16())
    return pair;
  auto bits = VectorType::get({1}, code.builder.getI32Type());
  return code.elements(vector::BitCastOp::create(code.builder, code.loc, bits, pair)).front();
}

MatrixEngine::Values MatrixEngine::loadSquares(const AttentionTile &tile, Value row, Value column,
                                               bool transposed) {
  auto fragments = VectorType::get({4, 2}, code.element);
  Value loaded =
      nvgpu::LdMatrixOp::create(code.builder, code.loc, fragments, tile.memory,
                                AttentionCode::at(tile, row, column), transposed, /*numTiles=*/4);
  auto bits = VectorType::get({1}, code.builder.getI32Type());
  Values all = code.elements(loaded);
  if (!code.element.isF16())
    for (Value &fragment : all)
      fragment =
          code.elements(vector::BitCastOp::create(code.builder, code.loc, bits, fragment)).front();
  return all;
}

void MatrixEngine::multiply(ValueRange left, ValueRange right, AttentionNumbers &sums, int64_t i,
                            int64_t j) {
  OpBuilder &b = code.builder;
  NVVM::MMATypes type = code.element.isF16() ? NVVM::MMATypes::f16 : NVVM::MMATypes::bf16;
  Values before{sums.at(i, j), sums.at(i, j + 1), sums.at(i + 1, j), sums.at(i + 1, j + 1)};
  auto four = LLVM::LLVMStructType::getLiteral(b.getContext(), SmallVector<Type>(4, code.type));
  Value product = NVVM::MmaOp::create(
      b, code.loc, four, left, right, before, ArrayRef<int64_t>{16, 8, 16}, std::nullopt,
      std::nullopt, std::array<NVVM::MMATypes, 2>{type, type},
      std::array<NVVM::MMALayout, 2>{NVVM::MMALayout::row, NVVM::MMALayout::col});
  for (int64_t e = 0; e < 4; ++e)
    sums.at(i + e / 2, j + e % 2) = LLVM::ExtractValueOp::create(b, code.loc, product, e);
}

AttentionNumbers MatrixEngine::scores(const AttentionTile &left, const AttentionTile &right) {
  AttentionNumbers made;
  made.columns = columnPositions.size();
  made.values.assign(rowPositions.size() * made.columns, code.number(0));
  int64_t rowsOfWarp = plan.rows / (plan.threads / 32);
  // Lane l says where row l % 8 of square l / 8 begins. Squares of the left are ordered by rows,
  // then columns; those of the right are two of columns each for two of rows.
  Value leftRow = code.add(code.mul(code.div(code.thread, 32), rowsOfWarp), code.rem(lane, 16));
  Value leftColumn = code.mul(code.div(lane, 16), 8);
  Value rightRow = code.add(code.mul(code.div(lane, 16), 8), code.rem(lane, 8));
  Value rightColumn = code.mul(code.rem(code.div(lane, 8), 2), 8);
  for (int64_t k = 0; k < left.padded; k += 16) {
    SmallVector<Values> lefts;
    for (int64_t i = 0; i < rowPositions.size(); i += 2)
      lefts.push_back(loadSquares(left, code.add(leftRow, i * 8), code.add(leftColumn, k), false));
    for (int64_t j = 0; j < made.columns; j += 4) {
      Values rights =
          loadSquares(right, code.add(rightRow, j * 4), code.add(rightColumn, k), false);
      for (int64_t i = 0; i < rowPositions.size(); i += 2)
        for (int64_t half = 0; half < 2; ++half)
          multiply(lefts[i / 2], ArrayRef(rights).slice(half * 2, 2), made, i, j + 2 * half);
    }
  }
  return made;
}

void MatrixEngine::accumulate(AttentionNumbers &sums, const AttentionPositions &at,
                              const AttentionNumbers &weights, const AttentionTile &right,
                              Value firstColumn, bool /*isFirst*/) {
  Value rightRow = code.rem(lane, 16), rightColumn = code.mul(code.div(lane, 16), 8);
  if (firstColumn)
    rightColumn = code.add(rightColumn, firstColumn);
  for (int64_t k = 0; k < plan.columns; k += 16) {
    SmallVector<Values> lefts;
    for (int64_t i = 0; i < rowPositions.size(); i += 2) {
      Values &left = lefts.emplace_back();
      for (int64_t part = 0; part < 4; ++part) {
        int64_t row = i + part % 2, column = k / 4 + part / 2 * 2;
        left.push_back(pack(weights.at(row, column), weights.at(row, column + 1)));
      }
    }
    for (int64_t j = 0; j < at.size(); j += 4) {
      Values rights = loadSquares(right, code.add(rightRow, k), code.add(rightColumn, j * 4), true);
      for (int64_t i = 0; i < rowPositions.size(); i += 2)
        for (int64_t half = 0; half < 2; ++half)
          multiply(lefts[i / 2], ArrayRef(rights).slice(half * 2, 2), sums, i, j + 2 * half);
    }
  }
}

} // namespace shardc::cuda
