// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "lowering/cuda/attention/FmaEngine.h"

using namespace mlir;

namespace shardc::cuda {

FmaEngine::FmaEngine(AttentionCode &code, const AttentionPlan &plan, Value exchange)
    : AttentionEngine(code, plan), vector(128 / code.element.getIntOrFloatBitWidth()),
      exchange(exchange) {
  threadsOfRow = plan.threadColumns;
  rowPositions.base = code.div(code.thread, plan.threadColumns);
  for (int64_t i = 0; i < plan.rowsPerThread(); ++i)
    rowPositions.offsets.push_back(i * plan.threadRows);
  columnPositions.base = code.rem(code.thread, plan.threadColumns);
  for (int64_t j = 0; j < plan.columnsPerThread(); ++j)
    columnPositions.offsets.push_back(j * plan.threadColumns);
}

AttentionPositions FmaEngine::sumColumns(const AttentionColumns &of) const {
  AttentionPositions made;
  made.base = code.mul(columnPositions.base, of.vector);
  made.group = of.vector;
  for (int64_t j = 0; j < of.perThread; ++j)
    made.offsets.push_back(j / of.vector * of.vector * plan.threadColumns + j % of.vector);
  return made;
}

AttentionNumbers FmaEngine::scores(const AttentionTile &left, const AttentionTile &right) {
  AttentionNumbers made;
  made.columns = columnPositions.size();
  made.values.assign(rowPositions.size() * made.columns, code.number(0));
  int64_t inner = (left.columns + vector - 1) / vector * vector;
  made.values = code.carry(
      code.index(0), code.index(inner), vector, made.values, [&](Value k, ValueRange carried) {
        AttentionNumbers next{made.columns, AttentionCode::Values(carried)};
        auto read = [&](const AttentionTile &tile, const AttentionPositions &positions) {
          SmallVector<AttentionCode::Values> all;
          for (int64_t offset : positions.offsets)
            all.push_back(code.elements(code.loadVector(
                tile.memory, AttentionCode::at(tile, code.add(positions.base, offset), k),
                vector)));
          return all;
        };
        auto lefts = read(left, rowPositions), rights = read(right, columnPositions);
        for (int64_t e = 0; e < vector; ++e)
          for (int64_t i = 0; i < rowPositions.size(); ++i)
            for (int64_t j = 0; j < columnPositions.size(); ++j)
              next.at(i, j) = code.fma(lefts[i][e], rights[j][e], next.at(i, j));
        return next.values;
      });
  return made;
}

void FmaEngine::accumulate(AttentionNumbers &sums, const AttentionPositions &columns,
                           const AttentionNumbers &weights, const AttentionTile &right,
                           Value firstColumn, bool isFirst) {
  auto rowAt = [&](int64_t i) { return code.add(rowPositions.base, rowPositions.offsets[i]); };
  // Those of before have been read: by all threads, if a barrier of the block stands between.
  if (!isFirst)
    code.syncWarp();
  for (int64_t i = 0; i < rowPositions.size(); ++i)
    for (int64_t j = 0; j < columnPositions.size(); ++j)
      code.store(weights.at(i, j), exchange,
                 {rowAt(i), code.add(columnPositions.base, columnPositions.offsets[j])});
  code.syncWarp();
  Value base = firstColumn ? code.add(firstColumn, columns.base) : columns.base;
  sums.values = code.carry(
      code.index(0), code.index(plan.columns), vector, sums.values,
      [&](Value k, ValueRange carried) {
        AttentionNumbers next{sums.columns, AttentionCode::Values(carried)};
        SmallVector<AttentionCode::Values> factors;
        for (int64_t i = 0; i < rowPositions.size(); ++i)
          factors.push_back(code.elements(code.loadVector(exchange, {rowAt(i), k}, vector)));
        for (int64_t e = 0; e < vector; ++e)
          for (int64_t j = 0; j < columns.size(); j += columns.group) {
            Value row = code.add(k, e), column = code.add(base, columns.offsets[j]);
            AttentionCode::Values numbers = code.elements(code.loadVector(
                right.memory, AttentionCode::at(right, row, column), columns.group));
            for (int64_t i = 0; i < rowPositions.size(); ++i)
              for (int64_t c = 0; c < columns.group; ++c)
                next.at(i, j + c) = code.fma(factors[i][e], numbers[c], next.at(i, j + c));
          }
        return next.values;
      });
}

} // namespace shardc::cuda
