// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/cuda/kernels/Elements.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;

namespace shardc::cuda {

ElementAccess accessOf(linalg::LinalgOp op, OpOperand &operand, ArrayRef<int> loops) {
  ElementAccess access{operand.get(), {}};
  for (AffineExpr expr : op.getMatchingIndexingMap(&operand).getResults()) {
    auto loop = dyn_cast<AffineDimExpr>(expr);
    access.dims.push_back(loop ? loops[loop.getPosition()] : kNoDim);
  }
  return access;
}

SmallVector<int, 4> loopsFor(OpResult result, ArrayRef<int> dims) {
  auto op = cast<linalg::LinalgOp>(result.getOwner());
  SmallVector<int, 4> loops(op.getNumLoops(), kNoDim);
  AffineMap map = op.getIndexingMapMatchingResult(result);
  for (auto [expr, dim] : llvm::zip_equal(map.getResults(), dims))
    if (auto loop = dyn_cast<AffineDimExpr>(expr))
      loops[loop.getPosition()] = dim;
  return loops;
}

bool isComputedInPlace(const KernelStage &stage, Value tensor) {
  if (stage.kernel.isConstant(tensor))
    return true;
  return stage.contains(tensor) && isPointwise(cast<linalg::LinalgOp>(tensor.getDefiningOp()));
}

static void addReads(const KernelStage &stage, linalg::LinalgOp op, ArrayRef<int> loops,
                     std::set<ElementAccess> &seen, std::vector<ElementAccess> &reads) {
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isa<RankedTensorType>(operand.get().getType()) ||
        !op.payloadUsesValueFromOperand(&operand))
      continue;
    ElementAccess access = accessOf(op, operand, loops);
    if (!seen.insert(access).second)
      continue;
    if (isComputedInPlace(stage, access.tensor)) {
      auto result = cast<OpResult>(access.tensor);
      addReads(stage, cast<linalg::LinalgOp>(result.getOwner()), loopsFor(result, access.dims),
               seen, reads);
    } else if (!stage.contains(access.tensor)) {
      reads.push_back(access);
    }
  }
}

void collectReads(const KernelStage &stage, linalg::LinalgOp op, ArrayRef<int> loops,
                  std::vector<ElementAccess> &reads) {
  std::set<ElementAccess> seen(reads.begin(), reads.end());
  addReads(stage, op, loops, seen, reads);
}

void collectReads(const KernelStage &stage, const ElementAccess &access,
                  std::vector<ElementAccess> &reads) {
  if (isComputedInPlace(stage, access.tensor)) {
    auto result = cast<OpResult>(access.tensor);
    collectReads(stage, cast<linalg::LinalgOp>(result.getOwner()), loopsFor(result, access.dims),
                 reads);
  } else if (!stage.contains(access.tensor) && !llvm::is_contained(reads, access)) {
    reads.push_back(access);
  }
}

Value ElementBuilder::positionOrZero(int dim) {
  return dim == kNoDim ? arith::ConstantIndexOp::create(builder, loc, 0).getResult()
                       : position(dim);
}

Value ElementBuilder::read(const ElementAccess &access) {
  Value place = stage.kernel.placeOf(access.tensor);
  assert(place && "a value that a stage reads was stored by one before");
  SmallVector<Value> positions;
  for (int dim : access.dims)
    positions.push_back(positionOrZero(dim));
  return memref::LoadOp::create(builder, loc, place, positions);
}

SmallVector<Value> ElementBuilder::onlyIf(Value valid, TypeRange types,
                                          llvm::function_ref<SmallVector<Value>()> make) {
  if (!valid)
    return make();
  auto choice = scf::IfOp::create(builder, loc, types, valid, true);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(choice.thenBlock());
  scf::YieldOp::create(builder, loc, make());
  builder.setInsertionPointToStart(choice.elseBlock());
  SmallVector<Value> zeros;
  for (Type type : types)
    zeros.push_back(arith::ConstantOp::create(builder, loc, builder.getZeroAttr(type)));
  scf::YieldOp::create(builder, loc, zeros);
  return SmallVector<Value>(choice.getResults());
}

Value ElementBuilder::lookUp(tensor::ExtractOp extract, linalg::LinalgOp, ArrayRef<int>,
                             ValueRange positions, Value valid) {
  Value memory = stage.kernel.placeOf(extract.getTensor());
  return onlyIf(valid, extract.getType(),
                [&]() -> SmallVector<Value> {
                  return {memref::LoadOp::create(builder, loc, memory, positions)};
                })
      .front();
}

Value ElementBuilder::element(const ElementAccess &access) {
  auto it = known.find(access);
  if (it != known.end())
    return it->second;
  if (!isComputedInPlace(stage, access.tensor))
    return known[access] = read(access);
  auto result = cast<OpResult>(access.tensor);
  auto op = cast<linalg::LinalgOp>(result.getOwner());
  SmallVector<Value> values = compute(op, loopsFor(result, access.dims));
  for (auto [other, value] : llvm::zip_equal(op->getResults(), values)) {
    // Other results have the same element where they are indexed alike.
    if (op.getIndexingMapMatchingResult(other) == op.getIndexingMapMatchingResult(result))
      known[{other, access.dims}] = value;
  }
  return known[access] = values[result.getResultNumber()];
}

/// Records a failure where an index is out of its range. Returns whether all are in range; null
/// where there is nothing to check.
Value ElementBuilder::checkPositions(linalg::LinalgOp op, ValueRange inputs) {
  bool looksUp = false;
  op->walk([&](tensor::ExtractOp) { looksUp = true; });
  Value valid;
  if (!looksUp)
    return valid;
  for (auto [operand, index] : llvm::zip_equal(op.getDpsInputOperands(), inputs))
    for (exec::CheckRangeOp check : stage.kernel.checksOf(operand->get())) {
      Value &inside = checked[{check, index}];
      if (!inside) {
        Value low = arith::IndexCastOp::create(builder, loc, index.getType(), check.getLow());
        Value high = arith::IndexCastOp::create(builder, loc, index.getType(), check.getHigh());
        Value above = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sge, index, low);
        Value below = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, index, high);
        inside = arith::AndIOp::create(builder, loc, above, below);
        Value yes = arith::ConstantIntOp::create(builder, loc, 1, 1);
        Value outside = arith::XOrIOp::create(builder, loc, inside, yes);
        exec::FailIfOp::create(builder, loc, outside, check.getMessageAttr());
      }
      valid = valid ? arith::AndIOp::create(builder, loc, valid, inside).getResult() : inside;
    }
  return valid;
}

/// Positions of loops and elements of whole tensors inside of nested regions.
void ElementBuilder::replaceNested(Operation *copy, linalg::LinalgOp op, ArrayRef<int> loops,
                                   Value valid) {
  OpBuilder::InsertionGuard guard(builder);
  copy->walk([&](linalg::IndexOp index) {
    builder.setInsertionPoint(copy);
    index.replaceAllUsesWith(positionOrZero(loops[index.getDim()]));
    index.erase();
  });
  copy->walk([&](tensor::ExtractOp extract) {
    builder.setInsertionPoint(extract);
    extract.replaceAllUsesWith(
        ElementBuilder::lookUp(extract, op, loops, extract.getIndices(), valid));
    extract.erase();
  });
}

SmallVector<Value> ElementBuilder::compute(linalg::LinalgOp op, ArrayRef<int> loops,
                                           ValueRange inits) {
  Block *body = &op->getRegion(0).front();
  IRMapping mapping;
  SmallVector<Value> inputs;
  unsigned init = 0;
  for (OpOperand &operand : op->getOpOperands()) {
    BlockArgument argument = op.getMatchingBlockArgument(&operand);
    bool isInit = op.isDpsInit(&operand);
    Value value;
    if (isInit && !inits.empty())
      value = inits[init];
    else if (!isa<ShapedType>(operand.get().getType()))
      value = operand.get();
    else if (!argument.use_empty() || !stage.kernel.checksOf(operand.get()).empty())
      value = element(accessOf(op, operand, loops));
    init += isInit;
    if (!isInit)
      inputs.push_back(value);
    if (value)
      mapping.map(argument, value);
  }
  Value valid = checkPositions(op, inputs);
  // Constants of the host code are cheap to have again, and no arguments then.
  llvm::SetVector<Value> captured;
  getUsedValuesDefinedAbove(op->getRegion(0), captured);
  for (OpOperand &operand : op->getOpOperands())
    captured.insert(operand.get());
  for (Value value : captured)
    if (Operation *definition = value.getDefiningOp();
        definition && matchPattern(value, m_Constant()))
      mapping.map(value, builder.clone(*definition)->getResult(0));
  for (OpOperand &operand : op->getOpOperands())
    if (!isa<ShapedType>(operand.get().getType()))
      mapping.map(op.getMatchingBlockArgument(&operand), mapping.lookupOrDefault(operand.get()));
  for (Operation &inner : body->without_terminator()) {
    if (auto index = dyn_cast<linalg::IndexOp>(inner)) {
      mapping.map(index.getResult(), positionOrZero(loops[index.getDim()]));
      continue;
    }
    if (auto extract = dyn_cast<tensor::ExtractOp>(inner)) {
      SmallVector<Value> positions;
      for (Value index : extract.getIndices())
        positions.push_back(mapping.lookupOrDefault(index));
      mapping.map(extract.getResult(), lookUp(extract, op, loops, positions, valid));
      continue;
    }
    Operation *copy = builder.clone(inner, mapping);
    if (copy->getNumRegions() > 0)
      replaceNested(copy, op, loops, valid);
  }
  SmallVector<Value> results;
  for (Value yielded : body->getTerminator()->getOperands())
    results.push_back(mapping.lookupOrDefault(yielded));
  return results;
}

void storeElement(ElementBuilder &elements, const FusedKernel &kernel, OpResult result,
                  ValueRange positions, Value element) {
  SmallVector<Value, 2> places(kernel.destinationsOf(result));
  if (places.empty())
    places.push_back(kernel.placeOf(result));
  for (Value place : places)
    memref::StoreOp::create(elements.builder, elements.loc, element, place, positions);
}

} // namespace shardc::cuda
