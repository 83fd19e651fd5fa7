// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/cuda/kernels/RowEmitter.h"

#include "lowering/cuda/Accesses.h"
#include "lowering/cuda/kernels/Launches.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace shardc::cuda {

static RowShape shapeOf(const RowSpace &space, const RowAccesses &accesses) {
  RowShape shape;
  shape.rows = space.staticRows();
  shape.length = space.staticLength();
  shape.vector = accesses.vector();
  shape.alignedRows = accesses.alignedRows();
  shape.columns = space.isColumns();
  shape.passes = space.passes();
  shape.elementOps = space.elementOps();
  shape.scan = space.isScan();
  for (auto &[access, pass] : space.kept()) {
    Type element = cast<RankedTensorType>(access.tensor.getType()).getElementType();
    ++shape.keptValues;
    shape.keptBytes += element.getIntOrFloatBitWidth() / 8;
  }
  return shape;
}

RowEmitter::RowEmitter(const KernelStage &stage, const RowSpace &space, OpBuilder &host)
    : stage(stage), space(space), host(host), loc(stage.kernel.getLoc()), accesses(stage, space),
      plan(planRows(shapeOf(space, accesses))) {
  for (int dim : space.outer())
    outerExtents.push_back(space.extentOf(stage.kernel, dim));
  for (int dim : space.inner())
    innerExtents.push_back(space.extentOf(stage.kernel, dim));
  rows = multiply(host, loc, outerExtents);
  length = multiply(host, loc, innerExtents);
}

void RowEmitter::emit() {
  if (space.isScan())
    emitScan();
  else if (plan.form == RowPlan::Form::Split)
    emitSplit();
  else
    emitTogether();
}

void RowEmitter::makeLaunch(OpFoldResult blocks, llvm::function_ref<void(RowLaunch &)> body) {
  SmallVector<OpFoldResult> grid{divideUp(host, loc, rows, plan.rowsOfBlock)};
  if (blocks)
    grid.push_back(blocks);
  createLaunch(host, loc, grid, plan.threads(), {}, [&](OpBuilder &b, gpu::LaunchOp launch) {
    RowLaunch row(stage, space, accesses, plan, b, launch);
    row.begin(rows, outerExtents, innerExtents);
    body(row);
    chunks.clear();
  });
}

SmallVector<const RowReduction *> RowEmitter::reductionsOf(unsigned pass) const {
  SmallVector<const RowReduction *> list;
  for (const RowReduction &reduction : space.reductions())
    if (reduction.pass == pass)
      list.push_back(&reduction);
  return list;
}

/// Results with an element for each position.
SmallVector<const RowResult *> RowEmitter::resultsOf(unsigned pass) const {
  SmallVector<const RowResult *> list;
  for (const RowResult &result : space.results())
    if (result.hasPositions && result.pass == pass)
      list.push_back(&result);
  return list;
}

SmallVector<Value> RowEmitter::initsOf(RowLaunch &row, const RowReduction &reduction) const {
  SmallVector<Value> inits;
  linalg::GenericOp op = reduction.op;
  for (unsigned number : reduction.combiner.results()) {
    OpOperand *init = op.getDpsInitOperand(number);
    inits.push_back(
        row.ofRow(accessOf(cast<linalg::LinalgOp>(op.getOperation()), *init, space.loopsOf(op))));
  }
  return inits;
}

SmallVector<TeamState> RowEmitter::startOf(RowLaunch &row, unsigned pass) const {
  SmallVector<TeamState> states;
  for (const RowReduction *reduction : reductionsOf(pass))
    states.push_back({&reduction->combiner,
                      reduction->combiner.start(row.rowBuilder, loc, initsOf(row, *reduction))});
  return states;
}

/// Of what teams have found: the results of the reductions.
void RowEmitter::finish(RowLaunch &row, unsigned pass, ArrayRef<TeamState> states) const {
  for (auto [reduction, state] : llvm::zip_equal(reductionsOf(pass), states)) {
    SmallVector<Value> results =
        reduction->combiner.finish(row.builder, loc, initsOf(row, *reduction), state.values);
    linalg::GenericOp op = reduction->op;
    for (auto [number, value] : llvm::zip_equal(reduction->combiner.results(), results))
      row.scalars[op->getResult(number)] = value;
  }
}

//===----------------------------------------------------------------------===//
// One launch
//===----------------------------------------------------------------------===//

void RowEmitter::emitTogether() {
  makeLaunch({}, [&](RowLaunch &row) {
    if (plan.form == RowPlan::Form::Shared)
      keepInSharedMemory(row);
    for (unsigned pass = 0; pass < space.passes(); ++pass)
      emitPass(row, pass);
    storeRowResults(row, space.passes(), 0);
  });
}

void RowEmitter::keepInSharedMemory(RowLaunch &row) {
  int64_t slack = row.shift ? plan.vector - 1 : 0;
  int64_t slots = llvm::divideCeil(space.staticLength() + slack, plan.vector) * plan.vector;
  for (auto &[access, pass] : space.kept()) {
    Type element = cast<RankedTensorType>(access.tensor.getType()).getElementType();
    row.buffers[access] = row.launch.addWorkgroupAttribution(sharedMemory({slots}, element), loc);
  }
}

/// What a pass does with a chunk.
void RowEmitter::visit(RowChunk &chunk, unsigned pass, MutableArrayRef<TeamState> states) const {
  for (auto [reduction, state] : llvm::zip_equal(reductionsOf(pass), states))
    state.values = chunk.accumulate(*reduction, state.values);
  for (const RowResult *result : resultsOf(pass))
    chunk.store(result->access, chunk.elements(result->access));
}

void RowEmitter::loop(RowLaunch &row, unsigned pass, Value begin, Value step,
                      MutableArrayRef<TeamState> states) const {
  OpBuilder &b = row.builder;
  SmallVector<Value> carried;
  for (TeamState &state : states)
    llvm::append_range(carried, state.values);
  auto unpack = [&](ValueRange values) {
    for (TeamState &state : states)
      for (Value &value : state.values) {
        value = values.front();
        values = values.drop_front();
      }
  };
  auto loop = scf::ForOp::create(b, loc, begin, row.chunks, step, carried);
  row.rowBuilder.setInsertionPoint(loop);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    unpack(loop.getRegionIterArgs());
    RowChunk chunk(row, loop.getInductionVar(), /*bounded=*/true);
    visit(chunk, pass, states);
    SmallVector<Value> next;
    for (TeamState &state : states)
      llvm::append_range(next, state.values);
    if (!next.empty())
      scf::YieldOp::create(b, loc, next);
  }
  unpack(loop.getResults());
  row.rowBuilder.setInsertionPoint(b.getInsertionBlock(), b.getInsertionPoint());
}

void RowEmitter::emitPass(RowLaunch &row, unsigned pass) {
  row.pass = pass;
  SmallVector<TeamState> states = startOf(row, pass);
  if (states.empty() && resultsOf(pass).empty())
    return;
  OpBuilder &b = row.builder;
  if (plan.form == RowPlan::Form::Registers) {
    if (chunks.empty())
      for (int64_t i = 0; i < plan.chunks; ++i) {
        Value number = arith::AddIOp::create(b, loc, row.team.rank, row.index(i * plan.team));
        // The last chunk of all threads exists where the row has as many.
        bool bounded =
            accesses.alignedRows() && (i + 1) * plan.team * plan.vector <= space.staticLength();
        chunks.push_back(std::make_unique<RowChunk>(row, number, bounded));
      }
    for (std::unique_ptr<RowChunk> &chunk : chunks)
      visit(*chunk, pass, states);
  } else {
    loop(row, pass, row.team.rank, row.index(plan.team), states);
  }
  reduceTeam(b, loc, row.team, states, row.shared);
  finish(row, pass, states);
}

/// Results of whole rows that are known after `known` passes, but not before `from`.
void RowEmitter::storeRowResults(RowLaunch &row, unsigned known, unsigned from) const {
  SmallVector<std::pair<const RowResult *, Value>> values;
  for (const RowResult &result : space.results())
    if (!result.hasPositions && result.pass <= known && result.pass >= from)
      values.push_back({&result, row.ofRow(result.access)});
  if (values.empty())
    return;
  OpBuilder &b = row.builder;
  Value first =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, row.team.rank, row.index(0));
  auto choice = scf::IfOp::create(b, loc, row.both(first, row.active), false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(choice.thenYield());
  for (auto [result, value] : values) {
    SmallVector<Value> positions;
    for (int dim : result->access.dims) {
      Value position = dim == kNoDim ? Value() : row.outer.lookup(dim);
      positions.push_back(position ? position : row.index(0));
    }
    SmallVector<Value, 2> places(stage.kernel.destinationsOf(result->value));
    if (places.empty())
      places.push_back(stage.kernel.placeOf(result->value));
    for (Value place : places)
      memref::StoreOp::create(b, loc, value, place, positions);
  }
}

//===----------------------------------------------------------------------===//
// Scans
//===----------------------------------------------------------------------===//

/// All threads of a team take a chunk each, exchange their sums, and run over their chunk again,
/// from the sum of all before it.
void RowEmitter::emitScan() {
  const RowReduction &reduction = space.reductions().front();
  makeLaunch({}, [&](RowLaunch &row) {
    OpBuilder &b = row.builder;
    SmallVector<Value> inits = initsOf(row, reduction);
    // The same number of steps for all teams of a block.
    Value chunks = row.chunks;
    if (row.shift) {
      Value end = arith::AddIOp::create(b, loc, row.length, row.index(plan.vector - 1));
      chunks = arith::CeilDivUIOp::create(b, loc, end, row.index(plan.vector));
      Value empty =
          arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, row.length, row.index(0));
      chunks = arith::SelectOp::create(b, loc, empty, row.index(0), chunks);
    }
    Value steps = arith::CeilDivUIOp::create(b, loc, chunks, row.index(plan.team));
    auto loop = scf::ForOp::create(b, loc, row.index(0), steps, row.index(1), inits);
    row.rowBuilder.setInsertionPoint(loop);
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(loop.getBody());
      SmallVector<Value> state(loop.getRegionIterArgs());
      Value number = arith::MulIOp::create(b, loc, loop.getInductionVar(), row.index(plan.team));
      number = arith::AddIOp::create(b, loc, number, row.team.rank);
      RowChunk chunk(row, number, /*bounded=*/plan.team == 1 && !row.shift);
      SmallVector<Value> carried = state;
      if (plan.team > 1) {
        SmallVector<Value> start = reduction.combiner.start(b, loc, inits);
        TeamState own{&reduction.combiner, chunk.accumulate(reduction, start)};
        TeamScan scan = scanTeam(b, loc, row.team, own, row.shared);
        Value isFirst =
            arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, row.team.rank, row.index(0));
        SmallVector<Value> joined = reduction.combiner.combine(b, loc, state, scan.before);
        carried = reduction.combiner.combine(b, loc, state, scan.all);
        for (auto [value, sum] : llvm::zip_equal(state, joined))
          value = arith::SelectOp::create(b, loc, isFirst, value, sum);
      }
      linalg::GenericOp op = reduction.op;
      SmallVector<SmallVector<Value>> yielded(op->getNumResults());
      for (unsigned i = 0; i < chunk.size(); ++i) {
        auto [next, all] = chunk.step(reduction, i, state);
        state = next;
        for (auto [list, value] : llvm::zip_equal(yielded, all))
          list.push_back(value);
      }
      for (const RowResult *result : resultsOf(0))
        chunk.store(result->access, yielded[result->value.getResultNumber()]);
      // The next step writes the sums of warps that others may still read in this one. After the
      // last step nobody writes them.
      if (plan.team > kWarpLanes) {
        Value next = arith::AddIOp::create(b, loc, loop.getInductionVar(), row.index(1));
        Value goesOn = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, next, steps);
        auto more = scf::IfOp::create(b, loc, goesOn, /*withElseRegion=*/false);
        OpBuilder then = more.getThenBodyBuilder();
        gpu::BarrierOp::create(then, loc);
      }
      scf::YieldOp::create(b, loc, plan.team > 1 ? carried : state);
    }
    row.rowBuilder.setInsertionPoint(b.getInsertionBlock(), b.getInsertionPoint());
    linalg::GenericOp op = reduction.op;
    for (auto [number, value] : llvm::zip_equal(reduction.combiner.results(), loop.getResults()))
      row.scalars[op->getResult(number)] = value;
    storeRowResults(row, 1, 0);
  });
}

} // namespace shardc::cuda
