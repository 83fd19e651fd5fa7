// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "lowering/cpu/AttentionTiles.h"

#include "dialects/exec/Exec.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <limits>

using namespace mlir;

namespace shardc::cpu {

AttentionTiles::AttentionTiles(func::FuncOp kernel, const AttentionOptions &options,
                               const target::Limits &limits, Type element)
    : options(options), loc(kernel.getLoc()), builder(kernel.getContext()) {
  builder.setInsertionPointToStart(&kernel.getBody().front());
  type = element.isF64() ? element : builder.getF32Type();
  lanes = std::max<int64_t>(1, limits.vectorBytes * 8 / type.getIntOrFloatBitWidth());
  // Accumulators of kMicroRows x mostVectors, a row of vectors and one operand are in registers.
  mostVectors = std::max<int64_t>(1, (limits.vectorRegisters - 1) / (kMicroRows + 1));
  vectorType = VectorType::get({lanes}, type);
}

//===-- Words ---------------------------------------------------------------------------------===//

Value AttentionTiles::dim(Value memref, int64_t d) {
  int64_t size = sizeOf(memref, d);
  return ShapedType::isDynamic(size) ? memref::DimOp::create(builder, loc, memref, d).getResult()
                                     : index(size);
}

int64_t AttentionTiles::sizeOf(Value memref, int64_t d) {
  return cast<MemRefType>(memref.getType()).getDimSize(d);
}

bool AttentionTiles::isUnit(Value memref) {
  SmallVector<int64_t> strides;
  int64_t offset;
  return succeeded(cast<MemRefType>(memref.getType()).getStridesAndOffset(strides, offset)) &&
         strides.back() == 1;
}

Type AttentionTiles::elementOf(Value memref) {
  return cast<MemRefType>(memref.getType()).getElementType();
}

void AttentionTiles::forEach(Value from, Value to, int64_t step, function_ref<void(Value)> body) {
  scf::ForOp::create(builder, loc, from, to, index(step), ValueRange(),
                     [&](OpBuilder &inner, Location, Value i, ValueRange) {
                       OpBuilder::InsertionGuard guard(builder);
                       builder.setInsertionPointToEnd(inner.getInsertionBlock());
                       body(i);
                       scf::YieldOp::create(builder, loc);
                     });
}

AttentionTiles::Values AttentionTiles::carry(Value from, Value to, int64_t step, ValueRange init,
                                             function_ref<Values(Value, ValueRange)> body) {
  auto loop = scf::ForOp::create(builder, loc, from, to, index(step), init,
                                 [&](OpBuilder &inner, Location, Value i, ValueRange values) {
                                   OpBuilder::InsertionGuard guard(builder);
                                   builder.setInsertionPointToEnd(inner.getInsertionBlock());
                                   scf::YieldOp::create(builder, loc, body(i, values));
                                 });
  return Values(loop.getResults());
}

void AttentionTiles::forEachTask(Value count, function_ref<void(Value)> body) {
  auto loop = exec::ParallelOp::create(builder, loc, count, /*grain=*/1);
  if (loop.getBody().empty())
    loop.getBody().emplaceBlock().addArgument(builder.getIndexType(), loc);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(&loop.getBody().front());
  body(loop.getInductionVariable());
}

Value AttentionTiles::number(double v) {
  return arith::ConstantOp::create(builder, loc, builder.getFloatAttr(type, v));
}

Value AttentionTiles::infinity() { return number(-std::numeric_limits<double>::infinity()); }

Value AttentionTiles::splat(Value scalar) {
  return vector::BroadcastOp::create(builder, loc, vectorType, scalar);
}

Value AttentionTiles::load(Value memref, ValueRange at) {
  return memref::LoadOp::create(builder, loc, memref, at);
}

void AttentionTiles::store(Value v, Value memref, ValueRange at) {
  memref::StoreOp::create(builder, loc, v, memref, at);
}

Value AttentionTiles::loadVector(Value memref, ValueRange at) {
  return vector::LoadOp::create(builder, loc, vectorType, memref, at);
}

void AttentionTiles::storeVector(Value v, Value memref, ValueRange at) {
  vector::StoreOp::create(builder, loc, v, memref, at);
}

Value AttentionTiles::loadWide(Value memref, ValueRange at) {
  Value v = load(memref, at);
  return v.getType() == type ? v : arith::ExtFOp::create(builder, loc, type, v);
}

Value AttentionTiles::loadWideVector(Value memref, ValueRange at) {
  auto narrow = VectorType::get({lanes}, elementOf(memref));
  Value v = vector::LoadOp::create(builder, loc, narrow, memref, at);
  return narrow == vectorType ? v : arith::ExtFOp::create(builder, loc, vectorType, v);
}

void AttentionTiles::storeNarrow(Value v, Value memref, ValueRange at) {
  Type element = elementOf(memref);
  store(element == type ? v : arith::TruncFOp::create(builder, loc, element, v), memref, at);
}

Value AttentionTiles::buffer(ArrayRef<int64_t> shape, ValueRange dynamic) {
  return memref::AllocOp::create(builder, loc, MemRefType::get(shape, type), dynamic);
}

Value AttentionTiles::buffer(Value rows, Value columns) {
  SmallVector<int64_t> shape;
  Values dynamic;
  for (Value size : {rows, columns}) {
    std::optional<int64_t> known = getConstantIntValue(size);
    shape.push_back(known.value_or(ShapedType::kDynamic));
    if (!known)
      dynamic.push_back(size);
  }
  return buffer(shape, dynamic);
}

void AttentionTiles::clearRow(Value target, Value row, Value columns) {
  forEach(index(0), columns, lanes,
          [&](Value c) { storeVector(splat(number(0)), target, {row, c}); });
}

//===-- Tiles ---------------------------------------------------------------------------------===//

int64_t AttentionTiles::vectorsFor(int64_t columns) const {
  if (ShapedType::isDynamic(columns))
    return mostVectors;
  int64_t best = mostVectors;
  for (int64_t vectors = mostVectors - 1; vectors > 0; --vectors)
    if (roundedUp(columns, vectors * lanes) < roundedUp(columns, best * lanes))
      best = vectors;
  return best;
}

void AttentionTiles::chooseTiles(Value query, Value key) {
  queryCount = dim(query, 2);
  keyCount = dim(key, 2);
  int64_t queryRows = sizeOf(query, 2), allKeys = sizeOf(key, 2);
  microRows = kMicroRows;
  if (!ShapedType::isDynamic(queryRows))
    microRows = std::clamp<int64_t>(queryRows, 1, kMicroRows);
  keyVectors = vectorsFor(ShapedType::isDynamic(allKeys) ? allKeys : std::min(allKeys, kKeys));
  mostRows = roundedUp(kRows, microRows);
  if (!ShapedType::isDynamic(queryRows))
    mostRows = std::min(mostRows, roundedUp(queryRows, microRows));
  mostKeys = roundedUp(kKeys, keyVectors * lanes);
  if (!ShapedType::isDynamic(allKeys))
    mostKeys = std::min(mostKeys, roundedUp(allKeys, keyVectors * lanes));
  mostRows = std::max<int64_t>(mostRows, microRows);
  mostKeys = std::max(mostKeys, keyVectors * lanes);
}

std::pair<Value, Value> AttentionTiles::splitRows(Value rowCount) {
  Value tiles = ceilDivide(rowCount, index(kRows));
  return {tiles, roundUp(ceilDivide(rowCount, atLeastOne(tiles)), microRows)};
}

void AttentionTiles::enterRows(Value tile, Value tileRows, Value rowCount) {
  firstRow = mul(tile, tileRows);
  // Rounding up may leave nothing to the last tiles.
  rows = fold<arith::MaxSIOp>(index(0), minimum(tileRows, sub(rowCount, firstRow)));
  paddedRows = roundUp(rows, microRows);
}

Value AttentionTiles::seenBy(Value rows, Value end) {
  // Where there is no key, nobody has to find out when it runs.
  if (!options.isCausal || (end && getConstantIntValue(end) == 0))
    return end;
  Value seen = firstQuery ? add(rows, firstQuery) : rows;
  return end ? minimum(end, seen) : seen;
}

void AttentionTiles::enterKeys(Value first, Value end) {
  firstKey = first;
  keyTile = minimum(index(mostKeys), sub(end, first));
  paddedKeys = roundUp(keyTile, keyVectors * lanes);
}

void AttentionTiles::packTransposed(Value source, Value target, Value columns) {
  Value squareKeys = index(0), squareColumns = index(0);
  if (isUnit(source)) {
    auto whole = [&](Value size) {
      return mul(fold<arith::DivUIOp>(size, index(lanes)), index(lanes));
    };
    squareKeys = whole(keyTile);
    squareColumns = whole(columns);
    forEach(index(0), squareKeys, lanes, [&](Value j) {
      forEach(index(0), squareColumns, lanes,
              [&](Value c) { transposeSquare(source, target, j, c); });
    });
  }
  auto copy = [&](Value j, Value c) {
    store(loadWide(source, {batch, keyHead, add(firstKey, j), c}), target, {c, j});
  };
  forEach(index(0), squareKeys, 1,
          [&](Value j) { forEach(squareColumns, columns, 1, [&](Value c) { copy(j, c); }); });
  forEach(squareKeys, keyTile, 1,
          [&](Value j) { forEach(index(0), columns, 1, [&](Value c) { copy(j, c); }); });
  forEach(index(0), columns, 1, [&](Value c) {
    forEach(keyTile, paddedKeys, 1, [&](Value j) { store(number(0), target, {c, j}); });
  });
}

/// Swaps the off-diagonal halves of ever smaller squares.
void AttentionTiles::transposeSquare(Value source, Value target, Value j, Value c) {
  Values rowsOf;
  for (int64_t i = 0; i < lanes; ++i)
    rowsOf.push_back(loadWideVector(source, {batch, keyHead, add(firstKey, add(j, index(i))), c}));
  for (int64_t half = lanes / 2; half > 0; half /= 2) {
    SmallVector<int64_t> low, high; // of the concatenation of two rows
    for (int64_t i = 0; i < lanes; ++i) {
      low.push_back(i & half ? lanes + i - half : i);
      high.push_back(i & half ? lanes + i : i + half);
    }
    for (int64_t i = 0; i < lanes; ++i) {
      if (i & half)
        continue;
      Value a = rowsOf[i], b = rowsOf[i + half];
      rowsOf[i] = vector::ShuffleOp::create(builder, loc, a, b, low);
      rowsOf[i + half] = vector::ShuffleOp::create(builder, loc, a, b, high);
    }
  }
  for (int64_t i = 0; i < lanes; ++i)
    storeVector(rowsOf[i], target, {add(c, index(i)), j});
}

void AttentionTiles::packRows(Value source, Value target, Value columns, Value paddedColumns) {
  forEach(index(0), keyTile, 1, [&](Value j) {
    forEach(index(0), columns, 1, [&](Value c) {
      store(loadWide(source, {batch, keyHead, add(firstKey, j), c}), target, {j, c});
    });
    forEach(columns, paddedColumns, 1, [&](Value c) { store(number(0), target, {j, c}); });
  });
}

void AttentionTiles::packQueries(Value source, Value target, Value columns, Value paddedColumns,
                                 double scale) {
  Value zero = number(0);
  forEach(index(0), paddedRows, 1, [&](Value r) {
    Value isReal = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, r, rows);
    Value row = add(firstRow, fold<arith::MaxSIOp>(index(0), minimum(r, sub(rows, index(1)))));
    forEach(index(0), columns, 1, [&](Value c) {
      Value v = loadWide(source, {batch, head, row, c});
      if (scale != 1)
        v = fmul(v, number(scale));
      store(arith::SelectOp::create(builder, loc, isReal, v, zero), target, {r, c});
    });
    forEach(columns, paddedColumns, 1, [&](Value c) { store(zero, target, {r, c}); });
  });
}

void AttentionTiles::multiply(const Product &product) {
  int64_t vectors = product.vectors;
  forEach(index(0), product.rows, product.microRows, [&](Value r0) {
    forEach(index(0), product.columns, vectors * lanes, [&](Value c0) {
      auto eachAccumulator = [&](auto visit) {
        for (int64_t r = 0; r < product.microRows; ++r)
          for (int64_t v = 0; v < vectors; ++v) {
            Value row = add(r0, index(r));
            if (product.firstRow)
              row = add(product.firstRow, row);
            visit(r * vectors + v, row, add(c0, index(v * lanes)));
          }
      };
      Values accumulators(product.microRows * vectors);
      eachAccumulator([&](int64_t i, Value r, Value column) {
        accumulators[i] =
            product.accumulate ? loadVector(product.into, {r, column}) : splat(number(0));
      });
      accumulators =
          carry(index(0), product.inner, 1, accumulators, [&](Value k, ValueRange carried) {
            Values next(carried), right;
            for (int64_t v = 0; v < vectors; ++v)
              right.push_back(product.right(k, add(c0, index(v * lanes))));
            for (int64_t r = 0; r < product.microRows; ++r) {
              Value left = splat(product.left(add(r0, index(r)), k));
              for (int64_t v = 0; v < vectors; ++v) {
                Value &sum = next[r * vectors + v];
                sum = vector::FMAOp::create(builder, loc, left, right[v], sum);
              }
            }
            return next;
          });
      eachAccumulator([&](int64_t i, Value r, Value column) {
        storeVector(accumulators[i], product.into, {r, column});
      });
    });
  });
}

void AttentionTiles::hide(Value scores, Value r) {
  Value row = add(firstRow, r);
  if (mask) {
    bool isBool = elementOf(mask).isInteger();
    forEach(index(0), keyTile, 1, [&](Value j) {
      Values at{batch, head, row, add(firstKey, j)};
      Value score = load(scores, {r, j});
      if (isBool) {
        Value seen = load(mask, at);
        Value zero = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(seen.getType()));
        seen = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, seen, zero);
        score = arith::SelectOp::create(builder, loc, seen, score, infinity());
      } else {
        Value added = load(mask, at);
        if (added.getType() != type)
          added = added.getType().getIntOrFloatBitWidth() < type.getIntOrFloatBitWidth()
                      ? Value(arith::ExtFOp::create(builder, loc, type, added))
                      : Value(arith::TruncFOp::create(builder, loc, type, added));
        score = fadd(score, added);
      }
      store(score, scores, {r, j});
    });
  }
  Value seen = keyTile;
  if (options.isCausal)
    seen = arith::MaxSIOp::create(builder, loc, index(0),
                                  minimum(seen, sub(seenBy(add(row, index(1))), firstKey)));
  forEach(seen, paddedKeys, 1, [&](Value j) { store(infinity(), scores, {r, j}); });
}

} // namespace shardc::cpu
