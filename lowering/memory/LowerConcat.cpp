// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Concatenations: one buffer, of which each operand is a part. What is computed for the
// concatenation alone is computed in its part; the rest is copied.

#include "lowering/memory/HostProgram.h"

#include "dialects/aten/Aten.h"
#include "dialects/aten/Concatenation.h"
#include "dialects/dist/Dist.h"
#include "dialects/dist/InPlace.h"
#include "lowering/linalg/Iteration.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace shardc::memory {
namespace {

int64_t dimOf(Operation *concat) {
  if (auto cat = dyn_cast<aten::CatOp>(concat))
    return cat.getDim();
  return cast<aten::StackOp>(concat).getDim();
}

bool isIgnored(Operation *concat, unsigned part) {
  auto result = cast<RankedTensorType>(concat->getResult(0).getType());
  return isa<aten::CatOp>(concat) &&
         aten::isSkippedByCat(concat->getOperand(part), result.getRank());
}

} // namespace

StridedView HostProgram::concatBuffer(Operation *concat) {
  Value result = concat->getResult(0);
  auto existing = views.find(result);
  if (existing != views.end())
    return existing->second;
  auto type = cast<RankedTensorType>(result.getType());
  // Parts are placed before the operation is reached only where sizes are static.
  Sizes sizes = getAsIndexOpFoldResult(type.getContext(), type.getShape());
  StridedView buffer = destination(result, sizes, /*mustBeDense=*/false);
  views[result] = buffer;
  return buffer;
}

StridedView HostProgram::concatPart(Operation *concat, unsigned part) {
  IndexMath index = math(concat->getLoc());
  StridedView whole = concatBuffer(concat);
  int64_t dim = dimOf(concat);
  if (isa<aten::StackOp>(concat))
    return select(index, whole, dim, index.constant(part));
  Size start = index.constant(0);
  auto extent = [&](unsigned i) {
    Value operand = concat->getOperand(i);
    int64_t fixed = aten::shapeOf(operand)[dim];
    return ShapedType::isDynamic(fixed) ? sizesOf(operand)[dim] : index.constant(fixed);
  };
  for (unsigned i = 0; i < part; ++i)
    if (!isIgnored(concat, i))
      start = index.add(start, extent(i));
  return slice(index, whole, dim, start, extent(part), 1);
}

LogicalResult lowerConcat(HostProgram &program, Operation *op) {
  Value result = op->getResult(0);
  if (!program.views.contains(result)) {
    FailureOr<Sizes> sizes = program.resultSizes(op, 0);
    if (failed(sizes))
      return failure();
    program.views[result] = program.destination(result, *sizes, /*mustBeDense=*/false);
  }
  for (unsigned part = 0; part < op->getNumOperands(); ++part) {
    if (isIgnored(op, part))
      continue;
    Value operand = op->getOperand(part);
    StridedView target = program.concatPart(op, part);
    StridedView from = program.view(operand);
    auto wish = program.wishes.find(operand);
    bool inPlace = wish != program.wishes.end() && wish->second.concat == op &&
                   wish->second.part == part && from.base == target.base;
    if (!inPlace)
      program.copy(op->getLoc(), from, target);
  }
  return success();
}

namespace {

/// Computed by an op that can write anywhere.
bool canBeComputedInPlace(Value tensor) {
  Operation *op = tensor.getDefiningOp();
  if (!op)
    return false;
  OpClass kind = classify(op);
  return isa<func::CallOp>(op) || kind == OpClass::Gemm;
}

/// All elements, in row-major order.
bool isReshape(Operation *op) {
  std::optional<ViewKind> kind = viewKindOf(op);
  return kind == ViewKind::Reshape || kind == ViewKind::Copy || kind == ViewKind::Alias;
}

/// The tensor of which `value` is a reshape, and whose producer can write to memory of our choice.
Value computedSource(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (isReshape(op)) {
      value = op->getOperand(0);
      continue;
    }
    if (auto wait = dyn_cast<dist::WaitOp>(op))
      return wait.getFutures()[cast<OpResult>(value).getResultNumber()];
    OpClass kind = classify(op);
    bool computed = isa<func::CallOp>(op) || kind == OpClass::Gemm || kind == OpClass::Attention ||
                    kind == OpClass::Scatter || kind == OpClass::Call || kind == OpClass::Concat ||
                    isa<dist::CollectiveOpInterface>(op);
    return computed ? value : Value();
  }
  return {};
}

/// Of a result of a collective that works in place: what computes its operand.
Value operandInPlace(Value result) {
  auto collective = result.getDefiningOp<dist::CollectiveOpInterface>();
  unsigned index = cast<OpResult>(result).getResultNumber();
  if (!collective || !dist::worksInPlace(collective))
    return {};
  return computedSource(collective.getTensors()[index]);
}

} // namespace

void planDestinations(HostProgram &program) {
  Block &block = program.source.getBody().front();
  for (OpOperand &operand : block.getTerminator()->getOpOperands())
    for (Value tensor = computedSource(operand.get()); tensor; tensor = operandInPlace(tensor))
      program.wishes.try_emplace(
          tensor, HostProgram::Wish{static_cast<int>(operand.getOperandNumber()), nullptr, 0});
  for (Operation &op : block) {
    if (classify(&op) != OpClass::Concat)
      continue;
    auto type = cast<RankedTensorType>(op.getResult(0).getType());
    if (!type.hasStaticShape())
      continue;
    for (OpOperand &operand : op.getOpOperands())
      if (canBeComputedInPlace(operand.get()) && !isIgnored(&op, operand.getOperandNumber()) &&
          aten::typeOf(operand.get()).hasStaticShape() &&
          aten::elementTypeOf(operand.get()) == type.getElementType())
        program.wishes.try_emplace(operand.get(),
                                   HostProgram::Wish{-1, &op, operand.getOperandNumber()});
  }
}

} // namespace shardc::memory
