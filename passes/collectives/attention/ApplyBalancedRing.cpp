// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/attention/ApplyRing.h"

#include "passes/collectives/attention/RingSteps.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"

#include <cmath>

using namespace mlir;
using namespace shardc;
using namespace shardc::dist;

void BalancedValues::forget(Operation *op) {
  auto isGone = [&](Value value) { return value.getDefiningOp() == op; };
  SmallVector<Value> gone;
  for (auto [value, balanced] : known)
    if (isGone(value) || isGone(balanced))
      gone.push_back(value);
  for (Value value : gone)
    known.erase(value);
}

namespace {

/// Rows that a rank has in the balanced order: those of the lower of its chunks, then of the
/// higher.
class BalancedRing : RingSteps {
public:
  BalancedRing(const RingSite &site, RankValues &ranks, BalancedValues &values)
      : RingSteps(site, ranks), values(values), chunk(site.extents.front() / 2) {}

  void run(function_ref<void(Operation *)> erased) {
    site.isBackward ? backward() : forward();
    erase([&](Operation *op) {
      values.forget(op);
      erased(op);
    });
  }

private:
  DeviceTable everywhere(int64_t number) const { return DeviceTable(site.position.size(), number); }

  /// The chunk of rows that begins at these.
  Value chunkAt(Value value, int64_t dim, const DeviceTable &begin) {
    DeviceTable end;
    for (int64_t row : begin)
      end.push_back(row + chunk);
    return rows(value, dim, begin, end, everywhere(2 * chunk));
  }
  Value low(Value value, int64_t dim) { return chunkAt(value, dim, everywhere(0)); }
  Value high(Value value, int64_t dim) { return chunkAt(value, dim, everywhere(chunk)); }
  Value joinChunks(Value first, Value second, int64_t dim) {
    return join({first, second}, dim, 2 * chunk);
  }

  /// Where chunk `parity`, then `parity` + 2 and so on, of all ranks are computed: pairs of owner
  /// and rank, or the other way round.
  SmallVector<int64_t> pairsOf(int64_t parity, bool isBack) const {
    SmallVector<int64_t> pairs;
    for (int64_t owner = 0; owner < site.size(); ++owner) {
      int64_t number = 2 * owner + parity;
      int64_t rank = number < site.size() ? number : 2 * site.size() - 1 - number;
      isBack ? pairs.append({rank, owner}) : pairs.append({owner, rank});
    }
    return pairs;
  }
  /// Where a rank has that one of its chunks whose number has this parity. That of the lower one is
  /// that of the rank's position, and that of the higher one the other.
  DeviceTable placeOf(int64_t parity) const {
    DeviceTable table;
    for (int64_t position : site.position)
      table.push_back(position % 2 == parity ? 0 : chunk);
    return table;
  }

  Value exchange(Value value, int64_t dim, int64_t parity, bool isBack) {
    SmallVector<int64_t> extents(site.size(), chunk);
    return permute(value, dim, pairsOf(parity, isBack), extents).front();
  }

  /// Of this rank's rows, those that it works on. `of` says what was asked for before.
  Value toBalanced(Value of, Value value, int64_t dim) {
    if (Value known = values.lookup(of))
      return known;
    Value even = exchange(low(value, dim), dim, 0, /*isBack=*/false);
    Value odd = exchange(high(value, dim), dim, 1, /*isBack=*/false);
    Value arrived = joinChunks(even, odd, dim);
    // The lower chunk is the even one on ranks at even positions.
    Value balanced =
        joinChunks(chunkAt(arrived, dim, placeOf(0)), chunkAt(arrived, dim, placeOf(1)), dim);
    values.add(of, balanced);
    return balanced;
  }
  Value toBalanced(Value value, int64_t dim) { return toBalanced(value, value, dim); }

  Value fromBalanced(Value balanced, int64_t dim) {
    Value even = exchange(chunkAt(balanced, dim, placeOf(0)), dim, 0, /*isBack=*/true);
    Value odd = exchange(chunkAt(balanced, dim, placeOf(1)), dim, 1, /*isBack=*/true);
    return joinChunks(even, odd, dim);
  }

  /// This rank's keys or values, as attention reads them.
  Value balancedBlock(const RingTensor &tensor) {
    const BlockChain &chain = tensor.chain;
    Value gathered = chain.views.empty() ? chain.source : chain.views.back().op->getResult(0);
    if (Value known = values.lookup(gathered))
      return known;
    Value own = chain.apply(builder, tensor.shard(), builder.getIndexAttr(2 * chunk), 2 * chunk);
    return toBalanced(gathered, own, rowsDim(own));
  }

  /// What a rank does at each later step besides its higher queries and the lower keys of the
  /// block: where the block's owner is before it, its lower queries and those keys, and else the
  /// higher ones of both.
  struct Turn {
    DeviceTable begin;
    Value isLow; ///< whether it is the lower ones
  };
  Turn turnAt(int64_t step) {
    Turn turn;
    DeviceTable flags;
    for (int64_t position : site.position) {
      bool isLow = site.blockAt(position, step) < position;
      turn.begin.push_back(isLow ? 0 : chunk);
      flags.push_back(isLow);
    }
    Type i64 = builder.getI64Type();
    OpFoldResult flag = build(flags);
    Value index = getValueOrCreateConstantIndexOp(builder, emit.getLoc(), flag);
    turn.isLow = emit.binary<aten::EqOp>(emit.ofIndex(index, i64), emit.integer(1, i64));
    return turn;
  }

  std::pair<Value, Value> enter() {
    std::pair<Value, Value> block{balancedBlock(site.key), balancedBlock(site.value)};
    return block;
  }
  void next(std::pair<Value, Value> &block, int64_t step) {
    SmallVector<Value> arrived =
        hop({block.first, block.second}, {rowsDim(block.first), rowsDim(block.second)}, step);
    block = {arrived[0], arrived[1]};
  }

  void forward() {
    Value query = toBalanced(site.query(), rowsDim(site.query()));
    int64_t dim = rowsDim(query);
    auto block = enter();
    RingPart all = attend(query, block.first, block.second, Value(), /*isCausal=*/true);
    auto part = [&](bool isLow) {
      auto of = [&](Value value, int64_t dim) {
        return isLow ? low(value, dim) : high(value, dim);
      };
      return RingPart{of(all.output, rowsDim(all.output)),
                      of(all.logsumexp, rankOf(all.logsumexp) - 1)};
    };
    RingPart ofLow = part(true), ofHigh = part(false);
    Value hidden = emit.scalar(-INFINITY, aten::elementTypeOf(all.logsumexp));
    next(block, 0);
    for (int64_t step = 1; step < site.size(); ++step) {
      auto [key, value] = block;
      if (step + 1 < site.size())
        next(block, step);
      int64_t keys = rowsDim(key);
      ofHigh = merge(ofHigh, attend(high(query, dim), low(key, keys), low(value, keys), Value(),
                                    /*isCausal=*/false));
      Turn turn = turnAt(step);
      RingPart more = attend(chunkAt(query, dim, turn.begin), chunkAt(key, keys, turn.begin),
                             chunkAt(value, keys, turn.begin), Value(), /*isCausal=*/false);
      ofLow = merge(ofLow, {more.output, emit.where(turn.isLow, more.logsumexp, hidden)});
      ofHigh = merge(ofHigh, {more.output, emit.where(turn.isLow, hidden, more.logsumexp)});
    }
    Value output = narrow(joinChunks(ofLow.output, ofHigh.output, rowsDim(ofLow.output)));
    Value whole = fromBalanced(output, rowsDim(output));
    values.add(whole, output);
    RingPart made{whole, {}};
    unused = {ofLow.logsumexp, ofHigh.logsumexp};
    if (site.op->getNumResults() > 1 && !site.op->getResult(1).use_empty()) {
      int64_t rows = rankOf(ofLow.logsumexp) - 1;
      Value sums = joinChunks(ofLow.logsumexp, ofHigh.logsumexp, rows);
      made.logsumexp = fromBalanced(sums, rows);
      values.add(made.logsumexp, sums);
    }
    finish(made);
  }

  void backward() {
    ValueRange operands = site.op->getOperands();
    auto balanced = [&](unsigned number, int64_t fromEnd) {
      return toBalanced(operands[number], rankOf(operands[number]) - fromEnd);
    };
    Value cotangent = balanced(0, 2), query = balanced(1, 2), output = balanced(4, 2),
          sums = balanced(5, 1);
    int64_t dim = rowsDim(query), sumsDim = rankOf(sums) - 1;
    auto block = enter();
    RingGradients own = differentiate(cotangent, query, block.first, block.second, output, sums,
                                      Value(), /*isCausal=*/true);
    Value ofLow = low(own.query, dim), ofHigh = high(own.query, dim);
    Value zero = emit.scalar(0, aten::elementTypeOf(own.query));
    SmallVector<Value> arrived;
    next(block, 0);
    for (int64_t step = 1; step < site.size(); ++step) {
      auto [key, value] = block;
      if (step + 1 < site.size())
        next(block, step);
      int64_t keys = rowsDim(key);
      RingGradients more =
          differentiate(high(cotangent, dim), high(query, dim), low(key, keys), low(value, keys),
                        high(output, dim), high(sums, sumsDim), Value(), /*isCausal=*/false);
      Turn turn = turnAt(step);
      auto at = [&](Value x, int64_t dim) { return chunkAt(x, dim, turn.begin); };
      RingGradients last =
          differentiate(at(cotangent, dim), at(query, dim), at(key, keys), at(value, keys),
                        at(output, dim), at(sums, sumsDim), Value(), /*isCausal=*/false);
      auto ifLow = [&](Value x) { return emit.where(turn.isLow, x, zero); };
      auto ifHigh = [&](Value x) { return emit.where(turn.isLow, zero, x); };
      ofLow = emit.add(ofLow, ifLow(last.query));
      ofHigh = emit.add(ofHigh, emit.add(more.query, ifHigh(last.query)));
      SmallVector<Value> sent;
      SmallVector<int64_t> dims;
      auto send = [&](const RingTensor &tensor, Value ofLower, Value ofTurn) {
        if (!tensor.scatter)
          return;
        Value whole = joinChunks(emit.add(ofLower, ifLow(ofTurn)), ifHigh(ofTurn), keys);
        if (!arrived.empty())
          whole = emit.add(arrived[sent.size()], whole);
        dims.push_back(keys);
        sent.push_back(whole);
      };
      send(site.key, more.key, last.key);
      send(site.value, more.value, last.value);
      if (!sent.empty())
        arrived = hop(sent, dims, step);
    }
    unused.push_back(fromBalanced(narrow(joinChunks(ofLow, ofHigh, dim)), dim));
    replace(site.op->getResult(0), unused.back());
    size_t number = 0;
    auto deliver = [&](const RingTensor &tensor, Value ownPart) {
      if (!tensor.scatter)
        return;
      Value sum = narrow(emit.add(arrived[number++], ownPart));
      replaceScattered(tensor, fromBalanced(sum, rowsDim(sum)));
    };
    deliver(site.key, own.key);
    deliver(site.value, own.value);
  }

  BalancedValues &values;
  const int64_t chunk; ///< rows: half of a rank's
};

} // namespace

void shardc::applyBalancedRing(const RingSite &site, RankValues &ranks, BalancedValues &values,
                               function_ref<void(Operation *)> erased) {
  BalancedRing(site, ranks, values).run(erased);
}
