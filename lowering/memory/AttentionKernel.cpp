// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "lowering/memory/AttentionKernel.h"

#include "lowering/exec/Exec.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <limits>

using namespace mlir;

namespace shardc::memory {
namespace {

constexpr int64_t kRows = 64;                        // queries of a tile
constexpr int64_t kKeys = 256;                       // keys of a tile
constexpr int64_t kLanes = 16;                       // elements of a vector
constexpr int64_t kMicroRows = 4, kMicroVectors = 2; // accumulators of the inner product
constexpr int64_t kColumns = kLanes * kMicroVectors;

class AttentionBuilder {
public:
  AttentionBuilder(func::FuncOp kernel, const AttentionOptions &options)
      : options(options), loc(kernel.getLoc()), builder(kernel.getContext()) {
    Block &block = kernel.getBody().front();
    query = block.getArgument(0);
    key = block.getArgument(1);
    value = block.getArgument(2);
    mask = options.hasMask ? block.getArgument(3) : Value();
    result = block.getArguments().back();
    Type element = cast<MemRefType>(query.getType()).getElementType();
    type = element.isF64() ? element : builder.getF32Type();
    vectorType = VectorType::get({kLanes}, type);
    builder.setInsertionPointToStart(&block);
  }

  void build() {
    Value batches = dim(query, 0);
    heads = dim(query, 1);
    rowCount = dim(query, 2);
    depth = dim(query, 3);
    keyCount = dim(key, 2);
    width = dim(value, 3);
    paddedWidth = roundUp(width, kColumns);
    // Queries per key head.
    Value keyHeads = dim(key, 1);
    Value share = arith::DivUIOp::create(builder, loc, heads,
                                         arith::MaxUIOp::create(builder, loc, keyHeads, index(1)));
    share = arith::MaxUIOp::create(builder, loc, share, index(1));
    Value tiles = arith::CeilDivUIOp::create(builder, loc, rowCount, index(kRows));
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
      firstRow = mul(tile, index(kRows));
      rows = minimum(index(kRows), sub(rowCount, firstRow));
      buildTile();
    }
    func::ReturnOp::create(builder, loc);
  }

private:
  // Small words for index arithmetic and loops.
  Value index(int64_t v) { return arith::ConstantIndexOp::create(builder, loc, v); }
  Value add(Value a, Value b) { return arith::AddIOp::create(builder, loc, a, b); }
  Value sub(Value a, Value b) { return arith::SubIOp::create(builder, loc, a, b); }
  Value mul(Value a, Value b) { return arith::MulIOp::create(builder, loc, a, b); }
  Value minimum(Value a, Value b) { return arith::MinSIOp::create(builder, loc, a, b); }
  Value roundUp(Value a, int64_t to) {
    return mul(arith::CeilDivUIOp::create(builder, loc, a, index(to)), index(to));
  }
  Value dim(Value memref, int64_t d) { return memref::DimOp::create(builder, loc, memref, d); }
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
  Value buffer(ArrayRef<int64_t> shape, ValueRange dynamic = {}) {
    return memref::AllocOp::create(builder, loc, MemRefType::get(shape, type), dynamic);
  }
  /// A buffer of `rows` x (a padded size that may be dynamic).
  Value wideBuffer(int64_t rows, Value columns) {
    if (std::optional<int64_t> known = getConstantIntValue(columns))
      return buffer({rows, *known});
    return buffer({rows, ShapedType::kDynamic}, columns);
  }

  void buildTile() {
    queries = wideBuffer(kRows, depth);
    if (std::optional<int64_t> known = getConstantIntValue(depth))
      keys = buffer({*known, kKeys});
    else
      keys = buffer({ShapedType::kDynamic, kKeys}, depth);
    values = wideBuffer(kKeys, paddedWidth);
    scores = buffer({kRows, kKeys});
    sums = wideBuffer(kRows, paddedWidth);
    largest = buffer({kRows});
    totals = buffer({kRows});
    paddedRows = roundUp(rows, kMicroRows);
    Value zero = number(0);

    forEach(index(0), paddedRows, 1, [&](Value r) {
      Value isReal = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, r, rows);
      Value row = add(firstRow, minimum(r, sub(rows, index(1))));
      forEach(index(0), depth, 1, [&](Value e) {
        Value v = loadWide(query, {batch, head, row, e});
        v = arith::MulFOp::create(builder, loc, v, number(options.scale));
        store(arith::SelectOp::create(builder, loc, isReal, v, zero), queries, {r, e});
      });
      forEach(index(0), paddedWidth, kLanes,
              [&](Value f) { storeVector(splat(zero), sums, {r, f}); });
      store(infinity(), largest, {r});
      store(zero, totals, {r});
    });
    Value end = keyCount;
    if (options.isCausal)
      end = minimum(end, add(firstRow, rows));
    forEach(index(0), end, kKeys, [&](Value first) {
      firstKey = first;
      keyTile = minimum(index(kKeys), sub(end, first));
      paddedKeys = roundUp(keyTile, kColumns);
      packKeys();
      packValues();
      multiply(queries, keys, scores, depth, paddedKeys, /*accumulate=*/false);
      forEach(index(0), rows, 1, [&](Value r) {
        hide(r);
        softmax(r);
      });
      multiply(scores, values, sums, keyTile, paddedWidth, /*accumulate=*/true);
    });
    writeResult();
  }

  /// keys[e][j] = key[firstKey + j][e], zero beyond the tile.
  void packKeys() {
    forEach(index(0), keyTile, 1, [&](Value j) {
      forEach(index(0), depth, 1, [&](Value e) {
        store(loadWide(key, {batch, keyHead, add(firstKey, j), e}), keys, {e, j});
      });
    });
    forEach(index(0), depth, 1, [&](Value e) {
      forEach(keyTile, paddedKeys, 1, [&](Value j) { store(number(0), keys, {e, j}); });
    });
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
  /// of kMicroRows rows and kMicroVectors vectors stay in registers.
  void multiply(Value a, Value b, Value c, Value inner, Value columns, bool accumulate) {
    forEach(index(0), paddedRows, kMicroRows, [&](Value r0) {
      forEach(index(0), columns, kColumns, [&](Value c0) {
        auto eachAccumulator = [&](auto visit) {
          for (int64_t r = 0; r < kMicroRows; ++r)
            for (int64_t v = 0; v < kMicroVectors; ++v)
              visit(r * kMicroVectors + v, add(r0, index(r)), add(c0, index(v * kLanes)));
        };
        SmallVector<Value> accumulators(kMicroRows * kMicroVectors);
        eachAccumulator([&](int64_t i, Value r, Value column) {
          accumulators[i] = accumulate ? loadVector(c, {r, column}) : splat(number(0));
        });
        accumulators = carry(index(0), inner, 1, accumulators, [&](Value k, ValueRange carried) {
          SmallVector<Value> next(carried);
          SmallVector<Value> right;
          for (int64_t v = 0; v < kMicroVectors; ++v)
            right.push_back(loadVector(b, {k, add(c0, index(v * kLanes))}));
          for (int64_t r = 0; r < kMicroRows; ++r) {
            Value left = splat(load(a, {add(r0, index(r)), k}));
            for (int64_t v = 0; v < kMicroVectors; ++v) {
              Value &sum = next[r * kMicroVectors + v];
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
    Value top = carry(index(0), paddedKeys, kLanes, splat(infinity()), [&](Value j, ValueRange so) {
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
    Value sum = carry(index(0), paddedKeys, kLanes, splat(number(0)), [&](Value j, ValueRange so) {
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
    forEach(index(0), paddedWidth, kLanes, [&](Value f) {
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
  Value query, key, value, mask, result;
  Value heads, rowCount, depth, keyCount, width, paddedWidth;
  // Of one tile.
  Value batch, head, keyHead, firstRow, rows, paddedRows, firstKey, keyTile, paddedKeys;
  Value queries, keys, values, scores, sums, largest, totals;
};

} // namespace

func::FuncOp buildAttentionKernel(Location loc, ArrayRef<Type> arguments,
                                  const AttentionOptions &options) {
  Builder builder(loc.getContext());
  auto kernel = func::FuncOp::create(loc, "attention", builder.getFunctionType(arguments, {}));
  kernel.setPrivate();
  kernel->setAttr(exec::kKernelAttr, builder.getUnitAttr());
  kernel.addEntryBlock();
  AttentionBuilder(kernel, options).build();
  return kernel;
}

} // namespace shardc::memory
