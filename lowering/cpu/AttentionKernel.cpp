// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "lowering/cpu/AttentionKernel.h"

#include "dialects/exec/Exec.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <limits>

using namespace mlir;

namespace shardc::cpu {
namespace {

constexpr int64_t kRows = 96;     // most queries of a tile
constexpr int64_t kKeys = 256;    // most keys of a tile
constexpr int64_t kMicroRows = 6; // of the inner product

int64_t roundedUp(int64_t a, int64_t to) { return (a + to - 1) / to * to; }

class AttentionBuilder {
public:
  AttentionBuilder(func::FuncOp kernel, const AttentionOptions &options,
                   const target::Limits &limits)
      : options(options), loc(kernel.getLoc()), builder(kernel.getContext()) {
    Block &block = kernel.getBody().front();
    query = block.getArgument(0);
    key = block.getArgument(1);
    value = block.getArgument(2);
    mask = options.hasMask ? block.getArgument(3) : Value();
    result = block.getArguments().back();
    Type element = cast<MemRefType>(query.getType()).getElementType();
    type = element.isF64() ? element : builder.getF32Type();
    lanes = std::max<int64_t>(1, limits.vectorBytes * 8 / type.getIntOrFloatBitWidth());
    // Accumulators of kMicroRows x mostVectors, a row of vectors and one operand are in registers.
    mostVectors = std::max<int64_t>(1, (limits.vectorRegisters - 1) / (kMicroRows + 1));
    vectorType = VectorType::get({lanes}, type);
    builder.setInsertionPointToStart(&block);
  }

  void build() {
    Value batches = dim(query, 0);
    heads = dim(query, 1);
    rowCount = dim(query, 2);
    depth = dim(query, 3);
    keyCount = dim(key, 2);
    width = dim(value, 3);
    chooseTiles();
    // Queries per key head.
    Value keyHeads = dim(key, 1);
    Value share = atLeastOne(fold<arith::DivUIOp>(heads, atLeastOne(keyHeads)));
    Value tiles = ceilDivide(rowCount, index(kRows));
    // Tiles of about the same size.
    Value tileRows = roundUp(ceilDivide(rowCount, atLeastOne(tiles)), microRows);
    Value count = mul(mul(batches, heads), tiles);
    auto loop = exec::ParallelOp::create(builder, loc, count, /*grain=*/1);
    if (loop.getBody().empty())
      loop.getBody().emplaceBlock().addArgument(builder.getIndexType(), loc);
    {
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointToStart(&loop.getBody().front());
      Value task = loop.getInductionVariable();
      Value tile = arith::RemUIOp::create(builder, loc, task, tiles);
      Value matrix = arith::DivUIOp::create(builder, loc, task, tiles);
      head = arith::RemUIOp::create(builder, loc, matrix, heads);
      batch = arith::DivUIOp::create(builder, loc, matrix, heads);
      keyHead = arith::DivUIOp::create(builder, loc, head, share);
      firstRow = mul(tile, tileRows);
      // Rounding up may leave nothing to the last tiles.
      rows = fold<arith::MaxSIOp>(index(0), minimum(tileRows, sub(rowCount, firstRow)));
      buildTile();
    }
    func::ReturnOp::create(builder, loc);
  }

private:
  // Small words for index arithmetic and loops.
  Value index(int64_t v) { return arith::ConstantIndexOp::create(builder, loc, v); }
  template <typename Op> Value fold(Value a, Value b) {
    return builder.createOrFold<Op>(loc, a, b);
  }
  Value add(Value a, Value b) { return fold<arith::AddIOp>(a, b); }
  Value sub(Value a, Value b) { return fold<arith::SubIOp>(a, b); }
  Value mul(Value a, Value b) { return fold<arith::MulIOp>(a, b); }
  Value minimum(Value a, Value b) { return fold<arith::MinSIOp>(a, b); }
  Value atLeastOne(Value a) { return fold<arith::MaxUIOp>(a, index(1)); }
  Value ceilDivide(Value a, Value b) { return fold<arith::CeilDivUIOp>(a, b); }
  Value roundUp(Value a, int64_t to) { return mul(ceilDivide(a, index(to)), index(to)); }
  Value dim(Value memref, int64_t d) {
    int64_t size = sizeOf(memref, d);
    return ShapedType::isDynamic(size) ? memref::DimOp::create(builder, loc, memref, d).getResult()
                                       : index(size);
  }
  static int64_t sizeOf(Value memref, int64_t d) {
    return cast<MemRefType>(memref.getType()).getDimSize(d);
  }
  /// Whether the last dim is dense.
  static bool isUnit(Value memref) {
    SmallVector<int64_t> strides;
    int64_t offset;
    return succeeded(cast<MemRefType>(memref.getType()).getStridesAndOffset(strides, offset)) &&
           strides.back() == 1;
  }
  static Type elementOf(Value memref) {
    return cast<MemRefType>(memref.getType()).getElementType();
  }
  Value number(double v) {
    return arith::ConstantOp::create(builder, loc, builder.getFloatAttr(type, v));
  }
  Value splat(Value scalar) {
    return vector::BroadcastOp::create(builder, loc, vectorType, scalar);
  }
  Value infinity() { return number(-std::numeric_limits<double>::infinity()); }

  void forEach(Value from, Value to, int64_t step, llvm::function_ref<void(Value)> body) {
    scf::ForOp::create(builder, loc, from, to, index(step), ValueRange(),
                       [&](OpBuilder &inner, Location, Value i, ValueRange) {
                         OpBuilder::InsertionGuard guard(builder);
                         builder.setInsertionPointToEnd(inner.getInsertionBlock());
                         body(i);
                         scf::YieldOp::create(builder, loc);
                       });
  }
  /// A loop that carries values; `body` returns the next ones.
  SmallVector<Value> carry(Value from, Value to, int64_t step, ValueRange init,
                           llvm::function_ref<SmallVector<Value>(Value, ValueRange)> body) {
    auto loop = scf::ForOp::create(builder, loc, from, to, index(step), init,
                                   [&](OpBuilder &inner, Location, Value i, ValueRange values) {
                                     OpBuilder::InsertionGuard guard(builder);
                                     builder.setInsertionPointToEnd(inner.getInsertionBlock());
                                     scf::YieldOp::create(builder, loc, body(i, values));
                                   });
    return SmallVector<Value>(loop.getResults());
  }

  Value load(Value memref, ValueRange at) {
    return memref::LoadOp::create(builder, loc, memref, at);
  }
  void store(Value v, Value memref, ValueRange at) {
    memref::StoreOp::create(builder, loc, v, memref, at);
  }
  Value loadVector(Value memref, ValueRange at) {
    return vector::LoadOp::create(builder, loc, vectorType, memref, at);
  }
  void storeVector(Value v, Value memref, ValueRange at) {
    vector::StoreOp::create(builder, loc, v, memref, at);
  }
  /// An element of an argument, in the type of the arithmetic.
  Value loadWide(Value memref, ValueRange at) {
    Value v = load(memref, at);
    return v.getType() == type ? v : arith::ExtFOp::create(builder, loc, type, v);
  }
  Value loadWideVector(Value memref, ValueRange at) {
    auto narrow = VectorType::get({lanes}, elementOf(memref));
    Value v = vector::LoadOp::create(builder, loc, narrow, memref, at);
    return narrow == vectorType ? v : arith::ExtFOp::create(builder, loc, vectorType, v);
  }
  Value buffer(ArrayRef<int64_t> shape, ValueRange dynamic = {}) {
    return memref::AllocOp::create(builder, loc, MemRefType::get(shape, type), dynamic);
  }
  /// Vectors of a register tile across a matrix of that many columns: those that waste least.
  int64_t vectorsFor(int64_t columns) const {
    if (ShapedType::isDynamic(columns))
      return mostVectors;
    int64_t best = mostVectors;
    for (int64_t vectors = mostVectors - 1; vectors > 0; --vectors)
      if (roundedUp(columns, vectors * lanes) < roundedUp(columns, best * lanes))
        best = vectors;
    return best;
  }

  void chooseTiles() {
    int64_t queryRows = sizeOf(query, 2), allKeys = sizeOf(key, 2);
    microRows = kMicroRows;
    if (!ShapedType::isDynamic(queryRows))
      microRows = std::clamp<int64_t>(queryRows, 1, kMicroRows);
    keyVectors = vectorsFor(ShapedType::isDynamic(allKeys) ? allKeys : std::min(allKeys, kKeys));
    valueVectors = vectorsFor(sizeOf(value, 3));
    paddedWidth = roundUp(width, valueVectors * lanes);
    mostRows = roundedUp(kRows, microRows);
    if (!ShapedType::isDynamic(queryRows))
      mostRows = std::min(mostRows, roundedUp(queryRows, microRows));
    mostKeys = roundedUp(kKeys, keyVectors * lanes);
    if (!ShapedType::isDynamic(allKeys))
      mostKeys = std::min(mostKeys, roundedUp(allKeys, keyVectors * lanes));
    mostRows = std::max<int64_t>(mostRows, microRows);
    mostKeys = std::max(mostKeys, keyVectors * lanes);
    int64_t columns = sizeOf(value, 3);
    readsValues = isUnit(value) && elementOf(value) == type && !ShapedType::isDynamic(columns) &&
                  columns % (valueVectors * lanes) == 0;
  }

  /// A buffer of `rows` x (a padded size that may be dynamic).
  Value wideBuffer(int64_t rows, Value columns) {
    if (std::optional<int64_t> known = getConstantIntValue(columns))
      return buffer({rows, *known});
    return buffer({rows, ShapedType::kDynamic}, columns);
  }

  void buildTile() {
    queries = wideBuffer(mostRows, depth);
    if (std::optional<int64_t> known = getConstantIntValue(depth))
      keys = buffer({*known, mostKeys});
    else
      keys = buffer({ShapedType::kDynamic, mostKeys}, depth);
    if (!readsValues)
      values = wideBuffer(mostKeys, paddedWidth);
    scores = buffer({mostRows, mostKeys});
    sums = wideBuffer(mostRows, paddedWidth);
    largest = buffer({mostRows});
    totals = buffer({mostRows});
    paddedRows = roundUp(rows, microRows);
    prepareRows();
    Value end = keyCount;
    if (options.isCausal)
      end = minimum(end, add(firstRow, rows));
    forEach(index(0), end, mostKeys, [&](Value first) {
      firstKey = first;
      keyTile = minimum(index(mostKeys), sub(end, first));
      paddedKeys = roundUp(keyTile, keyVectors * lanes);
      packKeys();
      if (!readsValues)
        packValues();
      multiply(
          queries, [&](Value k, Value column) { return loadVector(keys, {k, column}); }, scores,
          depth, paddedKeys, keyVectors, /*accumulate=*/false);
      forEach(index(0), rows, 1, [&](Value r) {
        hide(r);
        softmax(r);
      });
      auto valueAt = [&](Value k, Value column) {
        if (readsValues)
          return loadVector(value, {batch, keyHead, add(firstKey, k), column});
        return loadVector(values, {k, column});
      };
      multiply(scores, valueAt, sums, keyTile, paddedWidth, valueVectors, /*accumulate=*/true);
    });
    writeResult();
  }

  /// Queries times scale, zero in the rows that fill up the last register tile; nothing summed yet.
  void prepareRows() {
    Value zero = number(0);
    forEach(index(0), paddedRows, 1, [&](Value r) {
      Value isReal = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, r, rows);
      Value row = add(firstRow, fold<arith::MaxSIOp>(index(0), minimum(r, sub(rows, index(1)))));
      forEach(index(0), depth, 1, [&](Value e) {
        Value v = loadWide(query, {batch, head, row, e});
        v = arith::MulFOp::create(builder, loc, v, number(options.scale));
        store(arith::SelectOp::create(builder, loc, isReal, v, zero), queries, {r, e});
      });
      forEach(index(0), paddedWidth, lanes,
              [&](Value f) { storeVector(splat(zero), sums, {r, f}); });
      store(infinity(), largest, {r});
      store(zero, totals, {r});
    });
  }

  /// keys[e][j] = key[firstKey + j][e], zero beyond the tile: squares of vectors are transposed in
  /// registers, what is left over element by element.
  void packKeys() {
    Value squareKeys = index(0), squareDepth = index(0);
    if (isUnit(key)) {
      auto whole = [&](Value size) {
        return mul(fold<arith::DivUIOp>(size, index(lanes)), index(lanes));
      };
      squareKeys = whole(keyTile);
      squareDepth = whole(depth);
      forEach(index(0), squareKeys, lanes, [&](Value j) {
        forEach(index(0), squareDepth, lanes, [&](Value e) { transposeSquare(j, e); });
      });
    }
    auto copy = [&](Value j, Value e) {
      store(loadWide(key, {batch, keyHead, add(firstKey, j), e}), keys, {e, j});
    };
    forEach(index(0), squareKeys, 1,
            [&](Value j) { forEach(squareDepth, depth, 1, [&](Value e) { copy(j, e); }); });
    forEach(squareKeys, keyTile, 1,
            [&](Value j) { forEach(index(0), depth, 1, [&](Value e) { copy(j, e); }); });
    forEach(index(0), depth, 1, [&](Value e) {
      forEach(keyTile, paddedKeys, 1, [&](Value j) { store(number(0), keys, {e, j}); });
    });
  }

  /// Swaps the off-diagonal halves of ever smaller squares.
  void transposeSquare(Value j, Value e) {
    SmallVector<Value> rowsOf;
    for (int64_t i = 0; i < lanes; ++i)
      rowsOf.push_back(loadWideVector(key, {batch, keyHead, add(firstKey, add(j, index(i))), e}));
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
      storeVector(rowsOf[i], keys, {add(e, index(i)), j});
  }

  void packValues() {
    forEach(index(0), keyTile, 1, [&](Value j) {
      forEach(index(0), width, 1, [&](Value f) {
        store(loadWide(value, {batch, keyHead, add(firstKey, j), f}), values, {j, f});
      });
      forEach(width, paddedWidth, 1, [&](Value f) { store(number(0), values, {j, f}); });
    });
  }

  /// c (+)= a b for the padded rows of a and `columns` of b; `inner` is what is summed over. Blocks
  /// of microRows rows and `vectors` vectors stay in registers.
  void multiply(Value a, llvm::function_ref<Value(Value, Value)> b, Value c, Value inner,
                Value columns, int64_t vectors, bool accumulate) {
    forEach(index(0), paddedRows, microRows, [&](Value r0) {
      forEach(index(0), columns, vectors * lanes, [&](Value c0) {
        auto eachAccumulator = [&](auto visit) {
          for (int64_t r = 0; r < microRows; ++r)
            for (int64_t v = 0; v < vectors; ++v)
              visit(r * vectors + v, add(r0, index(r)), add(c0, index(v * lanes)));
        };
        SmallVector<Value> accumulators(microRows * vectors);
        eachAccumulator([&](int64_t i, Value r, Value column) {
          accumulators[i] = accumulate ? loadVector(c, {r, column}) : splat(number(0));
        });
        accumulators = carry(index(0), inner, 1, accumulators, [&](Value k, ValueRange carried) {
          SmallVector<Value> next(carried);
          SmallVector<Value> right;
          for (int64_t v = 0; v < vectors; ++v)
            right.push_back(b(k, add(c0, index(v * lanes))));
          for (int64_t r = 0; r < microRows; ++r) {
            Value left = splat(load(a, {add(r0, index(r)), k}));
            for (int64_t v = 0; v < vectors; ++v) {
              Value &sum = next[r * vectors + v];
              sum = vector::FMAOp::create(builder, loc, left, right[v], sum);
            }
          }
          return next;
        });
        eachAccumulator([&](int64_t i, Value r, Value column) {
          storeVector(accumulators[i], c, {r, column});
        });
      });
    });
  }

  /// Scores that do not take part become -infinity; an additive mask is added.
  void hide(Value r) {
    Value row = add(firstRow, r);
    if (mask) {
      bool isBool = cast<MemRefType>(mask.getType()).getElementType().isInteger();
      forEach(index(0), keyTile, 1, [&](Value j) {
        SmallVector<Value> at{batch, head, row, add(firstKey, j)};
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
          score = arith::AddFOp::create(builder, loc, score, added);
        }
        store(score, scores, {r, j});
      });
    }
    Value seen = keyTile;
    if (options.isCausal) // keys 0 .. row are seen
      seen = arith::MaxSIOp::create(builder, loc, index(0),
                                    minimum(seen, sub(add(row, index(1)), firstKey)));
    forEach(seen, paddedKeys, 1, [&](Value j) { store(infinity(), scores, {r, j}); });
  }

  /// One row: scores become weights relative to the largest score so far; what was summed before is
  /// rescaled to it.
  void softmax(Value r) {
    Value top = carry(index(0), paddedKeys, lanes, splat(infinity()), [&](Value j, ValueRange so) {
                  Value most =
                      arith::MaximumFOp::create(builder, loc, so[0], loadVector(scores, {r, j}));
                  return SmallVector<Value>{most};
                }).front();
    Value old = load(largest, {r});
    Value most = vector::ReductionOp::create(builder, loc, vector::CombiningKind::MAXIMUMF, top);
    most = arith::MaximumFOp::create(builder, loc, most, old);
    // Nothing seen yet: subtract 0, so that -inf stays -inf and its weight 0.
    Value none = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OEQ, most, infinity());
    Value shift = arith::SelectOp::create(builder, loc, none, number(0), most);
    Value factor =
        math::ExpOp::create(builder, loc, arith::SubFOp::create(builder, loc, old, shift));
    Value sum = carry(index(0), paddedKeys, lanes, splat(number(0)), [&](Value j, ValueRange so) {
                  Value weight =
                      arith::SubFOp::create(builder, loc, loadVector(scores, {r, j}), splat(shift));
                  weight = math::ExpOp::create(builder, loc, weight);
                  storeVector(weight, scores, {r, j});
                  return SmallVector<Value>{arith::AddFOp::create(builder, loc, so[0], weight)};
                }).front();
    Value total = vector::ReductionOp::create(builder, loc, vector::CombiningKind::ADD, sum);
    Value before = arith::MulFOp::create(builder, loc, load(totals, {r}), factor);
    store(arith::AddFOp::create(builder, loc, before, total), totals, {r});
    store(most, largest, {r});
    forEach(index(0), paddedWidth, lanes, [&](Value f) {
      storeVector(arith::MulFOp::create(builder, loc, loadVector(sums, {r, f}), splat(factor)),
                  sums, {r, f});
    });
  }

  void writeResult() {
    Type element = cast<MemRefType>(result.getType()).getElementType();
    forEach(index(0), rows, 1, [&](Value r) {
      Value total = load(totals, {r});
      Value seen = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::UNE, total, number(0));
      Value factor = arith::DivFOp::create(builder, loc, number(1), total);
      factor = arith::SelectOp::create(builder, loc, seen, factor, number(0));
      forEach(index(0), width, 1, [&](Value f) {
        Value v = arith::MulFOp::create(builder, loc, load(sums, {r, f}), factor);
        if (element != type)
          v = arith::TruncFOp::create(builder, loc, element, v);
        store(v, result, {batch, head, add(firstRow, r), f});
      });
    });
  }

  const AttentionOptions &options;
  Location loc;
  OpBuilder builder;
  Type type;
  VectorType vectorType;
  int64_t lanes, mostVectors, microRows, keyVectors, valueVectors, mostRows, mostKeys;
  bool readsValues; // as they are in memory
  Value query, key, value, mask, result;
  Value heads, rowCount, depth, keyCount, width, paddedWidth;
  // Of one tile.
  Value batch, head, keyHead, firstRow, rows, paddedRows, firstKey, keyTile, paddedKeys;
  Value queries, keys, values, scores, sums, largest, totals;
};

} // namespace

func::FuncOp buildAttentionKernel(Location loc, ArrayRef<Type> arguments,
                                  const AttentionOptions &options, const target::Limits &limits) {
  Builder builder(loc.getContext());
  auto kernel = func::FuncOp::create(loc, "attention", builder.getFunctionType(arguments, {}));
  kernel.setPrivate();
  kernel->setAttr(exec::kKernelAttr, builder.getUnitAttr());
  int64_t result = static_cast<int64_t>(arguments.size()) - 1;
  kernel->setAttr(exec::kWritesAttr, builder.getDenseI64ArrayAttr(result));
  kernel.addEntryBlock();
  AttentionBuilder(kernel, options, limits).build();
  return kernel;
}

} // namespace shardc::cpu
