// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/cpu/RangeChecks.h"

#include "dialects/exec/Exec.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace shardc::cpu {
namespace {

/// Whether all integers in memory lie in [low, high), as i1.
Value allInRange(OpBuilder &builder, Location loc, Value memory, Value low, Value high) {
  auto type = cast<MemRefType>(memory.getType());
  Type element = type.getElementType();
  Value from = arith::IndexCastOp::create(builder, loc, element, low);
  Value to = arith::IndexCastOp::create(builder, loc, element, high);
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  Value one = arith::ConstantIndexOp::create(builder, loc, 1);
  SmallVector<Value> begins, ends, steps;
  for (int64_t dim = 0; dim < type.getRank(); ++dim) {
    begins.push_back(zero);
    if (type.isDynamicDim(dim))
      ends.push_back(memref::DimOp::create(builder, loc, memory, dim));
    else
      ends.push_back(arith::ConstantIndexOp::create(builder, loc, type.getDimSize(dim)));
    steps.push_back(one);
  }
  Value valid = arith::ConstantIntOp::create(builder, loc, 1, 1);
  auto check = [&](OpBuilder &b, Location loc, ValueRange position, Value soFar) -> Value {
    Value index = memref::LoadOp::create(b, loc, memory, position);
    Value above = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, index, from);
    Value below = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, index, to);
    Value inside = arith::AndIOp::create(b, loc, above, below);
    return arith::AndIOp::create(b, loc, soFar, inside);
  };
  if (begins.empty())
    return check(builder, loc, {}, valid);
  scf::LoopNest nest =
      scf::buildLoopNest(builder, loc, begins, ends, steps, valid,
                         [&](OpBuilder &b, Location loc, ValueRange position, ValueRange carried) {
                           return scf::ValueVector{check(b, loc, position, carried.front())};
                         });
  return nest.results.front();
}

} // namespace

void emitRangeChecks(func::FuncOp kernel, OpBuilder &builder) {
  SmallVector<exec::CheckRangeOp> checks = llvm::to_vector(kernel.getOps<exec::CheckRangeOp>());
  if (checks.empty())
    return;
  Value valid;
  for (exec::CheckRangeOp check : checks) {
    Location loc = check.getLoc();
    Value memory = check.getIndices();
    if (auto read = memory.getDefiningOp<bufferization::ToTensorOp>())
      memory = read.getBuffer();
    Value inside = allInRange(builder, loc, memory, check.getLow(), check.getHigh());
    Value yes = arith::ConstantIntOp::create(builder, loc, 1, 1);
    Value outside = arith::XOrIOp::create(builder, loc, inside, yes);
    exec::FailIfOp::create(builder, loc, outside, check.getMessageAttr());
    valid = valid ? arith::AndIOp::create(builder, loc, valid, inside).getResult() : inside;
    check.erase();
  }
  auto guard = scf::IfOp::create(builder, kernel.getLoc(), valid, /*withElseRegion=*/false);
  builder.setInsertionPoint(guard.thenYield());
}

} // namespace shardc::cpu
