// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/training/StepBuilder.h"

#include "dialects/dist/FunctionAttributes.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace shardc::training {

StepBuilder::StepBuilder(func::FuncOp function, dist::MeshAttr mesh)
    : function(function), mesh(mesh), end(function.getBody().front().getTerminator()), builder(end),
      emit(builder, function.getLoc()), lastLaidOut(end->getPrevNode()) {
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    DictionaryAttr attributes = function.getArgAttrDict(i);
    argumentAttributes.push_back(attributes ? attributes : builder.getDictionaryAttr({}));
    for (StringRef name : dist::getNames(attributes))
      argumentNames.insert(name);
  }
  for (unsigned i = 0; i < function.getNumResults(); ++i) {
    DictionaryAttr attributes = function.getResultAttrDict(i);
    resultAttributes.push_back(attributes ? attributes : builder.getDictionaryAttr({}));
    results.push_back(end->getOperand(i));
    for (StringRef name : dist::getNames(attributes))
      outputNames.insert(name);
  }
}

RankedTensorType StepBuilder::typed(RankedTensorType type, const Layout &layout) const {
  return RankedTensorType::get(type.getShape(), type.getElementType(),
                               dist::LayoutAttr::get(type.getContext(), layout));
}

void StepBuilder::claim(llvm::StringSet<> &names, StringRef name, StringRef what) {
  if (names.insert(name).second)
    return;
  isWrong = true;
  function.emitError() << "the training step of '" << function.getName() << "' has " << what
                       << " called '" << name
                       << "', but the model has one of that name: call that of the model otherwise";
}

Value StepBuilder::addArgument(RankedTensorType type, ArrayRef<NamedAttribute> attributes) {
  argumentAttributes.push_back(builder.getDictionaryAttr(attributes));
  return function.getBody().front().addArgument(type, function.getLoc());
}

void StepBuilder::addResult(Value value, ArrayRef<NamedAttribute> attributes) {
  results.push_back(value);
  resultAttributes.push_back(builder.getDictionaryAttr(attributes));
}

Value StepBuilder::addInput(StringRef name, Type elementType) {
  claim(argumentNames, name, "an input");
  NamedAttribute attributes[] = {
      builder.getNamedAttr(dist::kKindAttr, builder.getStringAttr("input")),
      builder.getNamedAttr(dist::kNameAttr, builder.getStringAttr(name))};
  return addArgument(typed(RankedTensorType::get({}, elementType), Layout(mesh.getValue())),
                     attributes);
}

Value StepBuilder::addState(StringRef name, RankedTensorType type, double initial, bool isSaved) {
  claim(argumentNames, name, "a state");
  SmallVector<NamedAttribute> attributes = {
      builder.getNamedAttr(dist::kKindAttr, builder.getStringAttr("state")),
      builder.getNamedAttr(dist::kNameAttr, builder.getStringAttr(name)),
      builder.getNamedAttr(dist::kInitialAttr, builder.getF64FloatAttr(initial))};
  if (!isSaved)
    attributes.push_back(builder.getNamedAttr(dist::kUnsavedAttr, builder.getUnitAttr()));
  return addArgument(type, attributes);
}

void StepBuilder::addOutput(StringRef name, Value value) {
  claim(outputNames, name, "an output");
  addResult(value, {builder.getNamedAttr(dist::kKindAttr, builder.getStringAttr("output")),
                    builder.getNamedAttr(dist::kNameAttr, builder.getStringAttr(name))});
}

void StepBuilder::addUpdate(Value argument, Value value) {
  auto attributes =
      cast<DictionaryAttr>(argumentAttributes[cast<BlockArgument>(argument).getArgNumber()]);
  auto kind = attributes.getAs<StringAttr>(dist::kKindAttr);
  auto type = cast<RankedTensorType>(argument.getType());
  value = redistribute(value, dist::getLayout(type).getValue());
  SmallVector<NamedAttribute> own = {
      builder.getNamedAttr(dist::kKindAttr, builder.getStringAttr(kind.getValue() + "_mutation")),
      builder.getNamedAttr(dist::kNameAttr, attributes.get(dist::kNameAttr))};
  if (Attribute sizes = attributes.get(dist::kSizesAttr))
    own.push_back(builder.getNamedAttr(dist::kSizesAttr, sizes));
  addResult(value, own);
}

Value StepBuilder::redistribute(Value value, const Layout &layout) {
  layOut();
  auto type = cast<RankedTensorType>(value.getType());
  RankedTensorType wanted = typed(type, layout);
  if (type == wanted)
    return value;
  return dist::RedistributeOp::create(builder, emit.getLoc(), wanted, value, /*backward=*/false);
}

Value StepBuilder::sumOfAll(ArrayRef<Value> tensors) {
  layOut();
  llvm::MapVector<Attribute, Value> sums; // by layout
  for (Value tensor : tensors) {
    auto type = cast<RankedTensorType>(tensor.getType());
    Layout layout = dist::getLayout(type).getValue();
    auto dims = llvm::to_vector(llvm::seq<int64_t>(0, type.getRank()));
    Value sum = dims.empty() ? tensor : emit.sum(tensor, dims, /*keepdim=*/false);
    Layout summed(layout.mesh);
    for (auto [axis, placement] : llvm::enumerate(layout.placements))
      if (!placement.isReplicate())
        summed = summed.with(unsigned(axis), Placement::partial());
    auto sumType = cast<RankedTensorType>(sum.getType());
    if (!dims.empty())
      sum.setType(typed(sumType, summed));
    Value &total = sums[dist::LayoutAttr::get(type.getContext(), summed)];
    if (!total) {
      total = sum;
      continue;
    }
    total = emit.add(total, sum);
    total.setType(typed(cast<RankedTensorType>(total.getType()), summed));
  }
  lastLaidOut = end->getPrevNode();
  Value all;
  for (auto &[layout, sum] : sums) {
    Value replicated = replicate(sum);
    all = all ? emit.add(all, replicated) : replicated;
  }
  layOut();
  return all;
}

void StepBuilder::leaveOpen() {
  lastLaidOut = end->getPrevNode();
  // A derivative may have replaced an op of the forward.
  for (unsigned i = 0; i < end->getNumOperands(); ++i)
    results[i] = end->getOperand(i);
}

void StepBuilder::layOut() {
  Operation *first = lastLaidOut ? lastLaidOut->getNextNode() : &end->getBlock()->front();
  for (Operation *op = first; op != end; op = op->getNextNode())
    for (Value result : op->getResults()) {
      auto type = dyn_cast<RankedTensorType>(result.getType());
      if (!type || dist::getLayout(type))
        continue;
      Layout layout(mesh.getValue());
      for (Value operand : op->getOperands()) {
        auto other = dyn_cast<RankedTensorType>(operand.getType());
        if (!other || other.getShape() != type.getShape())
          continue;
        Layout own = dist::getLayout(other).getValue();
        // Scalars of the step are replicated, unless they are sums that ranks hold parts of.
        if (type.getRank() == 0 && !own.hasPartial())
          continue;
        layout = own;
        break;
      }
      result.setType(typed(type, layout));
    }
  lastLaidOut = end->getPrevNode();
}

LogicalResult StepBuilder::finish() {
  layOut();
  if (isWrong)
    return failure();
  end->setOperands(results);
  Block &block = function.getBody().front();
  function.setType(builder.getFunctionType(block.getArgumentTypes(), end->getOperandTypes()));
  function.setArgAttrsAttr(builder.getArrayAttr(argumentAttributes));
  function.setResAttrsAttr(builder.getArrayAttr(resultAttributes));
  return success();
}

} // namespace shardc::training
