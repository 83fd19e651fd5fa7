// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/gradient/Backward.h"

#include "dialects/aten/SumTo.h"
#include "dialects/dist/Dist.h"
#include "dialects/dist/FunctionAttributes.h"
#include "dialects/dist/Shardings.h"
#include "dialects/interfaces/ModelLocation.h"
#include "passes/gradient/CotangentType.h"

using namespace mlir;
using namespace shardc;

static bool isFloat(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && isa<FloatType>(type.getElementType());
}

Backward::Path::Path(func::FuncOp function, ArrayRef<unsigned> wrt, ArrayRef<unsigned> outputs,
                     bool throughZeros) {
  Block &block = function.getBody().front();
  for (unsigned argument : wrt)
    active.insert(function.getArgument(argument));
  auto reaches = [&](OpOperand &operand) {
    auto differentiable = dyn_cast<DifferentiableOpInterface>(operand.getOwner());
    return throughZeros || !differentiable ||
           !differentiable.hasZeroDerivative(operand.getOperandNumber());
  };
  for (Operation &op : block.without_terminator()) {
    auto differentiable = dyn_cast<DifferentiableOpInterface>(op);
    bool passes = llvm::any_of(op.getOpOperands(), [&](OpOperand &operand) {
      return active.contains(operand.get()) && reaches(operand);
    });
    if (!passes || (differentiable && differentiable.stopsGradient()))
      continue;
    for (Value result : op.getResults())
      if (isFloat(result))
        active.insert(result);
  }
  for (unsigned output : outputs)
    useful.insert(block.getTerminator()->getOperand(output));
  for (Operation &op : llvm::reverse(block.without_terminator()))
    if (llvm::any_of(op.getResults(), [&](Value result) { return contains(result); }))
      for (OpOperand &operand : op.getOpOperands())
        if (reaches(operand))
          useful.insert(operand.get());
}

Backward::Backward(func::FuncOp function, dist::MeshAttr mesh, ArrayRef<unsigned> wrt,
                   ArrayRef<unsigned> outputs)
    : function(function), mesh(mesh), builder(function.getContext()),
      path(function, wrt, outputs, /*throughZeros=*/false),
      pathThroughZeros(function, wrt, outputs, /*throughZeros=*/true) {
  for (Operation &op : function.getBody().front().without_terminator())
    forward.insert(&op);
}

LogicalResult Backward::checkOps() {
  bool supported = true;
  for (Operation &next : function.getBody().front().without_terminator()) {
    if (llvm::none_of(next.getResults(), [&](Value result) { return isOnPath(result); }) ||
        isa<DifferentiableOpInterface>(next))
      continue;
    op = &next;
    refuse() << "has no derivative; detach its operands, or write it as other ops";
    supported = false;
  }
  return success(supported);
}

void Backward::seed(unsigned output, Value cotangent) {
  Operation *terminator = function.getBody().front().getTerminator();
  builder.setInsertionPoint(terminator);
  Value value = terminator->getOperand(output);
  Operation *definition = value.getDefiningOp();
  op = definition ? definition : terminator;
  if (!cotangent)
    cotangent = filledLike(value, 1);
  accumulate(value, cotangent);
}

LogicalResult Backward::build() {
  Block &block = function.getBody().front();
  SmallVector<Operation *> ops;
  for (Operation &next : block.without_terminator())
    if (forward.contains(&next))
      ops.push_back(&next);
  builder.setInsertionPoint(block.getTerminator());
  for (Operation *next : llvm::reverse(ops)) {
    bool reached = llvm::any_of(next->getResults(), [&](Value result) {
      return isOnPath(result) && cotangents.contains(result);
    });
    if (!reached)
      continue;
    op = next;
    auto differentiable = dyn_cast<DifferentiableOpInterface>(next);
    if (!differentiable) {
      refused = true; // checkOps says so
      for (OpOperand &operand : next->getOpOperands())
        if (isNeeded(operand.getOperandNumber()))
          add(operand.getOperandNumber(), filledLike(operand.get(), 0));
      continue;
    }
    ++numDifferentiated;
    refused |= failed(differentiable.differentiate(builder, *this));
  }
  return failure(refused);
}

Value Backward::gradientOf(unsigned argument) {
  Value value = function.getArgument(argument);
  if (Value cotangent = cotangents.lookup(value))
    return cotangent;
  if (!pathThroughZeros.contains(value))
    return {};
  op = function.getBody().front().getTerminator();
  return filledLike(value, 0);
}

Value Backward::filledLike(Value value, double number) {
  SmallVector<OpFoldResult> sizes;
  for (auto [dim, size] : llvm::enumerate(aten::shapeOf(value)))
    if (ShapedType::isDynamic(size))
      sizes.push_back(aten::SymSizeOp::create(builder, getLoc(), builder.getIndexType(), value,
                                              static_cast<int64_t>(dim))
                          .getResult());
    else
      sizes.push_back(builder.getIndexAttr(size));
  Emitter emit(builder, getLoc());
  Value scalar = emit.scalar(number, aten::elementTypeOf(value));
  return sizes.empty() ? scalar : emit.full(sizes, scalar);
}

Value Backward::cotangent(unsigned result) { return cotangents.lookup(op->getResult(result)); }

bool Backward::isNeeded(unsigned operand) const {
  return path.active.contains(op->getOperand(operand));
}

Location Backward::getLoc() const { return makeBackwardLocation(op->getLoc()); }

InFlightDiagnostic Backward::refuse() {
  refused = true;
  return emitError(op->getLoc()) << "'" << op->getName() << "' op in "
                                 << describePlace(op->getLoc()) << ", on the way to the loss, ";
}

void Backward::add(unsigned operand, Value cotangent) {
  if (isNeeded(operand))
    accumulate(op->getOperand(operand), cotangent);
}

void Backward::replace(Operation *other) {
  for (auto [before, after] : llvm::zip(op->getResults(), other->getResults())) {
    for (llvm::DenseSet<Value> *values :
         {&path.active, &path.useful, &pathThroughZeros.active, &pathThroughZeros.useful})
      if (values->erase(before))
        values->insert(after);
    if (Value cotangent = cotangents.lookup(before)) {
      cotangents.erase(before);
      cotangents[after] = cotangent;
    }
    before.replaceAllUsesWith(after);
  }
  forward.erase(op);
  forward.insert(other);
  op->erase();
  op = other;
}

void Backward::accumulate(Value value, Value cotangent) {
  cotangent = fitTo(value, cotangent);
  Value &sum = cotangents[value];
  sum = sum ? addCotangents(value, sum, cotangent) : cotangent;
  wish(value, sum);
}

bool Backward::isElsewhere(Value value) const {
  dist::LayoutAttr layout = dist::getLayout(value.getType());
  return mesh && layout && layout.getMesh() != mesh;
}

namespace {
/// A part of a dim among zeros.
struct PaddedPart {
  Value part;
  int64_t dim, before, after;
};
} // namespace
static std::optional<PaddedPart> paddedPart(Value value) {
  auto pad = value.getDefiningOp<aten::ConstantPadNdOp>();
  if (!pad || !pad.getValue().isZero())
    return std::nullopt;
  std::optional<PaddedPart> found;
  auto rank = static_cast<size_t>(aten::typeOf(value).getRank());
  for (size_t i = 0; i + 1 < pad.getPad().size(); i += 2) { // the last dim first
    int64_t before = pad.getPad()[i], after = pad.getPad()[i + 1];
    if (before == 0 && after == 0)
      continue;
    if (found || before < 0 || after < 0)
      return std::nullopt;
    found = {pad.getSelf(), static_cast<int64_t>(rank - 1 - i / 2), before, after};
  }
  return found;
}

/// The sum of cotangents of two parts that touch: joined, and not each added to zeros, so that
/// ranks send them together. Null where they are anything else.
static Value joinParts(Emitter &emit, Value first, Value second) {
  std::optional<PaddedPart> a = paddedPart(first), b = paddedPart(second);
  if (!a || !b || a->dim != b->dim || first.getType() != second.getType())
    return Value();
  if (a->before > b->before)
    std::swap(a, b);
  int64_t length = aten::shapeOf(a->part)[a->dim];
  if (ShapedType::isDynamic(length) || a->before + length != b->before)
    return Value();
  Value joined = emit.cat({a->part, b->part}, a->dim);
  if (a->before == 0 && b->after == 0)
    return joined;
  SmallVector<int64_t> amounts(2 * static_cast<size_t>(aten::typeOf(joined).getRank() - a->dim));
  amounts[amounts.size() - 2] = a->before;
  amounts.back() = b->after;
  return aten::ConstantPadNdOp::create(emit.getBuilder(), emit.getLoc(), joined, amounts,
                                       APFloat(0.0));
}

Value Backward::addCotangents(Value value, Value first, Value second) {
  if (isElsewhere(value))
    return addElsewhere(cotangentType(cast<RankedTensorType>(value.getType())), first, second);
  Emitter emit(builder, getLoc());
  if (Value joined = joinParts(emit, first, second))
    return fitTo(value, joined);
  return fitTo(value, emit.add(first, second));
}

/// Of a value on another mesh. The sum is computed on the program's mesh, where its terms come
/// from, so that it alone is sent.
Value Backward::addElsewhere(RankedTensorType type, Value first, Value second) {
  auto redistribute = [&](Value value, RankedTensorType to) -> Value {
    return dist::RedistributeOp::create(builder, getLoc(), to, value, /*backward=*/true);
  };
  Layout whole(mesh.getValue());
  auto here = RankedTensorType::get(type.getShape(), type.getElementType(),
                                    dist::LayoutAttr::get(builder.getContext(), whole));
  SmallVector<Value> terms;
  for (Value term : {first, second}) {
    auto sent = term.getDefiningOp<dist::RedistributeOp>();
    if (sent && sent.getBackward() && isElsewhere(term) && !forward.contains(sent)) {
      term = sent.getInput();
      if (sent->use_empty())
        sent.erase();
    }
    terms.push_back(isElsewhere(term) ? redistribute(term, here) : term); // of a third mesh
  }
  Value sum = Emitter(builder, getLoc()).add(terms[0], terms[1]);
  sum.setType(RankedTensorType::get(type.getShape(), type.getElementType()));
  return redistribute(sum, type);
}

/// The cotangent in the value's shape and element type: summed over what the value was repeated
/// along.
Value Backward::fitTo(Value value, Value cotangent) {
  Emitter emit(builder, getLoc());
  auto want = cast<RankedTensorType>(value.getType());
  cotangent = sumTo(emit, cotangent, want);
  // Inference of the backward may know less of the sizes than the forward says.
  auto type = aten::typeOf(cotangent);
  auto exact = RankedTensorType::get(want.getShape(), want.getElementType(), type.getEncoding());
  Operation *definition = cotangent.getDefiningOp();
  if (type != exact && definition && !forward.contains(definition))
    cotangent.setType(exact);
  return cotangent;
}

/// A cotangent is best sharded as the value that it belongs to.
void Backward::wish(Value value, Value cotangent) {
  dist::LayoutAttr layout = dist::getLayout(value.getType());
  Operation *definition = cotangent.getDefiningOp();
  // A value on another mesh says nothing about what is placed on that of the program.
  if (!layout || isElsewhere(value) || !definition || forward.contains(definition) ||
      dist::getLayout(cotangent.getType()))
    return;
  const Layout &have = layout.getValue();
  Sharding wanted{have.mesh, {}};
  for (const Placement &placement : have.placements) {
    AxisSharding &axis = wanted.axes.emplace_back();
    axis.placement = Placement::open();
    if (!placement.isShard())
      continue;
    // In a layout, extents are of what the axes outside leave of the dim.
    bool alone = llvm::count_if(have.placements, [&](const Placement &other) {
                   return other.isShard(placement.dim);
                 }) == 1;
    axis.placement = alone ? placement : Placement::shard(placement.dim);
  }
  for (auto [level, axis] : llvm::enumerate(have.order))
    wanted.axes[axis].level = have.placements[axis].isShard() ? level : 0;
  Attribute attribute = dist::ShardingAttr::get(function.getContext(), wanted);
  Sharding nothing{have.mesh, {}};
  for (size_t axis = 0; axis < have.placements.size(); ++axis)
    nothing.axes.emplace_back().placement = Placement::open();
  auto list = definition->getAttrOfType<ArrayAttr>(dist::kShardingAttr);
  SmallVector<Attribute> wishes;
  if (list)
    wishes.append(list.begin(), list.end());
  else
    wishes.assign(definition->getNumResults(),
                  dist::ShardingAttr::get(function.getContext(), nothing));
  Attribute &mine = wishes[cast<OpResult>(cotangent).getResultNumber()];
  // A value that is the cotangent of several keeps the first wish.
  if (cast<dist::ShardingAttr>(mine).getValue() != nothing)
    return;
  mine = attribute;
  definition->setAttr(dist::kShardingAttr, builder.getArrayAttr(wishes));
}
