// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Few and long rows: blocks share each of them. A pass is a launch that leaves what each block has
// found, and one that combines these in a fixed order and keeps the results of the row.

#include "lowering/cuda/kernels/Launches.h"
#include "lowering/cuda/kernels/RowEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace shardc::cuda {

/// Memory for this launch and those behind it.
static Value allocate(OpBuilder &host, Location loc, ArrayRef<OpFoldResult> sizes, Type element) {
  SmallVector<int64_t> shape;
  SmallVector<Value> dynamic;
  for (OpFoldResult size : sizes) {
    std::optional<int64_t> constant = getConstantIntValue(size);
    shape.push_back(constant ? *constant : ShapedType::kDynamic);
    if (!constant)
      dynamic.push_back(cast<Value>(size));
  }
  return memref::AllocOp::create(host, loc, MemRefType::get(shape, element), dynamic);
}

void RowEmitter::emitSplit() {
  // Blocks for a length that is known when the kernel runs: as the plan has for known ones.
  splits = host.getIndexAttr(plan.splits);
  if (!getConstantIntValue(length)) {
    OpFoldResult useful = divideUp(host, loc, length, plan.team * plan.vector * 8);
    Value one = arith::ConstantIndexOp::create(host, loc, 1);
    Value most = arith::ConstantIndexOp::create(host, loc, plan.splits);
    Value count = arith::MaxUIOp::create(host, loc, cast<Value>(useful), one);
    splits = arith::MinUIOp::create(host, loc, count, most).getResult();
  }
  for (unsigned pass = 0; pass < space.passes(); ++pass) {
    SmallVector<SmallVector<Value>> partial;
    for (const RowReduction *reduction : reductionsOf(pass)) {
      SmallVector<Value> &list = partial.emplace_back();
      linalg::GenericOp op = reduction->op;
      for (auto [number, type] :
           llvm::zip_equal(reduction->combiner.results(), reduction->combiner.types())) {
        list.push_back(allocate(host, loc, {rows, splits}, type));
        scalars[op->getResult(number)] = allocate(host, loc, rows, type);
      }
    }
    if (partial.empty() && resultsOf(pass).empty())
      continue;
    emitPart(pass, partial);
    if (!partial.empty())
      emitCombination(pass, partial);
  }
}

/// Results of the passes before.
void RowEmitter::readScalars(RowLaunch &row, unsigned pass) const {
  for (const RowReduction &reduction : space.reductions()) {
    if (reduction.pass >= pass)
      continue;
    linalg::GenericOp op = reduction.op;
    for (unsigned number : reduction.combiner.results())
      row.scalars[op->getResult(number)] = memref::LoadOp::create(
          row.builder, loc, scalars.lookup(op->getResult(number)), row.number);
  }
}

void RowEmitter::emitPart(unsigned pass, MutableArrayRef<SmallVector<Value>> partial) {
  makeLaunch(splits, [&](RowLaunch &row) {
    OpBuilder &b = row.builder;
    row.pass = pass;
    readScalars(row, pass);
    SmallVector<TeamState> states = startOf(row, pass);
    Value block = row.launch.getBlockIds().y;
    Value team = row.index(plan.team);
    Value begin = arith::MulIOp::create(b, loc, block, team);
    begin = arith::AddIOp::create(b, loc, begin, row.team.rank);
    Value blocks = getValueOrCreateConstantIndexOp(b, loc, splits);
    loop(row, pass, begin, arith::MulIOp::create(b, loc, blocks, team), states);
    reduceTeam(b, loc, row.team, states, row.shared);
    if (states.empty())
      return;
    Value first =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, row.team.rank, row.index(0));
    auto choice = scf::IfOp::create(b, loc, row.both(first, row.active), false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(choice.thenYield());
    for (auto [list, state] : llvm::zip_equal(partial, states))
      for (auto [memory, value] : llvm::zip_equal(list, state.values))
        memref::StoreOp::create(b, loc, value, memory, ValueRange{row.number, block});
  });
}

/// A warp for each row.
void RowEmitter::emitCombination(unsigned pass, ArrayRef<SmallVector<Value>> partial) {
  RowPlan combining;
  combining.team = kWarpLanes;
  combining.rowsOfBlock = 4;
  RowPlan saved = std::exchange(plan, combining);
  makeLaunch({}, [&](RowLaunch &row) {
    OpBuilder &b = row.builder;
    readScalars(row, pass);
    SmallVector<TeamState> states = startOf(row, pass);
    SmallVector<Value> carried;
    for (TeamState &state : states)
      llvm::append_range(carried, state.values);
    Value end = getValueOrCreateConstantIndexOp(b, loc, splits);
    auto loop = scf::ForOp::create(b, loc, row.team.rank, end, row.index(plan.team), carried);
    row.rowBuilder.setInsertionPoint(loop);
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(loop.getBody());
      ValueRange rest = loop.getRegionIterArgs();
      SmallVector<Value> next;
      for (auto [list, state] : llvm::zip_equal(partial, states)) {
        SmallVector<Value> found;
        for (Value memory : list)
          found.push_back(memref::LoadOp::create(b, loc, memory,
                                                 ValueRange{row.number, loop.getInductionVar()}));
        llvm::append_range(next,
                           state.combiner->combine(b, loc, rest.take_front(list.size()), found));
        rest = rest.drop_front(list.size());
      }
      scf::YieldOp::create(b, loc, next);
    }
    row.rowBuilder.setInsertionPoint(b.getInsertionBlock(), b.getInsertionPoint());
    ValueRange rest = loop.getResults();
    for (TeamState &state : states)
      for (Value &value : state.values) {
        value = rest.front();
        rest = rest.drop_front();
      }
    reduceTeam(b, loc, row.team, states, row.shared);
    finish(row, pass, states);
    storeRowResults(row, pass + 1, pass == 0 ? 0 : pass + 1);
    Value first =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, row.team.rank, row.index(0));
    auto choice = scf::IfOp::create(b, loc, row.both(first, row.active), false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(choice.thenYield());
    for (const RowReduction *reduction : reductionsOf(pass)) {
      linalg::GenericOp op = reduction->op;
      for (unsigned number : reduction->combiner.results()) {
        Value result = op->getResult(number);
        memref::StoreOp::create(b, loc, row.scalars[result], scalars.lookup(result), row.number);
      }
    }
  });
  plan = saved;
}

} // namespace shardc::cuda
