// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "lowering/cpu/AttentionTiles.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace shardc::cpu {
namespace {

class AttentionBackwardBuilder : AttentionTiles {
public:
  AttentionBackwardBuilder(func::FuncOp kernel, const AttentionOptions &options,
                           const target::Limits &limits)
      : AttentionTiles(kernel, options, limits, elementOf(kernel.getArgument(0))) {
    ArrayRef<BlockArgument> arguments = kernel.getArguments();
    for (Value *argument : {&gradOut, &query, &key, &value, &out, &logsumexp, &mask, &firstQuery,
                            &gradQuery, &gradKey, &gradValue}) {
      if ((argument == &mask && !options.hasMask) || (argument == &firstQuery && !options.hasFirst))
        continue;
      *argument = arguments.front();
      arguments = arguments.drop_front();
    }
  }

  /// A task is one head of keys of one batch: all sums over queries and their heads are its own.
  void build() {
    Value batches = dim(query, 0), heads = dim(query, 1), keyHeads = dim(key, 1);
    depth = dim(query, 3);
    width = dim(value, 3);
    chooseTiles(query, key);
    depthVectors = vectorsFor(sizeOf(query, 3));
    valueVectors = vectorsFor(sizeOf(value, 3));
    // Rows of a transposed tile are keys, whose number is padded to vectors.
    transposedRows = kMicroRows;
    while (keyVectors * lanes % transposedRows != 0)
      --transposedRows;
    paddedDepth = roundUp(depth, depthVectors * lanes);
    paddedWidth = roundUp(width, valueVectors * lanes);
    int64_t columns = sizeOf(key, 3);
    readsKeys = isUnit(key) && elementOf(key) == type && !ShapedType::isDynamic(columns) &&
                columns % (depthVectors * lanes) == 0;
    Value share = fold<arith::DivUIOp>(heads, atLeastOne(keyHeads));
    auto split = splitRows(queryCount);
    Value tiles = split.first, tileRows = split.second;
    Value allKeys = roundUp(keyCount, keyVectors * lanes);
    forEachTask(mul(batches, keyHeads), [&](Value task) {
      keyHead = arith::RemUIOp::create(builder, loc, task, keyHeads);
      batch = arith::DivUIOp::create(builder, loc, task, keyHeads);
      allocate(allKeys);
      forEach(index(0), allKeys, 1, [&](Value j) {
        clearRow(keySums, j, paddedDepth);
        clearRow(valueSums, j, paddedWidth);
      });
      forEach(index(0), share, 1, [&](Value member) {
        head = add(mul(keyHead, share), member);
        forEach(index(0), tiles, 1, [&](Value tile) {
          enterRows(tile, tileRows, queryCount);
          buildTile();
        });
      });
      write(keySums, gradKey, keyCount, depth);
      write(valueSums, gradValue, keyCount, width);
    });
    func::ReturnOp::create(builder, loc);
  }

private:
  void allocate(Value allKeys) {
    queries = buffer(index(mostRows), paddedDepth);
    cotangents = buffer(index(mostRows), paddedWidth);
    querySums = buffer(index(mostRows), paddedDepth);
    keys = buffer(depth, index(mostKeys));
    values = buffer(width, index(mostKeys));
    if (!readsKeys)
      keyRows = buffer(index(mostKeys), paddedDepth);
    weights = buffer({mostRows, mostKeys});
    slopes = buffer({mostRows, mostKeys});
    keySums = buffer(allKeys, paddedDepth);
    valueSums = buffer(allKeys, paddedWidth);
    inner = buffer({mostRows});
  }

  /// Some queries of one head, against all keys that they see.
  void buildTile() {
    packQueries(query, queries, depth, paddedDepth, options.scale);
    packQueries(gradOut, cotangents, width, paddedWidth, 1);
    forEach(index(0), paddedRows, 1, [&](Value r) { clearRow(querySums, r, paddedDepth); });
    forEach(index(0), rows, 1, [&](Value r) {
      Value row = add(firstRow, r);
      Value sum = carry(index(0), width, 1, number(0), [&](Value f, ValueRange so) {
                    Value product =
                        fmul(load(cotangents, {r, f}), loadWide(out, {batch, head, row, f}));
                    return Values{fadd(so[0], product)};
                  }).front();
      store(sum, inner, {r});
    });
    Value end = keyCount;
    end = seenBy(add(firstRow, rows), end);
    forEach(index(0), end, mostKeys, [&](Value first) {
      enterKeys(first, end);
      packTransposed(key, keys, depth);
      packTransposed(value, values, width);
      if (!readsKeys)
        packRows(key, keyRows, depth, paddedDepth);
      toKeys(queries, keys, weights, depth);
      toKeys(cotangents, values, slopes, width);
      forEach(index(0), rows, 1, [&](Value r) {
        hide(weights, r);
        differentiateSoftmax(r);
      });
      fromQueries(weights, cotangents, valueSums, paddedWidth, valueVectors);
      fromQueries(slopes, queries, keySums, paddedDepth, depthVectors);
      multiply({.left = [&](Value r, Value k) { return load(slopes, {r, k}); },
                .right =
                    [&](Value k, Value column) {
                      if (readsKeys)
                        return loadVector(key, {batch, keyHead, add(firstKey, k), column});
                      return loadVector(keyRows, {k, column});
                    },
                .into = querySums,
                .firstRow = {},
                .rows = paddedRows,
                .inner = keyTile,
                .columns = paddedDepth,
                .microRows = microRows,
                .vectors = depthVectors,
                .accumulate = true});
    });
    if (isEmpty(gradQuery))
      return;
    forEach(index(0), rows, 1, [&](Value r) {
      forEach(index(0), depth, 1, [&](Value e) {
        storeNarrow(fmul(load(querySums, {r, e}), number(options.scale)), gradQuery,
                    {batch, head, add(firstRow, r), e});
      });
    });
  }

  /// target[query][key] = rows of queries times packed columns of keys
  void toKeys(Value left, Value right, Value target, Value size) {
    multiply({.left = [&](Value r, Value k) { return load(left, {r, k}); },
              .right = [&](Value k, Value column) { return loadVector(right, {k, column}); },
              .into = target,
              .firstRow = {},
              .rows = paddedRows,
              .inner = size,
              .columns = paddedKeys,
              .microRows = microRows,
              .vectors = keyVectors,
              .accumulate = false});
  }

  /// sums[key] += sum over queries of tile[query][key] * right[query]
  void fromQueries(Value tile, Value right, Value sums, Value columns, int64_t vectors) {
    multiply({.left = [&](Value j, Value r) { return load(tile, {r, j}); },
              .right = [&](Value r, Value column) { return loadVector(right, {r, column}); },
              .into = sums,
              .firstRow = firstKey,
              .rows = paddedKeys,
              .inner = rows,
              .columns = columns,
              .microRows = transposedRows,
              .vectors = vectors,
              .accumulate = true});
  }

  /// One row: scores become weights, and the cotangents of the weights those of the scores.
  void differentiateSoftmax(Value r) {
    Value sum = splat(load(logsumexp, {batch, head, add(firstRow, r)}));
    Value ofRow = splat(load(inner, {r}));
    forEach(index(0), paddedKeys, lanes, [&](Value j) {
      Value weight = math::ExpOp::create(builder, loc, fsub(loadVector(weights, {r, j}), sum));
      storeVector(weight, weights, {r, j});
      storeVector(fmul(weight, fsub(loadVector(slopes, {r, j}), ofRow)), slopes, {r, j});
    });
  }

  /// What has no elements is not among what the kernel writes.
  static bool isEmpty(Value target) {
    return llvm::is_contained(cast<MemRefType>(target.getType()).getShape(), 0);
  }

  void write(Value sums, Value target, Value rowsOfTarget, Value columns) {
    if (isEmpty(target))
      return;
    forEach(index(0), rowsOfTarget, 1, [&](Value j) {
      forEach(index(0), columns, 1,
              [&](Value c) { storeNarrow(load(sums, {j, c}), target, {batch, keyHead, j, c}); });
    });
  }

  int64_t depthVectors, valueVectors, transposedRows;
  bool readsKeys; // as they are in memory
  Value gradOut, query, key, value, out, logsumexp, gradQuery, gradKey, gradValue;
  Value depth, width, paddedDepth, paddedWidth;
  // Of one task or tile.
  Value queries, cotangents, querySums, keys, values, keyRows, weights, slopes, keySums, valueSums,
      inner;
};

} // namespace

func::FuncOp buildAttentionBackwardKernel(Location loc, ArrayRef<Type> arguments,
                                          const AttentionOptions &options,
                                          const target::Limits &limits) {
  func::FuncOp kernel = host::makeKernel(loc, "attention_backward", arguments, /*results=*/3);
  AttentionBackwardBuilder(kernel, options, limits).build();
  return kernel;
}

} // namespace shardc::cpu
