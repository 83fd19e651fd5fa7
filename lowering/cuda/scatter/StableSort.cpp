// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/cuda/scatter/StableSort.h"

#include "lowering/cuda/scatter/ScatterDivision.h"

#include "lowering/cuda/Accesses.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace shardc::cuda;

static OpFoldResult known(const WordBuilder &words, int64_t value) {
  return words.builder.getIndexAttr(value);
}

OpFoldResult shardc::cuda::digitsUpTo(const WordBuilder &words, OpFoldResult most) {
  OpBuilder &builder = words.builder;
  if (std::optional<int64_t> constant = getConstantIntValue(most))
    return builder.getIndexAttr(countDigits(static_cast<uint64_t>(*constant), StableSort::kBits));
  Value digits = words.constant(1);
  for (int64_t digit = 1; digit < 8; ++digit) {
    Value more =
        arith::CmpIOp::create(builder, words.loc, arith::CmpIPredicate::uge, cast<Value>(most),
                              words.constant(int64_t{1} << (digit * StableSort::kBits)));
    digits = words.add(digits, arith::ExtUIOp::create(builder, words.loc, words.type, more));
  }
  return digits;
}

Value shardc::cuda::firstPairFrom(const WordBuilder &words, const SortedPairs &pairs, Value key,
                                  Value low, Value high) {
  auto loop = scf::WhileOp::create(
      words.builder, words.loc, TypeRange{words.type, words.type}, ValueRange{low, high},
      [&](OpBuilder &b, Location loc, ValueRange range) {
        scf::ConditionOp::create(b, loc, words.at(b).isBelow(range[0], range[1]), range);
      },
      [&](OpBuilder &b, Location loc, ValueRange range) {
        WordBuilder in = words.at(b);
        Value middle = in.div(in.add(range[0], range[1]), in.constant(2));
        Value found = in.load(pairs.keys, in.add(in.of(pairs.begin), middle));
        Value isBefore = in.isBelow(found, key);
        Value next = in.add(middle, in.constant(1));
        scf::YieldOp::create(
            b, loc,
            ValueRange{arith::SelectOp::create(b, loc, isBefore, next, range[0]),
                       arith::SelectOp::create(b, loc, isBefore, range[1], middle)});
      });
  return loop.getResult(0);
}

namespace {

/// What the lanes of a warp do with its part of a tile.
class WarpOfTile {
public:
  using Body = function_ref<void(const WarpOfTile &, Value element, Value inside, Value key,
                                 Value counter, Value rank)>;

  WarpOfTile(WordBuilder words, const LaunchedBlock &block, Value counters)
      : words(words), block(block), counters(counters),
        lanes(words.builder, words.loc, words.builder.getI32Type()) {
    thread = lanes.fromIndex(block.thread);
    lane = lanes.rem(thread, lanes.constant(StableSort::kWarp));
    warp = lanes.div(thread, lanes.constant(StableSort::kWarp));
  }

  /// All counters of the block are 0.
  void clear() {
    constexpr int64_t warps = StableSort::kThreads / StableSort::kWarp;
    Value zero = words.constant(0);
    for (int64_t w = 0; w < warps; ++w)
      lanes.store(zero, counters, lanes.add(thread, lanes.constant(w * StableSort::kDigits)));
    gpu::BarrierOp::create(words.builder, words.loc);
  }

  /// For the elements of this warp, in order: `body` is built where a lane has one (i1 `inside`),
  /// with its counter's value before the element's own digits are counted, and how many lanes
  /// before have the same digit.
  void forEach(const SortedPairs &memory, Value from, Value shift, Body body);

  WordBuilder words;
  const LaunchedBlock &block;
  Value counters;
  WordBuilder lanes;
  Value thread, lane, warp; ///< i32

private:
  void sync() { NVVM::SyncWarpOp::create(words.builder, words.loc, lanes.constant(-1)); }
  Value vote(WordBuilder w, Value predicate) {
    return NVVM::VoteSyncOp::create(w.builder, w.loc, w.builder.getI32Type(), w.constant(-1),
                                    predicate, NVVM::VoteSyncKind::ballot);
  }
};

void WarpOfTile::forEach(const SortedPairs &memory, Value from, Value shift, Body body) {
  OpBuilder &b = words.builder;
  Location loc = words.loc;
  constexpr int64_t part = StableSort::kRounds * StableSort::kWarp;
  Value first = words.mul(words.fromIndex(block.x), words.constant(StableSort::kTile));
  Value own = lanes.add(lanes.mul(warp, lanes.constant(part)), lane);
  first = words.add(first, words.fromI32(own));
  Value count = words.of(memory.count);
  Value counterBase = lanes.mul(warp, lanes.constant(StableSort::kDigits));
  Value before =
      lanes.sub(arith::ShLIOp::create(b, loc, lanes.constant(1), lane), lanes.constant(1));

  auto loop = scf::ForOp::create(b, loc, lanes.constant(0), lanes.constant(StableSort::kRounds),
                                 lanes.constant(1));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(loop.getBody()->getTerminator());
  Value step = lanes.mul(loop.getInductionVar(), lanes.constant(StableSort::kWarp));
  Value element = words.add(first, words.fromI32(step));
  Value inside = words.isBelow(element, count);
  auto read = scf::IfOp::create(b, loc, words.type, inside, /*withElseRegion=*/true);
  {
    OpBuilder then = read.getThenBodyBuilder(), other = read.getElseBodyBuilder();
    WordBuilder w = words.at(then);
    scf::YieldOp::create(then, loc, w.load(memory.keys, w.add(from, element)));
    scf::YieldOp::create(other, loc, words.at(other).constant(0));
  }
  Value key = read.getResult(0);
  Value digit = arith::AndIOp::create(b, loc, arith::ShRUIOp::create(b, loc, key, shift),
                                      words.constant(StableSort::kDigits - 1));
  if (!words.type.isInteger(32))
    digit = arith::TruncIOp::create(b, loc, lanes.type, digit);
  // Lanes with the same digit as this one.
  Value peers = vote(lanes, inside);
  for (int64_t bit = 0; bit < StableSort::kBits; ++bit) {
    Value one = arith::AndIOp::create(b, loc, digit, lanes.constant(int64_t{1} << bit));
    Value isSet = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, one, lanes.constant(0));
    Value set = vote(lanes, isSet);
    Value clear = arith::XOrIOp::create(b, loc, set, lanes.constant(-1));
    peers =
        arith::AndIOp::create(b, loc, peers, arith::SelectOp::create(b, loc, isSet, set, clear));
  }
  Value rank = math::CtPopOp::create(b, loc, arith::AndIOp::create(b, loc, peers, before));
  Value counterAt = lanes.add(counterBase, digit);
  Value counter = lanes.load(counters, counterAt);
  body(*this, element, inside, key, counter, rank);
  // All lanes have read their counters; the first of each digit counts all of them.
  sync();
  Value isFirst = arith::AndIOp::create(b, loc, inside, lanes.isEqual(rank, lanes.constant(0)));
  auto update = scf::IfOp::create(b, loc, isFirst, /*withElseRegion=*/false);
  {
    OpBuilder then = update.getThenBodyBuilder();
    Value all = math::CtPopOp::create(then, loc, peers);
    lanes.at(then).store(words.at(then).add(counter, words.at(then).fromI32(all)), counters,
                         counterAt);
  }
  sync();
}

/// The sum of the values of all threads up to and with this one, by way of `sums`, memory of a
/// block. Every thread calls it. With `inMemory` they are in `sums` too, with a barrier behind the
/// last write; else there is at least one barrier, and others may still read `sums`.
Value sumUpTo(WordBuilder words, Value thread, Value value, Value sums, bool inMemory) {
  OpBuilder &b = words.builder;
  Location loc = words.loc;
  WordBuilder lanes(b, loc, b.getI32Type());
  lanes.store(value, sums, thread);
  gpu::BarrierOp::create(b, loc);
  Value sum = value;
  for (int64_t step = 1; step < StableSort::kThreads; step *= 2) {
    Value has =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::uge, thread, lanes.constant(step));
    auto read = scf::IfOp::create(b, loc, words.type, has, /*withElseRegion=*/true);
    OpBuilder then = read.getThenBodyBuilder(), other = read.getElseBodyBuilder();
    WordBuilder inner = lanes.at(then);
    scf::YieldOp::create(then, loc, inner.load(sums, inner.sub(thread, inner.constant(step))));
    scf::YieldOp::create(other, loc, words.at(other).constant(0));
    sum = words.add(sum, read.getResult(0));
    if (2 * step >= StableSort::kThreads && !inMemory)
      break; // nobody reads what is not written again
    gpu::BarrierOp::create(b, loc);
    lanes.store(sum, sums, thread);
    gpu::BarrierOp::create(b, loc);
  }
  return sum;
}

} // namespace

StableSort::StableSort(WordBuilder words, OpFoldResult count) : words(words) {
  memory.count = count;
  memory.begin = known(words, 0);
  OpFoldResult both = multiplyNumbers(words, count, known(words, 2));
  memory.keys = allocate(both);
  memory.numbers = allocate(both);
  tiles = divideNumberUp(words, count, kTile);
  counts = allocate(multiplyNumbers(words, tiles, known(words, kDigits)));
  totals = allocate(known(words, kDigits));
}

Value StableSort::allocate(OpFoldResult size) {
  if (auto constant = getConstantIntValue(size))
    return memref::AllocOp::create(words.builder, words.loc,
                                   MemRefType::get(*constant, words.type));
  return memref::AllocOp::create(
      words.builder, words.loc, MemRefType::get(ShapedType::kDynamic, words.type), hostIndex(size));
}

Value StableSort::hostIndex(OpFoldResult number) {
  if (auto constant = getConstantIntValue(number))
    return arith::ConstantIndexOp::create(words.builder, words.loc, *constant);
  return words.toIndex(cast<Value>(number));
}

void StableSort::sort(OpFoldResult digits) {
  OpBuilder &b = words.builder;
  Location loc = words.loc;
  auto loop = scf::ForOp::create(b, loc, words.constant(0), words.of(digits), words.constant(1));
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(loop.getBody()->getTerminator());
    Value number = loop.getInductionVar(), count = words.of(memory.count);
    Value odd = words.rem(number, words.constant(2));
    Pass pass;
    pass.from = words.mul(odd, count);
    pass.to = words.sub(count, pass.from);
    pass.shift = words.mul(number, words.constant(kBits));
    this->count(pass);
    addUp();
    place(pass);
  }
  if (auto constant = getConstantIntValue(digits))
    memory.begin = multiplyNumbers(words, memory.count, known(words, *constant % 2));
  else
    memory.begin =
        words.mul(words.rem(cast<Value>(digits), words.constant(2)), words.of(memory.count));
}

void StableSort::count(const Pass &pass) {
  OpBuilder &host = words.builder;
  Value one = arith::ConstantIndexOp::create(host, words.loc, 1);
  MemRefType shared = sharedMemory({kThreads / kWarp * kDigits}, words.type);
  launchBlocks(host, words.loc, hostIndex(tiles), one, kThreads, shared,
               [&](OpBuilder &b, const LaunchedBlock &block) {
                 WordBuilder w = words.at(b);
                 WarpOfTile warp(w, block, block.shared.front());
                 warp.clear();
                 warp.forEach(memory, pass.from, pass.shift,
                              [](const WarpOfTile &, Value, Value, Value, Value, Value) {});
                 gpu::BarrierOp::create(b, w.loc);
                 // Thread d adds up digit d of all warps.
                 Value sum;
                 for (int64_t i = 0; i < kThreads / kWarp; ++i) {
                   Value at = warp.lanes.add(warp.thread, warp.lanes.constant(i * kDigits));
                   Value part = warp.lanes.load(warp.counters, at);
                   sum = sum ? w.add(sum, part) : part;
                 }
                 Value row = w.mul(w.fromI32(warp.thread), w.of(tiles));
                 w.store(sum, counts, w.add(row, w.fromIndex(block.x)));
               });
}

void StableSort::addUp() {
  OpBuilder &host = words.builder;
  Location loc = words.loc;
  // A block for each digit; none where there is no tile.
  OpFoldResult blocks;
  if (auto constant = getConstantIntValue(tiles))
    blocks = known(words, *constant > 0 ? kDigits : 0);
  else
    blocks = words.mul(words.min(cast<Value>(tiles), words.constant(1)), words.constant(kDigits));
  Value one = arith::ConstantIndexOp::create(host, loc, 1);
  launchBlocks(host, loc, hostIndex(blocks), one, kThreads, sharedMemory({kThreads}, words.type),
               [&](OpBuilder &b, const LaunchedBlock &block) {
                 WordBuilder w = words.at(b);
                 WordBuilder lanes(b, loc, b.getI32Type());
                 Value thread = lanes.fromIndex(block.thread), digit = w.fromIndex(block.x);
                 Value sums = block.shared.front(), row = w.mul(digit, w.of(tiles));
                 auto loop = scf::ForOp::create(b, loc, w.constant(0), w.of(tiles),
                                                w.constant(kThreads), ValueRange{w.constant(0)});
                 {
                   OpBuilder::InsertionGuard guard(b);
                   b.setInsertionPointToStart(loop.getBody());
                   Value before = loop.getRegionIterArgs().front();
                   Value tile = w.add(loop.getInductionVar(), w.fromI32(thread));
                   Value inside = w.isBelow(tile, w.of(tiles)), at = w.add(row, tile);
                   auto read = scf::IfOp::create(b, loc, w.type, inside, /*withElseRegion=*/true);
                   OpBuilder then = read.getThenBodyBuilder(), other = read.getElseBodyBuilder();
                   scf::YieldOp::create(then, loc, w.at(then).load(counts, at));
                   scf::YieldOp::create(other, loc, w.at(other).constant(0));
                   Value own = read.getResult(0);
                   Value upTo = sumUpTo(w, thread, own, sums, /*inMemory=*/true);
                   auto write = scf::IfOp::create(b, loc, inside, /*withElseRegion=*/false);
                   OpBuilder inner = write.getThenBodyBuilder();
                   WordBuilder in = w.at(inner);
                   in.store(in.add(before, in.sub(upTo, own)), counts, at);
                   Value all = lanes.load(sums, lanes.constant(kThreads - 1));
                   // The next chunk, if there is one, writes `sums` again.
                   Value next = w.add(loop.getInductionVar(), w.constant(kThreads));
                   auto more = scf::IfOp::create(b, loc, w.isBelow(next, w.of(tiles)),
                                                 /*withElseRegion=*/false);
                   OpBuilder again = more.getThenBodyBuilder();
                   gpu::BarrierOp::create(again, loc);
                   scf::YieldOp::create(b, loc, w.add(before, all));
                 }
                 Value isFirst = lanes.isEqual(thread, lanes.constant(0));
                 auto write = scf::IfOp::create(b, loc, isFirst, /*withElseRegion=*/false);
                 OpBuilder inner = write.getThenBodyBuilder();
                 w.at(inner).store(loop.getResult(0), totals, digit);
               });
}

void StableSort::place(const Pass &pass) {
  OpBuilder &host = words.builder;
  Location loc = words.loc;
  Value one = arith::ConstantIndexOp::create(host, loc, 1);
  MemRefType shared[] = {sharedMemory({kThreads / kWarp * kDigits}, words.type),
                         sharedMemory({kThreads}, words.type)};
  launchBlocks(host, loc, hostIndex(tiles), one, kThreads, shared,
               [&](OpBuilder &b, const LaunchedBlock &block) {
                 WordBuilder w = words.at(b);
                 WarpOfTile warp(w, block, block.shared[0]);
                 warp.clear();
                 warp.forEach(memory, pass.from, pass.shift,
                              [](const WarpOfTile &, Value, Value, Value, Value, Value) {});
                 // Thread d: where digit d begins in the result, in this tile, in each warp. The
                 // first barrier of the sum stands between the counting and the reading of counters
                 // too.
                 Value digit = w.fromI32(warp.thread), total = w.load(totals, digit);
                 Value upTo = sumUpTo(w, warp.thread, total, block.shared[1], /*inMemory=*/false);
                 Value row = w.mul(digit, w.of(tiles));
                 Value base = w.load(counts, w.add(row, w.fromIndex(block.x)));
                 base = w.add(base, w.sub(upTo, total));
                 for (int64_t i = 0; i < kThreads / kWarp; ++i) {
                   Value at = warp.lanes.add(warp.thread, warp.lanes.constant(i * kDigits));
                   Value own = warp.lanes.load(warp.counters, at);
                   warp.lanes.store(base, warp.counters, at);
                   base = w.add(base, own);
                 }
                 gpu::BarrierOp::create(b, loc);
                 warp.forEach(memory, pass.from, pass.shift,
                              [&](const WarpOfTile &warp, Value element, Value inside, Value key,
                                  Value counter, Value rank) {
                                auto move =
                                    scf::IfOp::create(b, loc, inside, /*withElseRegion=*/false);
                                OpBuilder then = move.getThenBodyBuilder();
                                WordBuilder in = warp.words.at(then);
                                Value place = in.add(in.add(pass.to, counter), in.fromI32(rank));
                                Value number = in.load(memory.numbers, in.add(pass.from, element));
                                in.store(key, memory.keys, place);
                                in.store(number, memory.numbers, place);
                              });
               });
}
