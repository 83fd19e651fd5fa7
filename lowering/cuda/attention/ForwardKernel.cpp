// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "lowering/cuda/attention/AttentionKernels.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

#include <numbers>

using namespace mlir;

namespace shardc::cuda {
namespace {

/// A block has some queries of one head, or of all heads that use the same keys; tiles of keys and
/// values pass by. Values are on their way while the scores are computed, and the next keys during
/// the softmax and the sums. Where there are few queries, several blocks divide their keys and
/// leave what they found to a second launch, which combines it in one order.
class DeviceAttentionBuilder : AttentionBlock {
public:
  DeviceAttentionBuilder(func::FuncOp kernel, const DeviceAttention &options)
      : AttentionBlock(kernel, options, AttentionCode::elementOf(kernel.getArgument(0))) {
    ArrayRef<BlockArgument> arguments = kernel.getArguments();
    for (Value *argument : {&query, &key, &value, &mask, &firstQuery, &out, &logsumexp}) {
      if ((argument == &mask && !options.hasMask) ||
          (argument == &firstQuery && !options.hasFirst) ||
          (argument == &logsumexp && !options.hasLogsumexp))
        continue;
      *argument = arguments.front();
      arguments = arguments.drop_front();
    }
  }

  void build() {
    heads = sharedHeads();
    AttentionProblem problem;
    problem.elementBytes = code.element.getIntOrFloatBitWidth() / 8;
    problem.depth = AttentionCode::sizeOf(query, 3);
    problem.width = AttentionCode::sizeOf(value, 3);
    problem.rows = knownRows(query);
    if (problem.rows > 0)
      problem.rows *= heads;
    problem.columns = knownRows(key);
    AttentionPlan whole = *planAttention(problem); // the pass has checked that there is one
    if (problem.rows < 0)
      problem.rows = kAttentionFewRows;
    AttentionPlan few = *planAttention(problem);
    rowCount = code.mul(code.dim(query, 2), heads);
    Value seen = code.dim(key, 2);
    if (options.isCausal)
      seen = code.minimum(seen, code.add(code.dim(query, 2), causalShift()));
    AttentionParts<AttentionCode, Value> parts(code, few, options.multiprocessors,
                                               countAllBlocks(few), seen);
    bool areFewKeys = knownRows(key) >= 0 && knownRows(key) < 2 * kAttentionLeastKeys;
    std::optional<int64_t> count =
        areFewKeys || isOneInteger(parts.wanted) || isOneInteger(parts.useful)
            ? 1
            : getConstantIntValue(parts.count);
    auto buildWhole = [&] {
      plan = whole;
      keysOfPart = partCount = Value();
      launchBlocks();
    };
    auto buildParts = [&] {
      plan = few;
      keysOfPart = parts.keys;
      partCount = parts.count;
      allocatePartial();
      launchBlocks();
      combine();
    };
    if (count)
      *count == 1 ? buildWhole() : buildParts();
    else
      code.when(code.less(code.index(1), parts.count), buildParts, buildWhole);
    func::ReturnOp::create(code.builder, code.loc);
  }

private:
  /// Heads of queries that use the same keys, where that is known.
  int64_t sharedHeads() const {
    int64_t ofQueries = AttentionCode::sizeOf(query, 1), ofKeys = AttentionCode::sizeOf(key, 1);
    if (ShapedType::isDynamic(ofQueries) || ShapedType::isDynamic(ofKeys) || ofQueries == 0 ||
        ofKeys == 0)
      return 1;
    return ofQueries / ofKeys;
  }

  /// Groups of heads that a block has together.
  Value groupsOfBatch() { return code.div(code.dim(query, 1), heads); }

  Value countAllBlocks(const AttentionPlan &of) {
    return countBlocks(groupsOfBatch(), code.dim(query, 0), rowCount, of);
  }

  void launchBlocks() {
    const AttentionColumns &larger =
        plan.depth.stride > plan.width.stride ? plan.depth : plan.width;
    SmallVector<Type> shared{code.tileType(1, plan.rows, larger),
                             code.tileType(1, plan.columns, plan.depth),
                             code.tileType(1, plan.columns, plan.width)};
    if (Type exchange = AttentionEngine::exchangeType(code, plan))
      shared.push_back(exchange);
    code.launch(
        countAllBlocks(plan), plan.threads, shared,
        [&](ValueRange buffers) {
          engine = AttentionEngine::create(code, plan, buffers.size() > 3 ? buffers[3] : Value());
          buildBlock(buffers);
        },
        partCount);
  }

  void buildBlock(ValueRange buffers) {
    keyCount = code.dim(key, 2);
    Value zero = code.index(0);
    place = findPlace(groupsOfBatch(), rowCount, plan, options.isCausal);
    Value keyHead = heads > 1 ? place.head : keyHeadOf(place.head, query, key);
    firstHead = code.mul(place.head, heads);
    firstRow = code.mul(place.tile, plan.rows);
    AttentionMatrix keyRows = code.matrix(key, place.batch, keyHead),
                    valueRows = code.matrix(value, place.batch, keyHead);
    if (mask)
      maskRows = rowsOf(mask);
    int64_t depth = AttentionCode::sizeOf(query, 3), width = AttentionCode::sizeOf(value, 3);
    AttentionTile queries{buffers[0], zero, plan.rows, depth, plan.depth.padded};
    AttentionTile keys{buffers[1], zero, plan.columns, depth, plan.depth.padded};
    AttentionTile values{buffers[2], zero, plan.columns, width, plan.width.padded};

    Value begin = zero, end = keyCount;
    if (options.isCausal)
      end = code.minimum(
          end, code.add(code.add(queryOf(code.add(firstRow, plan.rows - 1)), 1), causalShift()));
    if (partCount) {
      begin = code.mul(code.part, keysOfPart);
      end = code.minimum(end, code.add(begin, keysOfPart));
    }
    code.copyIn(rowsOf(query), queries, firstRow, rowCount);
    code.copyIn(keyRows, keys, begin, end);
    at = engine->sumColumns(plan.width);
    // Of each row: the sums, the largest score and the sum of weights.
    int64_t rows = engine->rows().size();
    Values state(rows * at.size(), code.number(0));
    state.append(rows, code.minusInfinity());
    state.append(rows, code.number(0));
    state = code.carry(begin, end, plan.columns, state, [&](Value first, ValueRange carried) {
      unpack(carried);
      code.awaitCopies();
      code.barrier();
      code.copyIn(valueRows, values, first, end);
      AttentionNumbers scores = engine->scores(queries, keys);
      code.awaitCopies();
      code.barrier();
      Value next = code.add(first, plan.columns);
      code.when(code.less(next, end), [&] { code.copyIn(keyRows, keys, next, end); });
      finishScores(scores, {*engine, plan.rows, plan.columns, firstRow, first, rowCount, keyCount},
                   maskRows);
      for (int64_t i = 0; i < rows; ++i)
        softmax(scores, i);
      engine->accumulate(sums, at, scores, values, Value(), /*isFirst=*/true);
      return pack();
    });
    unpack(state);
    // Where there was a tile of keys, its second barrier stands between the last reads of queries
    // and the result that takes their place, and all copies have been waited for. Without keys the
    // queries are still on their way.
    code.when(code.less(end, code.add(begin, 1)), [&] {
      code.awaitCopies(/*all=*/true);
      code.barrier();
    });
    if (partCount)
      writePart();
    else
      writeResult(queries);
  }

  AttentionMatrix rowsOf(Value memory) {
    return code.matrix(memory, place.batch, firstHead, heads);
  }

  Value totalOf(int64_t i) {
    return engine->acrossRow(totals[i], [&](Value a, Value b) { return code.fadd(a, b); });
  }
  Value isNotZero(Value number) {
    return arith::CmpFOp::create(code.builder, code.loc, arith::CmpFPredicate::UNE, number,
                                 code.number(0));
  }
  /// 1 / total, and 0 for queries that see nothing.
  Value inverse(Value total) {
    Value factor = arith::DivFOp::create(code.builder, code.loc, code.number(1), total);
    return code.select(isNotZero(total), factor, code.number(0));
  }
  Value isZero(Value index) {
    return arith::CmpIOp::create(code.builder, code.loc, arith::CmpIPredicate::eq, index,
                                 code.index(0));
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
      Value total = totalOf(i), factor = inverse(total);
      for (int64_t j = 0; j < sums.columns; ++j)
        sums.at(i, j) = code.fmul(sums.at(i, j), factor);
      if (!logsumexp)
        continue;
      Value row = code.add(code.add(firstRow, engine->rows().base), engine->rows().offsets[i]);
      // One of the threads of the row.
      code.when(code.both(isZero(engine->columns().base), code.less(row, rowCount)),
                [&] { writeLogsumexp(place.batch, firstHead, row, scaled(largest[i]), total); });
    }
    if (AttentionCode::sizeOf(out, 3) == 0)
      return;
    if (AttentionCode::elementOf(out) != code.element)
      return writeSums(*engine, sums, at, rowsOf(out), firstRow, rowCount, Value());
    engine->stage(sums, at, tile, Value());
    code.barrier();
    AttentionTile staged = tile;
    staged.padded = plan.width.padded;
    code.copyOut(staged, rowsOf(out), firstRow, rowCount, code.index(0), plan.width.padded);
  }

  void writeLogsumexp(Value batch, Value head, Value row, Value most, Value total) {
    Value sum = code.fmul(code.fadd(most, code.log2(total)), code.number(std::numbers::ln2));
    Value unseen = options.isPartial ? code.minusInfinity() : code.number(0);
    sum = code.select(isNotZero(total), sum, unseen);
    head = code.add(head, code.rem(row, heads));
    code.store(sum, logsumexp, {batch, head, queryOf(row)});
  }

  //===-- Parts of the keys -------------------------------------------------------------------===//

  /// What a part leaves of each row: sums, the largest score in powers of two, the sum of weights.
  void allocatePartial() {
    Values sizes{partCount, code.mul(code.dim(query, 0), groupsOfBatch()), rowCount};
    SmallVector<int64_t> shape;
    Values dynamic;
    for (Value size : sizes) {
      std::optional<int64_t> known = getConstantIntValue(size);
      shape.push_back(known ? *known : ShapedType::kDynamic);
      if (!known)
        dynamic.push_back(size);
    }
    auto allocate = [&] {
      return memref::AllocOp::create(code.builder, code.loc, MemRefType::get(shape, code.type),
                                     dynamic);
    };
    partLargest = allocate();
    partTotals = allocate();
    shape.push_back(plan.width.padded);
    partSums = allocate();
  }

  void writePart() {
    Value group = code.add(code.mul(place.batch, groupsOfBatch()), place.head);
    for (int64_t i = 0; i < engine->rows().size(); ++i) {
      Value total = totalOf(i);
      Value row = code.add(code.add(firstRow, engine->rows().base), engine->rows().offsets[i]);
      code.when(code.less(row, rowCount), [&] {
        Values where{code.part, group, row};
        code.when(isZero(engine->columns().base), [&] {
          code.store(scaled(largest[i]), partLargest, where);
          code.store(total, partTotals, where);
        });
        for (int64_t j = 0; j < at.size(); j += at.group) {
          Values to = where;
          to.push_back(code.add(at.base, at.offsets[j]));
          code.storeVector(
              code.together(ArrayRef(sums.values).slice(i * sums.columns + j, at.group)), partSums,
              to);
        }
      });
    }
  }

  /// A thread has one column of one row: weights of the parts relative to the largest score of all,
  /// and their sums, by rising number of the part.
  void combine() {
    constexpr int64_t kThreads = 128;
    int64_t width = AttentionCode::sizeOf(out, 3), columns = std::max<int64_t>(width, 1);
    auto countNumbers = [&] {
      Value groups = code.mul(code.dim(query, 0), groupsOfBatch());
      return code.mul(code.mul(groups, rowCount), columns);
    };
    code.launch(code.ceilDivide(countNumbers(), kThreads), kThreads, {}, [&](ValueRange) {
      Value number = code.add(code.mul(code.block, kThreads), code.thread);
      code.when(code.less(number, countNumbers()), [&] {
        Value column = code.rem(number, columns), rest = code.div(number, columns);
        Value row = code.rem(rest, rowCount), group = code.div(rest, rowCount);
        combineNumber(group, row, column, width > 0);
      });
    });
  }

  void combineNumber(Value group, Value row, Value column, bool hasColumns) {
    Value zero = code.index(0);
    Value most = code.carry(zero, partCount, 1, code.minusInfinity(),
                            [&](Value part, ValueRange so) {
                              Value next = code.load(partLargest, {part, group, row});
                              return Values{code.larger(so[0], next)};
                            })
                     .front();
    Value none = arith::CmpFOp::create(code.builder, code.loc, arith::CmpFPredicate::OEQ, most,
                                       code.minusInfinity());
    Value shift = code.select(none, code.number(0), most);
    Values found = code.carry(
        zero, partCount, 1, {code.number(0), code.number(0)}, [&](Value part, ValueRange so) {
          Value weight = code.exp2(code.fsub(code.load(partLargest, {part, group, row}), shift));
          Value total = code.fma(weight, code.load(partTotals, {part, group, row}), so[0]);
          Value sum = so[1];
          if (hasColumns)
            sum = code.fma(weight, code.load(partSums, {part, group, row, column}), sum);
          return Values{total, sum};
        });
    Value batch = code.div(group, groupsOfBatch());
    Value head = code.mul(code.rem(group, groupsOfBatch()), heads);
    if (hasColumns) {
      Value result =
          code.narrow(code.fmul(found[1], inverse(found[0])), AttentionCode::elementOf(out));
      Value ofHead = code.add(head, code.rem(row, heads));
      code.store(result, out, {batch, ofHead, queryOf(row), column});
    }
    if (logsumexp)
      code.when(isZero(column), [&] { writeLogsumexp(batch, head, row, most, found[0]); });
  }

  AttentionPlan plan;
  std::unique_ptr<AttentionEngine> engine;
  Value query, key, value, mask, out, logsumexp;
  Value rowCount; ///< rows of queries that use the same keys
  // Where blocks divide the keys: how many a part has, how many parts there are, what they leave.
  Value keysOfPart, partCount, partLargest, partTotals, partSums;
  // Of a block.
  Place place;
  Value keyCount, firstHead, firstRow;
  AttentionMatrix maskRows;
  // Of a thread.
  AttentionPositions at;
  AttentionNumbers sums;
  Values largest, totals;
};

} // namespace

func::FuncOp buildDeviceAttention(Location loc, ArrayRef<Type> arguments,
                                  const DeviceAttention &options) {
  func::FuncOp kernel = host::makeKernel(loc, "attention", arguments, options.hasLogsumexp ? 2 : 1);
  DeviceAttentionBuilder(kernel, options).build();
  return kernel;
}

} // namespace shardc::cuda
