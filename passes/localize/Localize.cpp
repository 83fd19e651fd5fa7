// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dialects/dist/FindMesh.h"
#include "dialects/dist/FunctionAttributes.h"
#include "dialects/dist/SignatureAttributes.h"
#include "passes/localize/Localizer.h"
#include "passes/localize/OwnRowsAttribute.h"
#include "passes/localize/Passes.h"
#include "passes/localize/RedistributeSteps.h"
#include "passes/localize/RemadeBorders.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"

namespace shardc {
#define GEN_PASS_DEF_LOCALIZE
#include "passes/localize/Passes.h.inc"
} // namespace shardc

using namespace mlir;
using namespace shardc;
using namespace shardc::dist;

namespace {

/// One function. The local body is built beside the placed one and takes its place when all of it
/// is done; until then an op that failed is stood for by casts from nothing, so that all others are
/// tried too.
class FunctionLocalizer {
public:
  explicit FunctionLocalizer(func::FuncOp function)
      : function(function), sizes(function), localizer(sizes, mapping) {}

  LogicalResult run();

  int64_t numOps = 0, numSteps = 0;
  int64_t getNumInner() const { return localizer.getNumInner(); }
  int64_t getNumRemade() { return localizer.remadeBorders().count(); }

private:
  LogicalResult checkTypes();
  void localizeOp(Operation *op);
  FailureOr<SmallVector<Value>> build(Operation *op, ValueRange operands);
  void setSignature();

  func::FuncOp function;
  GlobalSizes sizes;
  IRMapping mapping;
  Localizer localizer;
  Block *local = nullptr;
  bool failedOnce = false;
};

} // namespace

/// A ranked tensor type with a layout that says where everything is, or no tensor at all.
static LogicalResult checkPlaced(Operation *function, Type type,
                                 function_ref<InFlightDiagnostic()> error) {
  if (!isa<TensorType>(type))
    return success();
  LayoutAttr layout = isa<RankedTensorType>(type) ? getLayout(type) : LayoutAttr();
  if (!layout)
    return error() << "has a tensor without layout, " << type
                   << "; place the program first (--shardc-place)";
  // Whoever runs the program has to know of all of its ranks.
  auto module = function->getParentOfType<ModuleOp>();
  if (module && module->hasAttr(kMeshAttr) && !isNamedMesh(function, layout.getMesh()))
    return error() << "has a tensor on the mesh " << layout.getValue().mesh.str()
                   << ", which is not the module's 'dist.mesh', nor one of its 'dist.meshes'";
  return success();
}

LogicalResult FunctionLocalizer::checkTypes() {
  bool placed = true;
  auto check = [&](Type type, function_ref<InFlightDiagnostic()> error) {
    placed &= succeeded(checkPlaced(function, type, error));
  };
  if (!function.getBody().hasOneBlock())
    return function.emitOpError("has control flow, which has no local form");
  for (BlockArgument arg : function.getArguments())
    check(arg.getType(),
          [&] { return function.emitOpError("argument ") << arg.getArgNumber() << " "; });
  for (Operation &op : function.getBody().front()) {
    for (Type type : op.getResultTypes())
      check(type, [&] { return op.emitOpError(); });
    if (op.getNumRegions() != 0) {
      op.emitOpError("has regions, which have no local form");
      placed = false;
    }
  }
  return success(placed);
}

/// A type with the sizes of one that says more of them.
static Type moreExact(Type type, Type other) {
  auto tensor = dyn_cast<RankedTensorType>(type), known = dyn_cast<RankedTensorType>(other);
  if (!tensor || !known || tensor.getRank() != known.getRank())
    return type;
  SmallVector<int64_t> shape(tensor.getShape());
  for (auto [size, given] : llvm::zip_equal(shape, known.getShape()))
    size = ShapedType::isDynamic(size) ? given : size;
  return tensor.clone(shape);
}

/// Results built with less exact types than the layouts say get the exact ones.
static LogicalResult refineTypes(Operation *op, Block *local, MutableArrayRef<Value> values) {
  for (auto [i, value] : llvm::enumerate(values)) {
    Type due = moreExact(getLocalType(op->getResult(i).getType()), value.getType());
    if (value.getType() == due)
      continue;
    Operation *producer = value.getDefiningOp();
    if (!producer || producer->getBlock() != local ||
        !aten::areCompatibleTypes(value.getType(), due))
      return op->emitOpError("internal: localised to ") << value.getType() << ", expected " << due;
    value.setType(due);
  }
  return success();
}

FailureOr<SmallVector<Value>> FunctionLocalizer::build(Operation *op, ValueRange operands) {
  OpBuilder builder = OpBuilder::atBlockEnd(local);
  if (auto redistribute = dyn_cast<RedistributeOp>(op)) {
    ++numSteps;
    if (op->hasAttr(kOwnRowsAttr))
      return SmallVector<Value>(operands);
    FailureOr<Value> value = emitStep(localizer, builder, redistribute, operands[0]);
    if (failed(value))
      return failure();
    return SmallVector<Value>{*value};
  }
  ++numOps;
  if (auto localizable = dyn_cast<LocalizableOpInterface>(op))
    return localizable.localize(builder, operands, localizer);
  // A size that follows from the symbols is the same wherever it is asked for.
  if (op->getNumResults() == 1)
    if (SizeAttr size = sizes.ofIndex(op->getResult(0)))
      return SmallVector<Value>{
          LocalIndices(builder, op->getLoc(), MeshAttr()).global({size, Value()})};
  // What has no tensors is the same on every rank.
  auto isTensor = [](Type type) { return isa<TensorType>(type); };
  if (llvm::none_of(op->getOperandTypes(), isTensor) &&
      llvm::none_of(op->getResultTypes(), isTensor)) {
    IRMapping same;
    same.map(op->getOperands(), operands);
    return SmallVector<Value>(builder.clone(*op, same)->getResults());
  }
  op->emitOpError("cannot be localised: it has no local form (LocalizableOpInterface)");
  return failure();
}

void FunctionLocalizer::localizeOp(Operation *op) {
  SmallVector<Value> operands;
  for (Value operand : op->getOperands())
    operands.push_back(mapping.lookup(operand));
  if (isa<func::ReturnOp>(op)) {
    OpBuilder builder = OpBuilder::atBlockEnd(local);
    func::ReturnOp::create(builder, op->getLoc(), operands);
    return;
  }
  localizer.enter(op);
  FailureOr<SmallVector<Value>> results = build(op, operands);
  if (succeeded(results) && !localizer.lacksSize() && succeeded(refineTypes(op, local, *results))) {
    mapping.map(op->getResults(), *results);
    return;
  }
  failedOnce = true;
  OpBuilder builder = OpBuilder::atBlockEnd(local);
  for (Value result : op->getResults())
    mapping.map(result, UnrealizedConversionCastOp::create(
                            builder, op->getLoc(), getLocalType(result.getType()), ValueRange())
                            .getResult(0));
}

void FunctionLocalizer::setSignature() {
  Builder builder(function.getContext());
  auto global = [&](Type type) {
    auto tensor = cast<RankedTensorType>(type);
    return TypeAttr::get(RankedTensorType::get(tensor.getShape(), tensor.getElementType()));
  };
  FunctionType placed = function.getFunctionType();
  SmallVector<Type> inputs, results;
  SignatureAttributes signature(function);
  auto describe = [&](NamedAttrList &attributes, Type type) {
    if (LayoutAttr layout = getLayout(type)) {
      attributes.set(kLayoutAttr, layout);
      attributes.set(kGlobalTypeAttr, global(type));
    }
  };
  for (auto [i, type] : llvm::enumerate(placed.getInputs())) {
    inputs.push_back(getLocalType(type));
    describe(signature.argument(i), type);
  }
  // A result may have a type that is more exact than that of the placed one.
  llvm::append_range(results, function.getBody().front().getTerminator()->getOperandTypes());
  for (auto [i, type] : llvm::enumerate(placed.getResults()))
    describe(signature.result(i), type);
  signature.store();
  function.setFunctionType(builder.getFunctionType(inputs, results));
}

LogicalResult FunctionLocalizer::run() {
  if (failed(checkTypes()))
    return failure();
  Block &placed = function.getBody().front();
  Region scratch(function); // has a context through its container
  local = new Block();
  scratch.push_back(local);
  for (BlockArgument arg : placed.getArguments())
    mapping.map(arg, local->addArgument(getLocalType(arg.getType()), arg.getLoc()));
  for (Operation &op : placed)
    localizeOp(&op);
  if (failedOnce)
    return failure();
  // The placed body goes, the local one comes.
  placed.dropAllDefinedValueUses();
  placed.erase();
  function.getBody().takeBody(scratch);
  setSignature();
  return success();
}

namespace {

struct LocalizePass : public shardc::impl::LocalizeBase<LocalizePass> {
  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (function.isExternal())
        continue;
      FunctionLocalizer localizer(function);
      if (failed(localizer.run()))
        signalPassFailure();
      numOps += localizer.numOps;
      numSteps += localizer.numSteps;
      numInner += localizer.getNumInner();
      numRemade += localizer.getNumRemade();
    }
  }
};

} // namespace
