// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "lowering/cpu/AttentionKernel.h"

#include "dialects/exec/Exec.h"
#include "lowering/cpu/AttentionTiles.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace shardc::cpu {
namespace {

class AttentionBuilder : AttentionTiles {
public:
  AttentionBuilder(func::FuncOp kernel, const AttentionOptions &options,
                   const target::Limits &limits)
      : AttentionTiles(kernel, options, limits, elementOf(kernel.getArgument(0))) {
    ArrayRef<BlockArgument> arguments = kernel.getArguments();
    auto next = [&]() -> Value {
      Value argument = arguments.front();
      arguments = arguments.drop_front();
      return argument;
    };
    query = next();
    key = next();
    value = next();
    mask = options.hasMask ? next() : Value();
    firstQuery = options.hasFirst ? next() : Value();
    result = next();
    logsumexp = options.hasLogsumexp ? next() : Value();
  }

  void build() {
    Value batches = dim(query, 0), heads = dim(query, 1), rowCount = dim(query, 2);
    depth = dim(query, 3);
    width = dim(value, 3);
    chooseTiles(query, key);
    valueVectors = vectorsFor(sizeOf(value, 3));
    paddedWidth = roundUp(width, valueVectors * lanes);
    int64_t columns = sizeOf(value, 3);
    readsValues = isUnit(value) && elementOf(value) == type && !ShapedType::isDynamic(columns) &&
                  columns % (valueVectors * lanes) == 0;
    // Queries per key head.
    Value share = atLeastOne(fold<arith::DivUIOp>(heads, atLeastOne(dim(key, 1))));
    auto [tiles, tileRows] = splitRows(rowCount);
    Value tileCount = tiles, rowsOfTile = tileRows;
    forEachTask(mul(mul(batches, heads), tileCount), [&](Value task) {
      Value tile = arith::RemUIOp::create(builder, loc, task, tileCount);
      Value matrix = arith::DivUIOp::create(builder, loc, task, tileCount);
      head = arith::RemUIOp::create(builder, loc, matrix, heads);
      batch = arith::DivUIOp::create(builder, loc, matrix, heads);
      keyHead = arith::DivUIOp::create(builder, loc, head, share);
      enterRows(tile, rowsOfTile, rowCount);
      buildTile();
    });
    func::ReturnOp::create(builder, loc);
  }

private:
  void buildTile() {
    queries = buffer(index(mostRows), depth);
    keys = buffer(depth, index(mostKeys));
    if (!readsValues)
      values = buffer(index(mostKeys), paddedWidth);
    scores = buffer({mostRows, mostKeys});
    sums = buffer(index(mostRows), paddedWidth);
    largest = buffer({mostRows});
    totals = buffer({mostRows});
    packQueries(query, queries, depth, depth, options.scale);
    forEach(index(0), paddedRows, 1, [&](Value r) {
      clearRow(sums, r, paddedWidth);
      store(infinity(), largest, {r});
      store(number(0), totals, {r});
    });
    Value end = keyCount;
    end = seenBy(add(firstRow, rows), end);
    forEach(index(0), end, mostKeys, [&](Value first) {
      enterKeys(first, end);
      packTransposed(key, keys, depth);
      if (!readsValues)
        packRows(value, values, width, paddedWidth);
      multiply({.left = [&](Value r, Value k) { return load(queries, {r, k}); },
                .right = [&](Value k, Value column) { return loadVector(keys, {k, column}); },
                .into = scores,
                .firstRow = {},
                .rows = paddedRows,
                .inner = depth,
                .columns = paddedKeys,
                .microRows = microRows,
                .vectors = keyVectors,
                .accumulate = false});
      forEach(index(0), rows, 1, [&](Value r) {
        hide(scores, r);
        softmax(r);
      });
      auto valueAt = [&](Value k, Value column) {
        if (readsValues)
          return loadVector(value, {batch, keyHead, add(firstKey, k), column});
        return loadVector(values, {k, column});
      };
      multiply({.left = [&](Value r, Value k) { return load(scores, {r, k}); },
                .right = valueAt,
                .into = sums,
                .firstRow = {},
                .rows = paddedRows,
                .inner = keyTile,
                .columns = paddedWidth,
                .microRows = microRows,
                .vectors = valueVectors,
                .accumulate = true});
    });
    writeResult();
  }

  /// One row: scores become weights relative to the largest score so far; what was summed before is
  /// rescaled to it.
  void softmax(Value r) {
    Value top = carry(index(0), paddedKeys, lanes, splat(infinity()), [&](Value j, ValueRange so) {
                  Value most =
                      arith::MaximumFOp::create(builder, loc, so[0], loadVector(scores, {r, j}));
                  return Values{most};
                }).front();
    Value old = load(largest, {r});
    Value most = vector::ReductionOp::create(builder, loc, vector::CombiningKind::MAXIMUMF, top);
    most = arith::MaximumFOp::create(builder, loc, most, old);
    // Nothing seen yet: subtract 0, so that -inf stays -inf and its weight 0.
    Value none = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OEQ, most, infinity());
    Value shift = arith::SelectOp::create(builder, loc, none, number(0), most);
    Value factor = math::ExpOp::create(builder, loc, fsub(old, shift));
    Value sum = carry(index(0), paddedKeys, lanes, splat(number(0)), [&](Value j, ValueRange so) {
                  Value weight = fsub(loadVector(scores, {r, j}), splat(shift));
                  weight = math::ExpOp::create(builder, loc, weight);
                  storeVector(weight, scores, {r, j});
                  return Values{fadd(so[0], weight)};
                }).front();
    Value total = vector::ReductionOp::create(builder, loc, vector::CombiningKind::ADD, sum);
    store(fadd(fmul(load(totals, {r}), factor), total), totals, {r});
    store(most, largest, {r});
    forEach(index(0), paddedWidth, lanes, [&](Value f) {
      storeVector(fmul(loadVector(sums, {r, f}), splat(factor)), sums, {r, f});
    });
  }

  void writeResult() {
    forEach(index(0), rows, 1, [&](Value r) {
      Value row = add(firstRow, r), total = load(totals, {r});
      Value seen = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::UNE, total, number(0));
      Value factor = arith::DivFOp::create(builder, loc, number(1), total);
      factor = arith::SelectOp::create(builder, loc, seen, factor, number(0));
      forEach(index(0), width, 1, [&](Value f) {
        storeNarrow(fmul(load(sums, {r, f}), factor), result, {batch, head, row, f});
      });
      if (!logsumexp)
        return;
      Value sum = fadd(load(largest, {r}), math::LogOp::create(builder, loc, total));
      Value unseen = options.isPartial ? infinity() : number(0);
      sum = arith::SelectOp::create(builder, loc, seen, sum, unseen);
      store(sum, logsumexp, {batch, head, row});
    });
  }

  int64_t valueVectors;
  bool readsValues; // as they are in memory
  Value query, key, value, result, logsumexp;
  Value depth, width, paddedWidth;
  // Of one tile.
  Value queries, keys, values, scores, sums, largest, totals;
};

} // namespace

func::FuncOp buildAttentionKernel(Location loc, ArrayRef<Type> arguments,
                                  const AttentionOptions &options, const target::Limits &limits) {
  func::FuncOp kernel = host::makeKernel(loc, "attention", arguments, options.hasLogsumexp ? 2 : 1);
  AttentionBuilder(kernel, options, limits).build();
  return kernel;
}

} // namespace shardc::cpu
