// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/cuda/kernels/Reductions.h"

#include "lowering/cuda/Accesses.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace shardc::cuda {
namespace {

/// The value that changes nothing; null for an op that has none here.
TypedAttr neutralOf(Operation *combiner) {
  Type type = combiner->getResult(0).getType();
  auto integer = [&](const APInt &value) { return IntegerAttr::get(type, value); };
  unsigned width = type.isIntOrFloat() ? type.getIntOrFloatBitWidth() : 0;
  if (isa<arith::AddFOp>(combiner))
    return FloatAttr::get(type, 0.0);
  if (isa<arith::MulFOp>(combiner))
    return FloatAttr::get(type, 1.0);
  if (isa<arith::MaximumFOp, arith::MaxNumFOp, arith::MinimumFOp, arith::MinNumFOp>(combiner)) {
    bool negative = isa<arith::MaximumFOp, arith::MaxNumFOp>(combiner);
    return FloatAttr::get(type,
                          APFloat::getInf(cast<FloatType>(type).getFloatSemantics(), negative));
  }
  if (isa<arith::AddIOp, arith::OrIOp, arith::XOrIOp, arith::MaxUIOp>(combiner))
    return integer(APInt::getZero(width));
  if (isa<arith::MulIOp>(combiner))
    return integer(APInt(width, 1));
  if (isa<arith::AndIOp, arith::MinUIOp>(combiner))
    return integer(APInt::getAllOnes(width));
  if (isa<arith::MaxSIOp>(combiner))
    return integer(APInt::getSignedMinValue(width));
  if (isa<arith::MinSIOp>(combiner))
    return integer(APInt::getSignedMaxValue(width));
  return {};
}

/// Whether `value`, in a body, depends on block arguments only through `known`.
bool dependsOnlyOn(Value value, ArrayRef<Value> known, Block *body) {
  if (llvm::is_contained(known, value))
    return true;
  if (auto argument = dyn_cast<BlockArgument>(value))
    return argument.getOwner() != body;
  Operation *op = value.getDefiningOp();
  if (op->getBlock() != body)
    return true;
  return op->getNumRegions() == 0 && isMemoryEffectFree(op) && !isa<linalg::IndexOp>(op) &&
         llvm::all_of(op->getOperands(),
                      [&](Value operand) { return dependsOnlyOn(operand, known, body); });
}

Value cloneValue(OpBuilder &builder, Value value, Block *body, IRMapping &mapping) {
  if (Value known = mapping.lookupOrNull(value))
    return known;
  Operation *op = value.getDefiningOp();
  if (!op || op->getBlock() != body)
    return value;
  for (Value operand : op->getOperands())
    cloneValue(builder, operand, body, mapping);
  builder.clone(*op, mapping);
  return mapping.lookup(value);
}

Value constantOf(OpBuilder &builder, Location loc, TypedAttr value) {
  return arith::ConstantOp::create(builder, loc, value);
}

} // namespace

FailureOr<ReductionCombiner> ReductionCombiner::match(linalg::GenericOp op) {
  ReductionCombiner result;
  Block *body = op.getBody();
  auto yield = cast<linalg::YieldOp>(body->getTerminator());
  auto accumulatorOf = [&](unsigned number) -> BlockArgument {
    return op.getMatchingBlockArgument(op.getDpsInitOperand(number));
  };
  for (unsigned number = 0; number < op.getNumDpsInits(); ++number)
    if (!accumulatorOf(number).use_empty())
      result.stateResults.push_back(number);
  ArrayRef<unsigned> states = result.stateResults;
  SmallVector<Value> accumulators;
  for (unsigned number : states) {
    accumulators.push_back(accumulatorOf(number));
    result.stateTypes.push_back(accumulators.back().getType());
  }
  auto isAccumulator = [&](Value value) { return llvm::is_contained(accumulators, value); };
  // What an element contributes must not depend on the accumulators.
  std::function<bool(Value)> readsAccumulators = [&](Value value) -> bool {
    if (isAccumulator(value))
      return true;
    Operation *definition = value.getDefiningOp();
    if (!definition || definition->getBlock() != body)
      return false;
    bool reads = false;
    definition->walk([&](Operation *inner) { // ops in regions read values, too
      for (Value operand : inner->getOperands())
        if (operand.getParentBlock() == body)
          reads = reads || readsAccumulators(operand);
    });
    return reads;
  };
  for (unsigned i = 0; i < states.size(); ++i) {
    Value yielded = yield.getOperand(states[i]);
    Operation *last = yielded.getDefiningOp();
    if (!last || last->getBlock() != body)
      return failure();
    Part part;
    part.state = i;
    auto select = dyn_cast<arith::SelectOp>(last);
    if (!select) {
      if (last->getNumOperands() != 2 || !neutralOf(last))
        return failure();
      part.combiner = last;
      part.accumulator = last->getOperand(1) == accumulators[i] ? 1 : 0;
      if (last->getOperand(part.accumulator) != accumulators[i] ||
          readsAccumulators(last->getOperand(1 - part.accumulator)))
        return failure();
      result.parts.push_back(part);
      continue;
    }
    if (i + 1 >= states.size() || select.getFalseValue() != accumulators[i])
      return failure();
    auto other = yield.getOperand(states[i + 1]).getDefiningOp<arith::SelectOp>();
    if (!other || other.getCondition() != select.getCondition() ||
        other.getFalseValue() != accumulators[i + 1] ||
        !isa<IntegerType>(result.stateTypes[i + 1]) || readsAccumulators(select.getTrueValue()) ||
        readsAccumulators(other.getTrueValue()))
      return failure();
    part.element = select.getTrueValue();
    part.best = accumulators[i];
    part.better = select.getCondition();
    if (!dependsOnlyOn(part.better, {part.element, part.best}, body))
      return failure();
    result.parts.push_back(part);
    ++i;
  }
  return result;
}

SmallVector<Value> ReductionCombiner::start(OpBuilder &builder, Location loc,
                                            ValueRange inits) const {
  SmallVector<Value> result(inits);
  for (const Part &part : parts)
    if (part.combiner)
      result[part.state] = constantOf(builder, loc, neutralOf(part.combiner));
  return result;
}

SmallVector<Value> ReductionCombiner::combine(OpBuilder &builder, Location loc, ValueRange first,
                                              ValueRange second) const {
  SmallVector<Value> result(first);
  for (const Part &part : parts) {
    unsigned i = part.state;
    if (part.combiner) {
      IRMapping mapping;
      mapping.map(part.combiner->getOperand(part.accumulator), first[i]);
      mapping.map(part.combiner->getOperand(1 - part.accumulator), second[i]);
      result[i] = builder.clone(*part.combiner, mapping)->getResult(0);
      continue;
    }
    Value best = part.best;
    Block *body = best.getParentBlock();
    auto better = [&](Value element, Value best) {
      IRMapping mapping;
      mapping.map(part.element, element);
      mapping.map(part.best, best);
      return cloneValue(builder, part.better, body, mapping);
    };
    // The lower position of equals, whatever threads found them.
    Value replaces = better(second[i], first[i]);
    Value replaced = better(first[i], second[i]);
    Value one = constantOf(builder, loc, builder.getBoolAttr(true));
    Value equal = arith::XOrIOp::create(builder, loc, replaced, one);
    Value earlier =
        arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, second[i + 1], first[i + 1]);
    Value take = arith::OrIOp::create(builder, loc, replaces,
                                      arith::AndIOp::create(builder, loc, equal, earlier));
    for (unsigned state : {i, i + 1})
      result[state] =
          arith::SelectOp::create(builder, loc, take, second[state], first[state]).getResult();
  }
  return result;
}

SmallVector<Value> ReductionCombiner::finish(OpBuilder &builder, Location loc, ValueRange inits,
                                             ValueRange total) const {
  SmallVector<Value> combined;
  SmallVector<Value> result(total);
  for (const Part &part : parts) {
    if (!part.combiner)
      continue; // every thread began with the initial values
    Attribute known;
    if (matchPattern(inits[part.state], m_Constant(&known)) && known == neutralOf(part.combiner))
      continue;
    if (combined.empty())
      combined = combine(builder, loc, inits, total);
    result[part.state] = combined[part.state];
  }
  return result;
}

/// In words of 32 bits, which is what lanes exchange.
static Value exchange(OpBuilder &builder, Location loc, Value value,
                      llvm::function_ref<Value(Value)> ofWord) {
  Type type = value.getType();
  if (type.isF32() || type.isInteger(32))
    return ofWord(value);
  unsigned width = type.getIntOrFloatBitWidth();
  Type bits = builder.getIntegerType(width), word = builder.getI32Type();
  Value whole = value;
  if (type != bits)
    whole = arith::BitcastOp::create(builder, loc, bits, value);
  if (width < 32) {
    Value wide = arith::ExtUIOp::create(builder, loc, word, whole);
    whole = arith::TruncIOp::create(builder, loc, bits, ofWord(wide));
  } else {
    Value half = arith::ConstantIntOp::create(builder, loc, bits, 32);
    Value low = ofWord(arith::TruncIOp::create(builder, loc, word, whole));
    Value high = arith::ShRUIOp::create(builder, loc, whole, half);
    high = ofWord(arith::TruncIOp::create(builder, loc, word, high));
    high =
        arith::ShLIOp::create(builder, loc, arith::ExtUIOp::create(builder, loc, bits, high), half);
    whole =
        arith::OrIOp::create(builder, loc, arith::ExtUIOp::create(builder, loc, bits, low), high);
  }
  return type == bits ? whole : arith::BitcastOp::create(builder, loc, type, whole).getResult();
}

static Value shuffle(OpBuilder &builder, Location loc, Value value, Value offset,
                     gpu::ShuffleMode mode) {
  Value lanes = arith::ConstantIntOp::create(builder, loc, builder.getI32Type(), kWarpLanes);
  return exchange(builder, loc, value, [&](Value word) {
    return gpu::ShuffleOp::create(builder, loc, word, offset, lanes, mode).getShuffleResult();
  });
}

Value shuffleXor(OpBuilder &builder, Location loc, Value value, int64_t mask) {
  Value offset = arith::ConstantIntOp::create(builder, loc, builder.getI32Type(), mask);
  return shuffle(builder, loc, value, offset, gpu::ShuffleMode::XOR);
}

Value shuffleUp(OpBuilder &builder, Location loc, Value value, int64_t offset) {
  Value by = arith::ConstantIntOp::create(builder, loc, builder.getI32Type(), offset);
  return shuffle(builder, loc, value, by, gpu::ShuffleMode::UP);
}

Value shuffleFrom(OpBuilder &builder, Location loc, Value value, Value lane) {
  Value from = arith::IndexCastOp::create(builder, loc, builder.getI32Type(), lane);
  return shuffle(builder, loc, value, from, gpu::ShuffleMode::IDX);
}

Value SharedBuffers::take(Type element, int64_t count) {
  MemRefType type = sharedMemory({count}, element);
  for (Buffer &buffer : buffers)
    if (buffer.passes >= 2 && buffer.memory.getType() == type) {
      buffer.passes = 0;
      return buffer.memory;
    }
  buffers.push_back({launch.addWorkgroupAttribution(type, launch.getLoc()), 0});
  return buffers.back().memory;
}

void SharedBuffers::nextPass() {
  for (Buffer &buffer : buffers)
    ++buffer.passes;
}

static void reduceLanes(OpBuilder &builder, Location loc, TeamState &state, int64_t lanes) {
  for (int64_t mask = lanes / 2; mask > 0; mask /= 2) {
    SmallVector<Value> others;
    for (Value value : state.values)
      others.push_back(shuffleXor(builder, loc, value, mask));
    state.values = state.combiner->combine(builder, loc, state.values, others);
  }
}

/// Each thread of a column reads what all of its team have found.
static void reduceColumns(OpBuilder &builder, Location loc, const RowTeam &team,
                          MutableArrayRef<TeamState> states, SharedBuffers &shared) {
  Value rows = arith::ConstantIndexOp::create(builder, loc, team.rows);
  auto at = [&](Value rank) -> Value {
    Value first = arith::MulIOp::create(builder, loc, rank, rows);
    return arith::AddIOp::create(builder, loc, first, team.row);
  };
  SmallVector<SmallVector<Value>> buffers;
  Value own = at(team.rank);
  for (TeamState &state : states)
    for (SmallVector<Value> &list = buffers.emplace_back(); Value value : state.values) {
      list.push_back(shared.take(value.getType(), team.size * team.rows));
      memref::StoreOp::create(builder, loc, value, list.back(), own);
    }
  gpu::BarrierOp::create(builder, loc);
  for (auto [state, list] : llvm::zip_equal(states, buffers)) {
    SmallVector<SmallVector<Value>> found;
    for (int64_t rank = 0; rank < team.size; ++rank) {
      Value other = at(arith::ConstantIndexOp::create(builder, loc, rank));
      for (SmallVector<Value> &values = found.emplace_back(); Value buffer : list)
        values.push_back(memref::LoadOp::create(builder, loc, buffer, other));
    }
    for (; found.size() > 1; found.resize(found.size() / 2))
      for (size_t i = 0; i < found.size() / 2; ++i)
        found[i] = state.combiner->combine(builder, loc, found[i], found[i + found.size() / 2]);
    state.values = found.front();
  }
}

void reduceTeam(OpBuilder &builder, Location loc, const RowTeam &team,
                MutableArrayRef<TeamState> states, SharedBuffers &shared) {
  if (team.size == 1 || states.empty()) // nobody reads what others have: there is no barrier
    return;
  if (team.columns) {
    reduceColumns(builder, loc, team, states, shared);
    shared.nextPass();
    return;
  }
  for (TeamState &state : states)
    reduceLanes(builder, loc, state, std::min(team.size, kWarpLanes));
  int64_t warps = team.size / kWarpLanes;
  if (warps <= 1)
    return;
  Value lanes = arith::ConstantIndexOp::create(builder, loc, kWarpLanes);
  Value number = arith::ConstantIndexOp::create(builder, loc, warps);
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  Value lane = arith::RemUIOp::create(builder, loc, team.rank, lanes);
  Value warp = arith::DivUIOp::create(builder, loc, team.rank, lanes);
  Value isFirst = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, lane, zero);
  auto choice = scf::IfOp::create(builder, loc, isFirst, /*withElseRegion=*/false);
  SmallVector<SmallVector<Value>> buffers;
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(choice.thenYield());
    for (TeamState &state : states)
      for (SmallVector<Value> &list = buffers.emplace_back(); Value value : state.values) {
        list.push_back(shared.take(value.getType(), warps));
        memref::StoreOp::create(builder, loc, value, list.back(), warp);
      }
  }
  gpu::BarrierOp::create(builder, loc);
  Value from = arith::RemUIOp::create(builder, loc, lane, number);
  for (auto [state, list] : llvm::zip_equal(states, buffers)) {
    for (auto [value, buffer] : llvm::zip_equal(state.values, list))
      value = memref::LoadOp::create(builder, loc, buffer, from);
    reduceLanes(builder, loc, state, warps);
  }
  shared.nextPass();
}

static SmallVector<Value> selectAll(OpBuilder &builder, Location loc, Value condition,
                                    ValueRange yes, ValueRange no) {
  SmallVector<Value> result;
  for (auto [a, b] : llvm::zip_equal(yes, no))
    result.push_back(arith::SelectOp::create(builder, loc, condition, a, b));
  return result;
}

/// The combination of this lane's state and those of all lanes before it, within `lanes`.
static SmallVector<Value> scanLanes(OpBuilder &builder, Location loc, Value lane,
                                    const TeamState &state, int64_t lanes) {
  SmallVector<Value> sum(state.values);
  for (int64_t offset = 1; offset < lanes; offset *= 2) {
    SmallVector<Value> before;
    for (Value value : sum)
      before.push_back(shuffleUp(builder, loc, value, offset));
    Value by = arith::ConstantIndexOp::create(builder, loc, offset);
    Value has = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::uge, lane, by);
    SmallVector<Value> joined = state.combiner->combine(builder, loc, before, sum);
    sum = selectAll(builder, loc, has, joined, sum);
  }
  return sum;
}

TeamScan scanTeam(OpBuilder &builder, Location loc, const RowTeam &team, const TeamState &state,
                  SharedBuffers &shared) {
  int64_t lanes = std::min(team.size, kWarpLanes), warps = team.size / lanes;
  Value width = arith::ConstantIndexOp::create(builder, loc, lanes);
  Value lane = arith::RemUIOp::create(builder, loc, team.rank, width);
  SmallVector<Value> sum = scanLanes(builder, loc, lane, state, lanes);
  TeamScan result;
  Value last = arith::ConstantIndexOp::create(builder, loc, lanes - 1);
  Value lastOfTeam = last;
  if (lanes < kWarpLanes) { // teams share a warp
    Value first = arith::MulIOp::create(builder, loc, team.row, width);
    Value all = arith::ConstantIndexOp::create(builder, loc, kWarpLanes);
    first = arith::RemUIOp::create(builder, loc, first, all);
    lastOfTeam = arith::AddIOp::create(builder, loc, first, last);
  }
  for (Value value : sum) {
    result.before.push_back(shuffleUp(builder, loc, value, 1));
    result.all.push_back(shuffleFrom(builder, loc, value, lastOfTeam));
  }
  if (warps == 1)
    return result;
  // Sums of whole warps: the few of them are scanned by every warp.
  SmallVector<Value> buffers;
  for (Value value : sum)
    buffers.push_back(shared.take(value.getType(), warps));
  Value warp = arith::DivUIOp::create(builder, loc, team.rank, width);
  Value isLast = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, lane, last);
  auto choice = scf::IfOp::create(builder, loc, isLast, /*withElseRegion=*/false);
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(choice.thenYield());
    for (auto [value, buffer] : llvm::zip_equal(sum, buffers))
      memref::StoreOp::create(builder, loc, value, buffer, warp);
  }
  gpu::BarrierOp::create(builder, loc);
  Value number = arith::ConstantIndexOp::create(builder, loc, warps);
  Value of = arith::RemUIOp::create(builder, loc, lane, number);
  TeamState ofWarps{state.combiner, {}};
  for (Value buffer : buffers)
    ofWarps.values.push_back(memref::LoadOp::create(builder, loc, buffer, of));
  SmallVector<Value> sums = scanLanes(builder, loc, of, ofWarps, warps);
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  Value one = arith::ConstantIndexOp::create(builder, loc, 1);
  Value isFirstWarp = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, warp, zero);
  Value isFirstLane = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, lane, zero);
  Value previous = arith::SelectOp::create(
      builder, loc, isFirstWarp, zero, arith::SubIOp::create(builder, loc, warp, one).getResult());
  Value lastWarp = arith::ConstantIndexOp::create(builder, loc, warps - 1);
  SmallVector<Value> before;
  result.all.clear();
  for (Value value : sums) {
    before.push_back(shuffleFrom(builder, loc, value, previous));
    result.all.push_back(shuffleFrom(builder, loc, value, lastWarp));
  }
  SmallVector<Value> joined = state.combiner->combine(builder, loc, before, result.before);
  joined = selectAll(builder, loc, isFirstLane, before, joined);
  result.before = selectAll(builder, loc, isFirstWarp, result.before, joined);
  return result;
}

} // namespace shardc::cuda
