// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "lowering/cuda/attention/AttentionKernels.h"

#include "dialects/exec/Exec.h"

#include <numbers>

using namespace mlir;

namespace shardc::cuda {

AttentionBlock::AttentionBlock(func::FuncOp kernel, const DeviceAttention &options, Type element)
    : options(options),
      code(OpBuilder::atBlockBegin(&kernel.getBody().front()), kernel.getLoc(), element) {}

int64_t AttentionBlock::knownRows(Value memory) {
  int64_t size = AttentionCode::sizeOf(memory, 2);
  return ShapedType::isDynamic(size) ? -1 : size;
}

Value AttentionBlock::countBlocks(Value heads, Value batches, Value rows,
                                  const AttentionPlan &plan) {
  Value tiles = code.ceilDivide(rows, plan.rows);
  return code.mul(code.mul(code.mul(batches, heads), tiles), plan.parts);
}

AttentionBlock::Place AttentionBlock::findPlace(Value heads, Value rows, const AttentionPlan &plan,
                                                bool lastFirst) {
  // There are fewer blocks than 2^31, and so is each of their dims: 32 bits are enough.
  auto split = [&](Value number, Value size) {
    return std::pair(code.div(number, size), code.rem(number, size));
  };
  Value tiles = code.toI32(code.ceilDivide(rows, plan.rows));
  auto [tileOfAll, part] = split(code.toI32(code.block), code.i32(plan.parts));
  auto [headOfAll, tile] = split(tileOfAll, tiles);
  auto [batch, head] = split(headOfAll, code.toI32(heads));
  if (lastFirst)
    tile = code.maximum(code.sub(code.sub(tiles, code.i32(1)), tile), code.i32(0));
  return {code.toIndex(batch), code.toIndex(head), code.toIndex(tile), code.toIndex(part)};
}

Value AttentionBlock::keyHeadOf(Value head, Value query, Value key) {
  Value heads = code.dim(query, 1), keyHeads = code.dim(key, 1);
  Value share = code.div(code.toI32(heads), code.toI32(keyHeads));
  return code.toIndex(code.div(code.toI32(head), share));
}

double AttentionBlock::lateScale() const {
  return scalesLate() ? options.scale * std::numbers::log2e : 1;
}

void AttentionBlock::finishScores(AttentionNumbers &scores, const Scores &at,
                                  const AttentionMatrix &mask) {
  if (!scalesLate())
    applyMask(scores, at, mask);
  // Tiles of which all takes part are left alone.
  auto past = [&](Value first, int64_t count, Value end) {
    return code.less(end, code.add(first, count));
  };
  Value edge = at.transposed ? past(at.firstQuery, at.columns, at.queries)
                             : past(at.firstKey, at.columns, at.keys);
  if (options.isCausal) {
    // The last key of the tile is behind its first query.
    Value last = code.add(at.firstKey, (at.transposed ? at.rows : at.columns) - 1);
    Value query = code.add(queryOf(at.firstQuery), causalShift());
    Value diagonal = code.less(query, last);
    edge = arith::OrIOp::create(code.builder, code.loc, edge, diagonal);
  }
  scores.values = code.change(edge, scores.values, [&] {
    AttentionNumbers hidden = scores;
    hideUnseen(hidden, at);
    return hidden.values;
  });
}

void AttentionBlock::applyMask(AttentionNumbers &scores, const Scores &at,
                               const AttentionMatrix &mask) {
  const AttentionPositions &rows = at.engine.rows(), &columns = at.engine.columns();
  Value factor = code.number(options.scale * std::numbers::log2e);
  if (!options.hasMask) {
    for (Value &score : scores.values)
      score = code.fmul(score, factor);
    return;
  }
  // Positions beyond the ends are hidden later; what is read for them is in range.
  auto place = [&](const AttentionPositions &positions, int64_t i, bool isQuery) {
    Value first = isQuery ? at.firstQuery : at.firstKey, count = isQuery ? at.queries : at.keys;
    Value position = code.add(code.add(first, positions.base), positions.offsets[i]);
    return code.minimum(position, code.sub(count, code.index(1)));
  };
  Values ofRows, ofColumns;
  for (int64_t i = 0; i < rows.size(); ++i)
    ofRows.push_back(place(rows, i, !at.transposed));
  for (int64_t j = 0; j < columns.size(); ++j)
    ofColumns.push_back(place(columns, j, at.transposed));
  bool isBool = AttentionCode::elementOf(mask.memory).isInteger();
  for (int64_t i = 0; i < rows.size(); ++i)
    for (int64_t j = 0; j < columns.size(); ++j) {
      Value query = at.transposed ? ofColumns[j] : ofRows[i];
      Value key = at.transposed ? ofRows[i] : ofColumns[j];
      Value entry = code.load(mask.memory, code.at(mask, query, key)), &score = scores.at(i, j);
      if (!isBool) {
        Value added = code.fmul(code.wide(entry), code.number(std::numbers::log2e));
        score = code.fma(score, factor, added);
        continue;
      }
      Value zero = arith::ConstantOp::create(code.builder, code.loc,
                                             code.builder.getZeroAttr(entry.getType()));
      Value seen =
          arith::CmpIOp::create(code.builder, code.loc, arith::CmpIPredicate::ne, entry, zero);
      score = code.select(seen, code.fmul(score, factor), code.minusInfinity());
    }
}

void AttentionBlock::hideUnseen(AttentionNumbers &scores, const Scores &at) {
  AttentionPositions rows = at.engine.rows(), columns = at.engine.columns();
  rows.base = code.computedHere(rows.base);
  columns.base = code.computedHere(columns.base);
  // Relative to the columns of the thread, in 32 bits.
  auto relative = [&](Value position, Value first) {
    Value limit = code.sub(code.sub(position, first), columns.base);
    limit = code.maximum(code.minimum(limit, code.index(at.columns)), code.index(-at.columns));
    return code.toI32(limit);
  };
  auto hide = [&](Value &score, arith::CmpIPredicate seen, int64_t offset, Value limit) {
    Value is = arith::CmpIOp::create(code.builder, code.loc, seen, code.i32(offset), limit);
    score = code.select(is, score, code.minusInfinity());
  };
  Value first = at.transposed ? at.firstQuery : at.firstKey;
  Value end = relative(at.transposed ? at.queries : at.keys, first);
  for (int64_t i = 0; i < rows.size(); ++i) {
    Value limit = end, begin;
    if (options.isCausal) {
      Value row = code.add(code.add(at.transposed ? at.firstKey : at.firstQuery, rows.base),
                           rows.offsets[i]);
      // Query r sees keys up to r + shift; key r is seen from query r - shift on.
      Value shift = causalShift();
      if (at.transposed) {
        begin = relative(code.sub(row, shift), first);
      } else {
        Value seen = code.add(code.add(queryOf(row), 1), shift);
        limit = relative(code.minimum(at.keys, seen), first);
      }
    }
    for (int64_t j = 0; j < columns.size(); ++j) {
      hide(scores.at(i, j), arith::CmpIPredicate::slt, columns.offsets[j], limit);
      if (begin)
        hide(scores.at(i, j), arith::CmpIPredicate::sge, columns.offsets[j], begin);
    }
  }
}

void AttentionBlock::writeSums(AttentionEngine &engine, const AttentionNumbers &sums,
                               const AttentionPositions &at, const AttentionMatrix &to, Value first,
                               Value end, Value firstColumn) {
  const AttentionPositions &rows = engine.rows();
  for (int64_t i = 0; i < rows.size(); ++i) {
    Value row = code.add(code.add(first, rows.base), rows.offsets[i]);
    code.when(code.less(row, end), [&] {
      for (int64_t j = 0; j < at.size(); ++j) {
        Value column = code.add(at.base, at.offsets[j]);
        if (firstColumn)
          column = code.add(column, firstColumn);
        code.when(code.less(column, code.index(to.columns)), [&] {
          code.store(code.narrow(sums.at(i, j), AttentionCode::elementOf(to.memory)), to.memory,
                     code.at(to, row, column));
        });
      }
    });
  }
}

} // namespace shardc::cuda
