// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "lowering/cuda/attention/AttentionKernels.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

#include <numbers>

using namespace mlir;

namespace shardc::cuda {
namespace {

/// Three launches: the sums of grad_out * out of each query into a temporary; the cotangents of
/// queries, of which a block has some and tiles of keys pass by; those of keys and values, of which
/// a block has some and tiles of the queries of all heads that share them pass by. So each sum has
/// one order.
class DeviceAttentionBackward : AttentionBlock {
public:
  DeviceAttentionBackward(func::FuncOp kernel, const DeviceAttention &options)
      : AttentionBlock(kernel, options, AttentionCode::elementOf(kernel.getArgument(0))) {
    ArrayRef<BlockArgument> arguments = kernel.getArguments();
    for (Value *argument : {&gradOut, &query, &key, &value, &out, &logsumexp, &mask, &firstQuery,
                            &gradQuery, &gradKey, &gradValue}) {
      if ((argument == &mask && !options.hasMask) || (argument == &firstQuery && !options.hasFirst))
        continue;
      *argument = arguments.front();
      arguments = arguments.drop_front();
    }
  }

  void build() {
    rowSums();
    if (!isEmpty(gradQuery))
      build(AttentionKernelKind::QueryGradient);
    if (!isEmpty(gradKey) || !isEmpty(gradValue))
      build(AttentionKernelKind::KeyGradient);
    func::ReturnOp::create(code.builder, code.loc);
  }

private:
  /// What has no elements is not among what the kernel writes.
  static bool isEmpty(Value target) {
    return llvm::is_contained(cast<MemRefType>(target.getType()).getShape(), 0);
  }

  /// A warp adds up the products of one query.
  void rowSums() {
    constexpr int64_t kWarps = 4;
    SmallVector<int64_t> shape(cast<MemRefType>(query.getType()).getShape().take_front(3));
    Values sizes;
    for (int64_t d = 0; d < 3; ++d)
      if (ShapedType::isDynamic(shape[d]))
        sizes.push_back(code.dim(query, d));
    inner =
        memref::AllocOp::create(code.builder, code.loc, MemRefType::get(shape, code.type), sizes);
    auto countRows = [&] {
      return code.mul(code.mul(code.dim(query, 0), code.dim(query, 1)), code.dim(query, 2));
    };
    code.launch(code.ceilDivide(countRows(), kWarps), 32 * kWarps, {}, [&](ValueRange) {
      Value number = code.add(code.mul(code.block, kWarps), code.div(code.thread, 32));
      Value lane = code.rem(code.thread, 32);
      code.when(code.less(number, countRows()), [&] {
        Value rows = code.dim(query, 2), heads = code.dim(query, 1);
        Value row = code.rem(number, rows), rest = code.div(number, rows);
        Value head = code.rem(rest, heads), batch = code.div(rest, heads);
        Value sum = code.carry(lane, code.dim(out, 3), 32, code.number(0),
                               [&](Value column, ValueRange so) {
                                 Values where{batch, head, row, column};
                                 Value product = code.fma(code.wide(code.load(gradOut, where)),
                                                          code.wide(code.load(out, where)), so[0]);
                                 return Values{product};
                               })
                        .front();
        for (int64_t bit = 1; bit < 32; bit *= 2)
          sum = code.fadd(sum, code.shuffle(sum, bit));
        Value isFirst = arith::CmpIOp::create(code.builder, code.loc, arith::CmpIPredicate::eq,
                                              lane, code.index(0));
        code.when(isFirst, [&] { code.store(sum, inner, {batch, head, row}); });
      });
    });
  }

  void build(AttentionKernelKind kind) {
    transposed = kind == AttentionKernelKind::KeyGradient;
    AttentionProblem problem;
    problem.kind = kind;
    problem.elementBytes = code.element.getIntOrFloatBitWidth() / 8;
    problem.depth = AttentionCode::sizeOf(query, 3);
    problem.width = AttentionCode::sizeOf(value, 3);
    problem.rows = knownRows(transposed ? key : query);
    problem.columns = knownRows(transposed ? query : key);
    plan = *planAttention(problem); // the pass has checked that there is one
    Value resident = transposed ? key : query;
    Value blocks =
        countBlocks(code.dim(resident, 1), code.dim(resident, 0), code.dim(resident, 2), plan);
    SmallVector<Type> shared{code.tileType(1, plan.rows, plan.depth),
                             code.tileType(1, plan.rows, plan.width),
                             code.tileType(plan.stages, plan.columns, plan.depth),
                             code.tileType(plan.stages, plan.columns, plan.width)};
    if (Type exchange = AttentionEngine::exchangeType(code, plan))
      shared.push_back(exchange);
    code.launch(blocks, plan.threads, shared, [&](ValueRange buffers) {
      engine = AttentionEngine::create(code, plan, buffers.size() > 4 ? buffers[4] : Value());
      buildBlock(buffers);
    });
  }

  /// The tiles that pass by: which one of how many, and of which head of queries.
  struct Passing {
    Value head, keyHead, first;
  };
  Passing passingAt(Value turn) {
    if (!transposed)
      return {place.head, keyHeadOf(place.head, query, key), code.mul(turn, plan.columns)};
    Value tile = code.add(firstTile, code.rem(turn, tilesOfHead));
    Value head = code.add(code.mul(place.head, share), code.div(turn, tilesOfHead));
    return {head, place.head, code.mul(tile, plan.columns)};
  }

  void copyPassing(Value turn) {
    Passing passing = passingAt(turn);
    Value stage = code.rem(turn, plan.stages);
    auto copy = [&](Value from, Value buffer, const AttentionColumns &columns) {
      AttentionMatrix matrix =
          code.matrix(from, place.batch, transposed ? passing.head : passing.keyHead);
      code.copyIn(matrix,
                  {buffer, stage, plan.columns, AttentionCode::sizeOf(from, 3), columns.padded},
                  passing.first, transposed ? queryCount : keyCount);
    };
    copy(transposed ? query : key, passingDepth, plan.depth);
    copy(transposed ? gradOut : value, passingWidth, plan.width);
  }

  void buildBlock(ValueRange buffers) {
    queryCount = code.dim(query, 2);
    keyCount = code.dim(key, 2);
    Value zero = code.index(0), heads = code.dim(query, 1), keyHeads = code.dim(key, 1);
    place = findPlace(transposed ? keyHeads : heads, transposed ? keyCount : queryCount, plan,
                      options.isCausal && !transposed);
    first = code.mul(place.tile, plan.rows);
    passingDepth = buffers[2];
    passingWidth = buffers[3];
    int64_t depth = AttentionCode::sizeOf(query, 3), width = AttentionCode::sizeOf(value, 3);
    AttentionTile left{buffers[0], zero, plan.rows, depth, plan.depth.padded};
    AttentionTile leftWidth{buffers[1], zero, plan.rows, width, plan.width.padded};
    Value end = transposed ? keyCount : queryCount, turns;
    if (transposed) {
      share = code.div(heads, keyHeads);
      // Queries before the first key see none of the keys.
      firstTile = zero;
      if (options.isCausal)
        firstTile = code.div(code.maximum(zero, code.sub(first, causalShift())), plan.columns);
      tilesOfHead =
          code.maximum(zero, code.sub(code.ceilDivide(queryCount, plan.columns), firstTile));
      turns = code.mul(share, tilesOfHead);
    } else {
      Value last = keyCount;
      if (options.isCausal) {
        Value seen = code.add(code.add(first, plan.rows), causalShift());
        last = code.maximum(zero, code.minimum(keyCount, seen));
      }
      turns = code.ceilDivide(last, plan.columns);
    }
    code.copyIn(code.matrix(transposed ? key : query, place.batch, place.head), left, first, end);
    code.copyIn(code.matrix(transposed ? value : gradOut, place.batch, place.head), leftWidth,
                first, end);
    if (plan.stages > 1)
      code.when(code.less(zero, turns), [&] { copyPassing(zero); });
    if (!transposed)
      loadRows();

    depthAt = engine->sumColumns(plan.depth);
    widthAt = engine->sumColumns(plan.width);
    if (plan.parts > 1) {
      depthPart = code.mul(place.part, plan.depth.padded / plan.parts);
      widthPart = code.mul(place.part, plan.width.padded / plan.parts);
    }
    int64_t rows = engine->rows().size(), depthSums = rows * depthAt.size(),
            widthSums = transposed ? rows * widthAt.size() : 0;
    Values state(depthSums + widthSums, code.number(0));
    auto unpack = [&](ValueRange values) {
      ofDepth = {depthAt.size(), Values(values.take_front(depthSums))};
      ofWidth = {widthAt.size(), Values(values.drop_front(depthSums))};
    };
    state = code.carry(zero, turns, 1, state, [&](Value turn, ValueRange carried) {
      unpack(carried);
      enter(turn, turns);
      AttentionTile right{passingDepth, code.rem(turn, plan.stages), plan.columns, depth,
                          plan.depth.padded};
      AttentionTile rightWidth{passingWidth, right.stage, plan.columns, width, plan.width.padded};
      differentiate(passingAt(turn), left, leftWidth, right, rightWidth);
      Values next(ofDepth.values);
      next.append(ofWidth.values);
      return next;
    });
    unpack(state);
    // The result takes the place of what stays. The last turn has waited for all copies; after it
    // others may still read, but where only the threads of a warp read a row, accumulate() has
    // made them wait for each other.
    bool isFree = engine->readsOwnRows();
    code.when(code.less(turns, code.index(1)), [&] {
      code.awaitCopies(/*all=*/true);
      if (isFree)
        code.barrier();
    });
    if (!isFree)
      code.barrier();
    finish(left, leftWidth, end);
  }

  /// The tile of a turn is there. With two stages the next one is on its way.
  void enter(Value turn, Value turns) {
    if (plan.stages == 1) {
      code.barrier();
      copyPassing(turn);
    }
    code.awaitCopies();
    code.barrier();
    if (plan.stages == 1)
      return;
    Value next = code.add(turn, 1);
    code.when(code.less(next, turns), [&] { copyPassing(next); });
  }

  /// What is known of a query, in powers of two where it is a logsumexp; 0 beyond the last.
  Value ofQuery(Value memory, Value head, Value position) {
    Value last = code.sub(queryCount, code.index(1));
    return code.load(memory, {place.batch, head, code.minimum(position, last)});
  }
  Value logsumexpOf(Value head, Value position) {
    return code.fmul(ofQuery(logsumexp, head, position), code.number(std::numbers::log2e));
  }

  void loadRows() {
    const AttentionPositions &rows = engine->rows();
    for (int64_t i = 0; i < rows.size(); ++i) {
      Value position = code.add(code.add(first, rows.base), rows.offsets[i]);
      rowLogsumexps.push_back(logsumexpOf(place.head, position));
      rowInners.push_back(ofQuery(inner, place.head, position));
    }
  }

  /// Of a tile: weights p = exp(scores - logsumexp), their part of the cotangent of values, and
  /// p * (grad_out value^T - inner), of which the other cotangents are products.
  void differentiate(const Passing &passing, const AttentionTile &left,
                     const AttentionTile &leftWidth, const AttentionTile &right,
                     const AttentionTile &rightWidth) {
    const AttentionPositions &columns = engine->columns();
    AttentionMatrix maskRows;
    if (mask)
      maskRows = code.matrix(mask, place.batch, passing.head);
    Values sums = rowLogsumexps, inners = rowInners;
    if (transposed) {
      sums.clear();
      inners.clear();
      for (int64_t j = 0; j < columns.size(); ++j) {
        Value position = code.add(code.add(passing.first, columns.base), columns.offsets[j]);
        sums.push_back(logsumexpOf(passing.head, position));
        inners.push_back(ofQuery(inner, passing.head, position));
      }
    }
    AttentionNumbers weights = engine->scores(left, right);
    finishScores(weights,
                 {*engine, plan.rows, plan.columns, transposed ? passing.first : first,
                  transposed ? first : passing.first, queryCount, keyCount, transposed},
                 maskRows);
    Value scale = code.number(lateScale());
    eachNumber(weights, [&](Value &weight, int64_t query) {
      Value sum = sums[query];
      if (scalesLate()) {
        Value minus = arith::NegFOp::create(code.builder, code.loc, sum);
        weight = code.exp2(code.fma(weight, scale, minus));
      } else {
        weight = code.exp2(code.fsub(weight, sum));
      }
    });
    if (transposed && !isEmpty(gradValue))
      engine->accumulate(ofWidth, widthAt, weights, rightWidth, widthPart, /*isFirst=*/true);
    if (isEmpty(transposed ? gradKey : gradQuery))
      return;
    AttentionNumbers slopes = engine->scores(leftWidth, rightWidth);
    int64_t next = 0;
    eachNumber(slopes, [&](Value &slope, int64_t query) {
      slope = code.fmul(weights.values[next++], code.fsub(slope, inners[query]));
    });
    engine->accumulate(ofDepth, depthAt, slopes, right, depthPart,
                       /*isFirst=*/!transposed || isEmpty(gradValue));
  }

  /// With the number of the query among those of the thread, in order.
  void eachNumber(AttentionNumbers &numbers, function_ref<void(Value &, int64_t)> body) {
    for (int64_t i = 0; i < engine->rows().size(); ++i)
      for (int64_t j = 0; j < numbers.columns; ++j)
        body(numbers.at(i, j), transposed ? j : i);
  }

  void finish(const AttentionTile &left, const AttentionTile &leftWidth, Value end) {
    Value scale = code.number(options.scale);
    for (Value &sum : ofDepth.values)
      sum = code.fmul(sum, scale);
    Value depthTarget = transposed ? gradKey : gradQuery;
    auto isWritten = [&](Value target) { return target && !isEmpty(target); };
    Value widthTarget = transposed ? gradValue : Value();
    if (options.isPartial && code.element != code.type) {
      auto write = [&](const AttentionNumbers &sums, const AttentionPositions &at, Value target,
                       Value part) {
        if (isWritten(target))
          writeSums(*engine, sums, at, code.matrix(target, place.batch, place.head), first, end,
                    part);
      };
      write(ofDepth, depthAt, depthTarget, depthPart);
      write(ofWidth, widthAt, widthTarget, widthPart);
      return;
    }
    if (isWritten(depthTarget))
      engine->stage(ofDepth, depthAt, left, depthPart);
    if (isWritten(widthTarget))
      engine->stage(ofWidth, widthAt, leftWidth, widthPart);
    code.barrier();
    auto write = [&](Value target, const AttentionTile &tile, Value part) {
      if (isWritten(target))
        code.copyOut(tile, code.matrix(target, place.batch, place.head), first, end,
                     part ? part : code.index(0), tile.padded / plan.parts);
    };
    write(depthTarget, left, depthPart);
    write(widthTarget, leftWidth, widthPart);
  }

  Value gradOut, query, key, value, out, logsumexp, mask, gradQuery, gradKey, gradValue;
  Value inner; ///< grad_out * out, summed up by rows
  // Of one launch.
  bool transposed = false;
  AttentionPlan plan;
  std::unique_ptr<AttentionEngine> engine;
  // Of a block: `first` is that of the rows that stay.
  Place place;
  Value queryCount, keyCount, first, share, firstTile, tilesOfHead;
  Value passingDepth, passingWidth, depthPart, widthPart;
  // Of a thread.
  Values rowLogsumexps, rowInners;
  AttentionPositions depthAt, widthAt;
  AttentionNumbers ofDepth, ofWidth;
};

} // namespace

func::FuncOp buildDeviceAttentionBackward(Location loc, ArrayRef<Type> arguments,
                                          const DeviceAttention &options) {
  func::FuncOp kernel = host::makeKernel(loc, "attention_backward", arguments, /*results=*/3);
  DeviceAttentionBackward(kernel, options).build();
  return kernel;
}

} // namespace shardc::cuda
