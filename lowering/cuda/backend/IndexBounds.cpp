// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "lowering/cuda/backend/IndexBounds.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace shardc::cuda {

static constexpr int64_t kMost = (int64_t(1) << 31) - 1;

IndexBounds::IndexBounds(gpu::GPUFuncOp function, gpu::LaunchFuncOp launch)
    : function(function), launch(launch), host(launch), loc(launch.getLoc()) {}

//===-- Expressions of the host ---------------------------------------------------------------===//

Value IndexBounds::materialize(OpFoldResult a) {
  return getValueOrCreateConstantIndexOp(host, loc, a);
}

// Whatever is computed here is required to be less than 2^31, and so is all that it is computed
// from: nothing wraps unseen.
OpFoldResult IndexBounds::add(OpFoldResult a, OpFoldResult b) {
  std::optional<int64_t> x = getConstantIntValue(a), y = getConstantIntValue(b);
  if (x && y)
    return number(*x + *y);
  return arith::AddIOp::create(host, loc, materialize(a), materialize(b)).getResult();
}

OpFoldResult IndexBounds::mul(OpFoldResult a, OpFoldResult b) {
  std::optional<int64_t> x = getConstantIntValue(a), y = getConstantIntValue(b);
  if ((x && *x == 0) || (y && *y == 0))
    return number(0);
  if (x && y)
    return number(*x * *y);
  return arith::MulIOp::create(host, loc, materialize(a), materialize(b)).getResult();
}

OpFoldResult IndexBounds::quotient(OpFoldResult a, int64_t by) {
  if (std::optional<int64_t> x = getConstantIntValue(a))
    return number(*x / by);
  return arith::DivUIOp::create(host, loc, materialize(a), materialize(number(by))).getResult();
}

OpFoldResult IndexBounds::larger(OpFoldResult a, OpFoldResult b) {
  std::optional<int64_t> x = getConstantIntValue(a), y = getConstantIntValue(b);
  if (a == b)
    return a;
  if (x && y)
    return number(std::max(*x, *y));
  return arith::MaxSIOp::create(host, loc, materialize(a), materialize(b)).getResult();
}

OpFoldResult IndexBounds::smaller(OpFoldResult a, OpFoldResult b) {
  std::optional<int64_t> x = getConstantIntValue(a), y = getConstantIntValue(b);
  if (a == b)
    return a;
  if (x && y)
    return number(std::min(*x, *y));
  return arith::MinSIOp::create(host, loc, materialize(a), materialize(b)).getResult();
}

void IndexBounds::require(OpFoldResult most) {
  if (std::optional<int64_t> constant = getConstantIntValue(most)) {
    failed |= *constant < 0 || *constant > kMost;
    return;
  }
  if (!required.insert(cast<Value>(most)).second)
    return;
  Value holds = arith::CmpIOp::create(host, loc, arith::CmpIPredicate::ule, cast<Value>(most),
                                      materialize(number(kMost)));
  guard = guard ? arith::AndIOp::create(host, loc, guard, holds).getResult() : holds;
}

//===-- Bounds of values ----------------------------------------------------------------------===//

IndexBound IndexBounds::of(Value value) {
  auto found = known.find(value);
  if (found != known.end())
    return found->second;
  known[value] = {}; // in a circle nothing is known
  IndexBound bound = isa<BlockArgument>(value) ? ofArgument(cast<BlockArgument>(value))
                                               : ofOp(value.getDefiningOp(), cast<OpResult>(value));
  if (bound.isKnown())
    require(bound.most);
  return known[value] = bound;
}

IndexBound IndexBounds::ofArgument(BlockArgument argument) {
  if (argument.getOwner() == &function.getBody().front()) {
    if (!argument.getType().isIndex() ||
        argument.getArgNumber() >= launch.getKernelOperands().size())
      return {};
    return {getAsOpFoldResult(launch.getKernelOperands()[argument.getArgNumber()])};
  }
  auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
  if (!loop || argument != loop.getInductionVar() || loop.getUnsignedCmp())
    return {};
  IndexBound from = of(loop.getLowerBound()), to = of(loop.getUpperBound()),
             step = of(loop.getStep());
  if (!from.isKnown() || !to.isKnown() || !step.isKnown())
    return {};
  // Behind the last turn it is beyond the end.
  require(add(to.most, step.most));
  return {larger(from.most, to.most), from.isNatural};
}

IndexBound IndexBounds::ofOp(Operation *op, OpResult result) {
  IntegerAttr constant;
  if (matchPattern(op, m_Constant(&constant))) {
    if (constant.getValue().getSignificantBits() > 62)
      return {};
    int64_t v = constant.getValue().getSExtValue();
    return {number(std::abs(v)), v >= 0};
  }
  // Less than the number that there are.
  auto below = [&](OpFoldResult count) -> IndexBound {
    std::optional<int64_t> constant = getConstantIntValue(count);
    return {constant ? number(std::max<int64_t>(*constant - 1, 0)) : count};
  };
  auto dim = [](const gpu::KernelDim3 &sizes, gpu::Dimension d) {
    return getAsOpFoldResult(d == gpu::Dimension::x   ? sizes.x
                             : d == gpu::Dimension::y ? sizes.y
                                                      : sizes.z);
  };
  return TypeSwitch<Operation *, IndexBound>(op)
      .Case([&](gpu::ThreadIdOp id) {
        return below(dim(launch.getBlockSizeOperandValues(), id.getDimension()));
      })
      .Case([&](gpu::BlockIdOp id) {
        return below(dim(launch.getGridSizeOperandValues(), id.getDimension()));
      })
      .Case([&](gpu::BlockDimOp id) {
        return IndexBound{dim(launch.getBlockSizeOperandValues(), id.getDimension())};
      })
      .Case([&](gpu::GridDimOp id) {
        return IndexBound{dim(launch.getGridSizeOperandValues(), id.getDimension())};
      })
      .Case<gpu::LaneIdOp, gpu::SubgroupIdOp>([&](Operation *) { return below(number(32)); })
      .Case([&](memref::ExtractAlignedPointerAsIndexOp) {
        return IndexBound{{}, false, /*isAddress=*/true};
      })
      .Case([&](gpu::ShuffleOp shuffle) {
        // Of another thread: the bound is that of all.
        return result == shuffle.getShuffleResult() ? of(shuffle.getValue()) : IndexBound();
      })
      .Case([&](scf::IfOp branch) -> IndexBound {
        IndexBound a = of(branch.thenYield().getOperand(result.getResultNumber())),
                   b = of(branch.elseYield().getOperand(result.getResultNumber()));
        if (!a.isKnown() || !b.isKnown())
          return {};
        return {larger(a.most, b.most), a.isNatural && b.isNatural};
      })
      .Default([&](Operation *other) { return ofArith(other); });
}

IndexBound IndexBounds::ofArith(Operation *op) {
  if (op->getNumResults() != 1 || !isa<arith::ArithDialect>(op->getDialect()) ||
      !isa<IntegerType, IndexType>(op->getResult(0).getType()))
    return {};
  if (auto choice = dyn_cast<arith::SelectOp>(op)) {
    IndexBound a = of(choice.getTrueValue()), b = of(choice.getFalseValue());
    if (!a.isKnown() || !b.isKnown())
      return {};
    return {larger(a.most, b.most), a.isNatural && b.isNatural};
  }
  if (!llvm::all_of(op->getOperandTypes(),
                    [](Type type) { return isa<IntegerType, IndexType>(type); }))
    return {};
  IndexBound a = of(op->getOperand(0)), b = op->getNumOperands() > 1 ? of(op->getOperand(1)) : a;
  bool natural = a.isNatural && b.isNatural;
  if (isa<arith::AndIOp>(op)) {
    // What a mask leaves, of an address too.
    if (!(a.isKnown() || a.isAddress) || !(b.isKnown() || b.isAddress))
      return {};
    const IndexBound &mask = b.isKnown() && b.isNatural ? b : a;
    return mask.isKnown() && mask.isNatural ? IndexBound{mask.most} : IndexBound();
  }
  if (isa<arith::AddIOp, arith::SubIOp, arith::OrIOp, arith::MulIOp>(op) &&
      (a.isAddress || b.isAddress) && (a.isKnown() || a.isAddress) && (b.isKnown() || b.isAddress))
    return {{}, false, /*isAddress=*/true};
  if (!a.isKnown() || !b.isKnown())
    return {};
  bool isUnsigned = isa<arith::DivUIOp, arith::CeilDivUIOp, arith::RemUIOp, arith::ShRUIOp,
                        arith::IndexCastUIOp, arith::ExtUIOp>(op);
  if (isUnsigned && !natural)
    return {};
  std::optional<int64_t> right = getConstantIntValue(b.most);
  return TypeSwitch<Operation *, IndexBound>(op)
      .Case<arith::AddIOp>([&](auto) { return IndexBound{add(a.most, b.most), natural}; })
      .Case<arith::SubIOp>([&](auto) { return IndexBound{add(a.most, b.most), false}; })
      .Case<arith::MulIOp>([&](auto) { return IndexBound{mul(a.most, b.most), natural}; })
      .Case<arith::OrIOp>([&](auto) -> IndexBound {
        return natural ? IndexBound{add(a.most, b.most)} : IndexBound();
      })
      .Case<arith::DivUIOp, arith::DivSIOp, arith::FloorDivSIOp>([&](auto) -> IndexBound {
        // A divisor that is not constant may be 1.
        bool isConstant = right && matchPattern(op->getOperand(1), m_Constant()) && *right > 0;
        return {isConstant && natural ? quotient(a.most, *right) : a.most, natural};
      })
      .Case<arith::CeilDivUIOp, arith::CeilDivSIOp>(
          [&](auto) { return IndexBound{add(a.most, b.most), natural}; })
      .Case<arith::RemUIOp, arith::RemSIOp>(
          [&](auto) { return IndexBound{smaller(a.most, b.most), a.isNatural}; })
      .Case<arith::MinUIOp>([&](auto) -> IndexBound {
        // Without a sign, what is negative is larger than all that is not, in 32 bits as in 64.
        if (a.isNatural != b.isNatural)
          return {a.isNatural ? a.most : b.most};
        return {natural ? smaller(a.most, b.most) : larger(a.most, b.most), natural};
      })
      .Case<arith::MaxUIOp>([&](auto) { return IndexBound{larger(a.most, b.most), natural}; })
      .Case<arith::MinSIOp>([&](auto) {
        return IndexBound{natural ? smaller(a.most, b.most) : larger(a.most, b.most), natural};
      })
      .Case<arith::MaxSIOp>(
          [&](auto) { return IndexBound{larger(a.most, b.most), a.isNatural || b.isNatural}; })
      .Case<arith::ShLIOp>([&](auto) -> IndexBound {
        if (!right || *right > 30)
          return {};
        return {mul(a.most, number(int64_t(1) << *right)), natural};
      })
      .Case<arith::ShRUIOp, arith::IndexCastOp, arith::IndexCastUIOp, arith::ExtUIOp,
            arith::ExtSIOp, arith::TruncIOp>([&](auto) -> IndexBound {
        // Fewer bits than 32 may cut a number off.
        if (auto type = dyn_cast<IntegerType>(op->getResult(0).getType());
            type && type.getWidth() < 32)
          return {};
        return {a.most, a.isNatural};
      })
      .Default([](Operation *) { return IndexBound(); });
}

//===-- The proof -----------------------------------------------------------------------------===//

bool IndexBounds::isOnlyPosition(Value value) {
  return llvm::all_of(value.getUses(), [](OpOperand &use) {
    return isa<memref::LoadOp, memref::StoreOp, memref::AtomicRMWOp, vector::LoadOp,
               vector::StoreOp>(use.getOwner());
  });
}

bool IndexBounds::proveSpan(Value memory) {
  if (memory.getDefiningOp<gpu::DynamicSharedMemoryOp>())
    return true;
  auto type = cast<MemRefType>(memory.getType());
  SmallVector<int64_t> strides;
  int64_t offset;
  if (mlir::failed(type.getStridesAndOffset(strides, offset)))
    return false;
  auto cast = memory.getDefiningOp<memref::ReinterpretCastOp>();
  if (!cast && (!type.hasStaticShape() || ShapedType::isDynamic(offset) ||
                llvm::any_of(strides, ShapedType::isDynamic)))
    return false;
  auto bounded = [&](OpFoldResult value) -> OpFoldResult {
    if (isa<Attribute>(value))
      return value;
    IndexBound bound = of(mlir::cast<Value>(value));
    return bound.isNatural ? bound.most : OpFoldResult();
  };
  OpFoldResult sum = cast ? bounded(cast.getMixedOffsets().front()) : number(offset);
  if (!sum)
    return false;
  for (int64_t d = 0; d < type.getRank(); ++d) {
    OpFoldResult size = cast ? bounded(cast.getMixedSizes()[d]) : number(type.getDimSize(d));
    OpFoldResult stride = cast ? bounded(cast.getMixedStrides()[d]) : number(strides[d]);
    if (!size || !stride)
      return false;
    require(size);
    require(stride);
    OpFoldResult span = mul(size, stride);
    require(span);
    sum = add(sum, span);
    require(sum);
  }
  return !failed;
}

bool IndexBounds::proveOp(Operation *op) {
  auto isIndex = [](Type type) { return getElementTypeOrSelf(type).isIndex(); };
  for (Value result : op->getResults()) {
    if (isa<MemRefType>(result.getType())) {
      if (!proveSpan(result))
        return false;
    } else if (isIndex(result.getType())) {
      if (!result.getType().isIndex())
        return false;
      IndexBound bound = of(result);
      if (!bound.isKnown() && !bound.isAddress && !isOnlyPosition(result))
        return false;
    }
  }
  // Comparisons, and numbers that leave as data. Numbers that fit into 32 bits with sign have one
  // order in 32 and 64 bits, with and without it.
  if (isa<arith::CmpIOp, arith::IndexCastOp, arith::IndexCastUIOp>(op))
    for (Value operand : op->getOperands()) {
      if (!operand.getType().isIndex())
        continue;
      IndexBound bound = of(operand);
      if (!bound.isKnown() || (isa<arith::IndexCastUIOp>(op) && !bound.isNatural))
        return false;
    }
  for (Region &region : op->getRegions())
    for (Block &block : region)
      for (BlockArgument argument : block.getArguments()) {
        if (isa<MemRefType>(argument.getType()) && !proveSpan(argument))
          return false;
        if (isIndex(argument.getType()) && !of(argument).isKnown() && !isOnlyPosition(argument))
          return false;
      }
  return !failed;
}

bool IndexBounds::prove() {
  Operation *before = launch->getPrevNode();
  WalkResult walked = function->walk<WalkOrder::PreOrder>(
      [&](Operation *op) { return proveOp(op) ? WalkResult::advance() : WalkResult::interrupt(); });
  if (!walked.wasInterrupted() && !failed)
    return true;
  // Nobody asks for what was made in front of the launch.
  while (launch->getPrevNode() != before)
    launch->getPrevNode()->erase();
  guard = {};
  return false;
}

} // namespace shardc::cuda
