// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "lowering/cuda/attention/AttentionKernels.h"

#include <numbers>

using namespace mlir;

namespace shardc::cuda {
namespace {

/// A block has some queries of one head; tiles of keys and values pass by. Values are on their way
/// while the scores are computed, and the next keys during the softmax and the sums.
class DeviceAttentionBuilder : AttentionBlock {
public:
  DeviceAttentionBuilder(func::FuncOp kernel, const DeviceAttention &options)
      : AttentionBlock(kernel, options, AttentionCode::elementOf(kernel.getArgument(0))) {
    ArrayRef<BlockArgument> arguments = kernel.getArguments();
    for (Value *argument : {&query, &key, &value, &mask, &out, &logsumexp}) {
      if ((argument == &mask && !options.hasMask) ||
          (argument == &logsumexp && !options.hasLogsumexp))
        continue;
      *argument = arguments.front();
      arguments = arguments.drop_front();
    }
  }

  void build() {
    AttentionProblem problem;
    problem.elementBytes = code.element.getIntOrFloatBitWidth() / 8;
    problem.depth = AttentionCode::sizeOf(query, 3);
    problem.width = AttentionCode::sizeOf(value, 3);
    problem.rows = knownRows(query);
    problem.columns = knownRows(key);
    plan = planAttention(problem);
    Value blocks = countBlocks(code.dim(query, 1), code.dim(query, 0), code.dim(query, 2), plan);
    const AttentionColumns &larger =
        plan.depth.stride > plan.width.stride ? plan.depth : plan.width;
    SmallVector<Type> shared{code.tileType(1, plan.rows, larger),
                             code.tileType(1, plan.columns, plan.depth),
                             code.tileType(1, plan.columns, plan.width)};
    if (Type exchange = AttentionEngine::exchangeType(code, plan))
      shared.push_back(exchange);
    code.launch(blocks, plan.threads, shared, [&](ValueRange buffers) {
      engine = AttentionEngine::create(code, plan, buffers.size() > 3 ? buffers[3] : Value());
      buildBlock(buffers);
    });
    func::ReturnOp::create(code.builder, code.loc);
  }

private:
  void buildBlock(ValueRange buffers) {
    queryCount = code.dim(query, 2);
    keyCount = code.dim(key, 2);
    Value zero = code.index(0);
    place = findPlace(code.dim(query, 1), queryCount, plan, options.isCausal);
    Value keyHead = keyHeadOf(place.head, query, key);
    firstQuery = code.mul(place.tile, plan.rows);
    AttentionMatrix keyRows = code.matrix(key, place.batch, keyHead),
                    valueRows = code.matrix(value, place.batch, keyHead);
    if (mask)
      maskRows = code.matrix(mask, place.batch, place.head);
    int64_t depth = AttentionCode::sizeOf(query, 3), width = AttentionCode::sizeOf(value, 3);
    AttentionTile queries{buffers[0], zero, plan.rows, depth, plan.depth.padded};
    AttentionTile keys{buffers[1], zero, plan.columns, depth, plan.depth.padded};
    AttentionTile values{buffers[2], zero, plan.columns, width, plan.width.padded};

    Value end = keyCount;
    if (options.isCausal)
      end = code.minimum(end, code.add(firstQuery, plan.rows));
    code.copyIn(code.matrix(query, place.batch, place.head), queries, firstQuery, queryCount);
    code.copyIn(keyRows, keys, zero, end);
    at = engine->sumColumns(plan.width);
    // Of each row: the sums, the largest score and the sum of weights.
    int64_t rows = engine->rows().size();
    Values state(rows * at.size(), code.number(0));
    state.append(rows, code.minusInfinity());
    state.append(rows, code.number(0));
    state = code.carry(zero, end, plan.columns, state, [&](Value first, ValueRange carried) {
      unpack(carried);
      code.awaitCopies();
      code.barrier();
      code.copyIn(valueRows, values, first, end);
      AttentionNumbers scores = engine->scores(queries, keys);
      code.awaitCopies();
      code.barrier();
      Value next = code.add(first, plan.columns);
      code.when(code.less(next, end), [&] { code.copyIn(keyRows, keys, next, end); });
      finishScores(scores,
                   {*engine, plan.rows, plan.columns, firstQuery, first, queryCount, keyCount},
                   maskRows);
      for (int64_t i = 0; i < rows; ++i)
        softmax(scores, i);
      engine->accumulate(sums, at, scores, values, Value());
      return pack();
    });
    unpack(state);
    code.awaitCopies();
    code.barrier();
    writeResult(queries);
  }

  void unpack(ValueRange state) {
    auto rows = engine->rows().size(), count = rows * at.size();
    sums = {at.size(), Values(state.take_front(count))};
    largest = Values(state.slice(count, rows));
    totals = Values(state.slice(count + rows, rows));
  }
  Values pack() const {
    Values state(sums.values);
    state.append(largest);
    state.append(totals);
    return state;
  }

  /// One row: scores become weights relative to the largest score so far; what was summed before is
  /// rescaled to it. The sum of weights is that of the columns of this thread.
  void softmax(AttentionNumbers &scores, int64_t i) {
    auto larger = [&](Value a, Value b) { return code.larger(a, b); };
    Value most = scores.at(i, 0);
    for (int64_t j = 1; j < scores.columns; ++j)
      most = larger(most, scores.at(i, j));
    most = larger(largest[i], engine->acrossRow(most, larger));
    // Nothing seen yet: subtract 0, so that -inf stays -inf and its weight 0.
    Value none = arith::CmpFOp::create(code.builder, code.loc, arith::CmpFPredicate::OEQ, most,
                                       code.minusInfinity());
    Value shift = code.select(none, code.number(0), scaled(most));
    Value minus = arith::NegFOp::create(code.builder, code.loc, shift);
    Value factor = code.exp2(code.fsub(scaled(largest[i]), shift));
    Value total = code.fmul(totals[i], factor), scale = code.number(lateScale());
    for (int64_t j = 0; j < scores.columns; ++j) {
      Value &weight = scores.at(i, j);
      weight = code.exp2(scalesLate() ? code.fma(weight, scale, minus) : code.fadd(weight, minus));
      total = code.fadd(total, weight);
    }
    for (int64_t j = 0; j < sums.columns; ++j)
      sums.at(i, j) = code.fmul(sums.at(i, j), factor);
    largest[i] = most;
    totals[i] = total;
  }

  Value scaled(Value score) {
    return scalesLate() ? code.fmul(score, code.number(lateScale())) : score;
  }

  void writeResult(const AttentionTile &tile) {
    for (int64_t i = 0; i < engine->rows().size(); ++i) {
      Value total = engine->acrossRow(totals[i], [&](Value a, Value b) { return code.fadd(a, b); });
      Value seen = arith::CmpFOp::create(code.builder, code.loc, arith::CmpFPredicate::UNE, total,
                                         code.number(0));
      Value factor = arith::DivFOp::create(code.builder, code.loc, code.number(1), total);
      factor = code.select(seen, factor, code.number(0));
      for (int64_t j = 0; j < sums.columns; ++j)
        sums.at(i, j) = code.fmul(sums.at(i, j), factor);
      if (logsumexp)
        writeLogsumexp(i, total, seen);
    }
    if (AttentionCode::sizeOf(out, 3) == 0)
      return;
    engine->stage(sums, at, tile, Value());
    code.barrier();
    AttentionTile staged = tile;
    staged.padded = plan.width.padded;
    code.copyOut(staged, code.matrix(out, place.batch, place.head), firstQuery, queryCount,
                 code.index(0), plan.width.padded);
  }

  void writeLogsumexp(int64_t i, Value total, Value seen) {
    Value sum = code.fadd(scaled(largest[i]), code.log2(total));
    sum = code.fmul(sum, code.number(std::numbers::ln2));
    sum = code.select(seen, sum, code.number(0));
    const AttentionPositions &rows = engine->rows();
    Value row = code.add(code.add(firstQuery, rows.base), rows.offsets[i]);
    // One of the threads of the row.
    Value isFirst = arith::CmpIOp::create(code.builder, code.loc, arith::CmpIPredicate::eq,
                                          engine->columns().base, code.index(0));
    code.when(code.both(isFirst, code.less(row, queryCount)),
              [&] { code.store(sum, logsumexp, {place.batch, place.head, row}); });
  }

  AttentionPlan plan;
  std::unique_ptr<AttentionEngine> engine;
  Value query, key, value, mask, out, logsumexp;
  // Of a block.
  Place place;
  Value queryCount, keyCount, firstQuery;
  AttentionMatrix maskRows;
  // Of a thread.
  AttentionPositions at;
  AttentionNumbers sums;
  Values largest, totals;
};

} // namespace

func::FuncOp buildDeviceAttention(Location loc, ArrayRef<Type> arguments,
                                  const DeviceAttention &options) {
  func::FuncOp kernel =
      makeDeviceAttention(loc, "attention", arguments, options.hasLogsumexp ? 2 : 1);
  DeviceAttentionBuilder(kernel, options).build();
  return kernel;
}

} // namespace shardc::cuda
