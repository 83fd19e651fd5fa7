// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/specialize/FunctionSpecializer.h"

#include "dialects/aten/ConstantSizes.h"
#include "dialects/aten/Inference.h"
#include "dialects/dist/CollectiveTypes.h"
#include "dialects/dist/FunctionAttributes.h"
#include "passes/specialize/DeviceErrors.h"
#include "passes/verify/Violations.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

#include <map>

using namespace mlir;
using namespace shardc;
using namespace shardc::dist;

//===------------------------------------------------------------------------------------------===//
// What varies
//===------------------------------------------------------------------------------------------===//

/// The extents of dims that a layout splits, by dim; null for the others.
static SmallVector<ExtentsAttr> extentsOf(DictionaryAttr attributes) {
  auto layout = attributes ? attributes.getAs<LayoutAttr>(kLayoutAttr) : LayoutAttr();
  auto type = attributes ? attributes.getAs<TypeAttr>(kGlobalTypeAttr) : TypeAttr();
  if (!layout || !type)
    return {};
  SmallVector<ExtentsAttr> result;
  for (auto [dim, size] : llvm::enumerate(cast<RankedTensorType>(type.getValue()).getShape())) {
    auto known = ShapedType::isDynamic(size) ? SizeAttr() : SizeAttr::get(type.getContext(), size);
    result.push_back(known ? ExtentsAttr::get(known, layout, static_cast<int64_t>(dim))
                           : ExtentsAttr());
  }
  return result;
}

std::vector<ExtentsAttr> shardc::varyingExtents(func::FuncOp function, MeshAttr world) {
  llvm::SetVector<ExtentsAttr> result;
  auto add = [&](ExtentsAttr extents) {
    if (extents && !dependsOnSymbol(extents) && !extents.getConstant())
      result.insert(extents);
  };
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    llvm::for_each(extentsOf(function.getArgAttrDict(i)), add);
  for (unsigned i = 0; i < function.getNumResults(); ++i)
    llvm::for_each(extentsOf(function.getResultAttrDict(i)), add);
  function.walk([&](ExtentOp op) {
    if (op.getExtents().getMesh() != world)
      add(op.getExtents());
  });
  return std::vector<ExtentsAttr>(result.begin(), result.end());
}

std::deque<DeviceClass> shardc::classifyDevices(ArrayRef<ExtentsAttr> extents, Devices &devices) {
  std::map<std::vector<int64_t>, size_t> known;
  std::deque<DeviceClass> classes;
  for (int64_t device = 0; device < devices.size(); ++device) {
    std::vector<int64_t> values;
    for (ExtentsAttr attribute : extents)
      values.push_back(devices.extent(attribute, device));
    auto [entry, added] = known.try_emplace(std::move(values), classes.size());
    if (added)
      classes.emplace_back();
    classes[entry->second].push_back(device);
  }
  return classes;
}

//===------------------------------------------------------------------------------------------===//
// Arguments, extents
//===------------------------------------------------------------------------------------------===//

void FunctionSpecializer::specializeArguments() {
  for (BlockArgument argument : function.getArguments()) {
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    SmallVector<ExtentsAttr> extents = extentsOf(function.getArgAttrDict(argument.getArgNumber()));
    if (!type || extents.empty())
      continue;
    SmallVector<int64_t> shape(type.getShape());
    for (auto [size, known] : llvm::zip_equal(shape, extents))
      if (ShapedType::isDynamic(size) && known)
        size = all.extent(known, devices.front());
    argument.setType(type.clone(shape));
  }
}

std::optional<std::vector<int64_t>> FunctionSpecializer::valuesOf(Value index) {
  // An extent of another mesh: the devices of a class agree on it.
  if (auto extent = index.getDefiningOp<ExtentOp>();
      extent && extent.getExtents().getMesh() != values.getMesh()) {
    if (dependsOnSymbol(extent.getExtents()))
      return std::nullopt;
    return std::vector<int64_t>(devices.size(), all.extent(extent.getExtents(), devices.front()));
  }
  ArrayRef<int64_t> everywhere = values.of(index);
  if (everywhere.empty())
    return std::nullopt;
  std::vector<int64_t> result;
  for (int64_t device : devices)
    result.push_back(everywhere[device]);
  return result;
}

void FunctionSpecializer::foldIndex(Operation *op) {
  if (op->getNumResults() != 1 || op->hasTrait<OpTrait::ConstantLike>())
    return;
  std::optional<std::vector<int64_t>> known = valuesOf(op->getResult(0));
  values.forget(op);
  if (!known || !llvm::all_equal(*known)) {
    (void)folder.tryToFold(op); // one that does not fold depends on a symbol, or on the rank
    return;
  }
  numFolded += isa<ExtentOp>(op);
  Type type = op->getResult(0).getType();
  op->getResult(0).replaceAllUsesWith(folder.getOrCreateConstant(
      op->getBlock(), op->getContext()->getLoadedDialect<arith::ArithDialect>(),
      Builder(op->getContext()).getIntegerAttr(type, known->front()), type));
  op->erase();
}

SmallVector<unsigned> FunctionSpecializer::varyingOperands(Operation *op) {
  SmallVector<unsigned> varying;
  for (OpOperand &operand : op->getOpOperands())
    if (operand.get().getType().isIntOrIndex())
      if (auto known = valuesOf(operand.get()); known && !llvm::all_equal(*known))
        varying.push_back(operand.getOperandNumber());
  return varying;
}

std::map<std::vector<int64_t>, DeviceClass>
FunctionSpecializer::classify(Operation *op, ArrayRef<unsigned> operands) {
  std::vector<std::vector<int64_t>> lists;
  for (unsigned operand : operands)
    lists.push_back(*valuesOf(op->getOperand(operand)));
  std::map<std::vector<int64_t>, DeviceClass> classes;
  for (auto [i, device] : llvm::enumerate(devices)) {
    std::vector<int64_t> tuple;
    for (const std::vector<int64_t> &list : lists)
      tuple.push_back(list[i]);
    classes[std::move(tuple)].push_back(device);
  }
  return classes;
}

/// The types of the op's results if these operands are constants.
static FailureOr<SmallVector<Type>> inferWith(Operation *op, ArrayRef<unsigned> operands,
                                              ArrayRef<int64_t> constants) {
  OpBuilder builder(op);
  Operation *clone = builder.clone(*op);
  SmallVector<Operation *> made{clone};
  builder.setInsertionPoint(clone);
  for (auto [operand, value] : llvm::zip_equal(operands, constants)) {
    auto attribute = builder.getIntegerAttr(op->getOperand(operand).getType(), value);
    made.push_back(arith::ConstantOp::create(builder, op->getLoc(), attribute));
    clone->setOperand(operand, made.back()->getResult(0));
  }
  aten::foldConstantSizes(clone);
  FailureOr<SmallVector<Type>> types = failure();
  if (succeeded(aten::inferAndSetTypes(clone)))
    types = SmallVector<Type>(clone->getResultTypes());
  for (Operation *temporary : made)
    temporary->erase();
  return types;
}

LogicalResult FunctionSpecializer::inferByDevice(Operation *op, ArrayRef<unsigned> varying) {
  llvm::MapVector<Attribute, DeviceClass> classes;
  Builder builder(op->getContext());
  SmallVector<Type> first;
  for (auto &[constants, members] : classify(op, varying)) {
    FailureOr<SmallVector<Type>> types = inferWith(op, varying, constants);
    if (failed(types))
      return failure();
    if (first.empty())
      first = *types;
    DeviceClass &alike = classes[builder.getTypeArrayAttr(*types)];
    alike.insert(alike.end(), members.begin(), members.end());
  }
  for (auto [result, type] : llvm::zip_equal(op->getResults(), first))
    result.setType(type);
  if (classes.size() > 1)
    for (auto &[types, members] : classes) {
      llvm::sort(members);
      parts.push_back(std::move(members));
    }
  return success();
}

//===------------------------------------------------------------------------------------------===//
// Collectives
//===------------------------------------------------------------------------------------------===//

bool FunctionSpecializer::refine(CollectiveOpInterface op) {
  foldConstantExtents(op);
  // Extents of members that differ between groups.
  if (SmallVector<unsigned> varying = varyingOperands(op); !varying.empty()) {
    for (auto &[extents, members] : classify(op, varying))
      parts.push_back(std::move(members));
    return false;
  }
  for (unsigned i = 0; i < op->getNumResults(); ++i) {
    RankedTensorType type = inferDeliveredType(op, i, std::nullopt);
    if (type.hasStaticShape()) {
      setDeliveredType(op, i, type);
      continue;
    }
    // The shape depends on the position in the group.
    llvm::MapVector<RankedTensorType, DeviceClass> classes;
    for (int64_t device : devices)
      classes[inferDeliveredType(op, i, all.position(op.getGroup(), device))].push_back(device);
    setDeliveredType(op, i, classes.front().first);
    if (classes.size() == 1)
      continue;
    for (auto &[part, members] : classes)
      parts.push_back(std::move(members));
    return false;
  }
  return true;
}

//===------------------------------------------------------------------------------------------===//
// The whole function
//===------------------------------------------------------------------------------------------===//

/// Outside of the mesh what leaves it is empty, and what enters it is not used.
void FunctionSpecializer::setCrossing(Value result, Value input, MeshAttr mesh) {
  auto type = cast<RankedTensorType>(result.getType());
  if (all.isIn(mesh, devices.front()))
    result.setType(input.getType());
  else if (type.isDynamicDim(0))
    result.setType(RankedTensorType::get({0}, type.getElementType()));
}

LogicalResult FunctionSpecializer::specialize(Operation *op) {
  if (auto collective = dyn_cast<CollectiveOpInterface>(op))
    return success(refine(collective));
  if (auto wait = dyn_cast<WaitOp>(op)) {
    for (auto [result, future] : llvm::zip_equal(wait.getResults(), wait.getFutures()))
      result.setType(getDeliveredType(future.getType()));
    return success();
  }
  if (auto leave = dyn_cast<LeaveMeshOp>(op)) {
    setCrossing(leave.getResult(), leave.getInput(), leave.getMesh());
    return success();
  }
  if (auto enter = dyn_cast<EnterMeshOp>(op)) {
    setCrossing(enter.getResult(), enter.getInput(), enter.getMesh());
    return success();
  }
  bool isIndexOp = op->getNumResults() != 0 && llvm::all_of(op->getResultTypes(), [](Type type) {
                     return type.isIntOrIndex();
                   });
  if (isIndexOp) {
    foldIndex(op);
    return success();
  }
  aten::foldConstantSizes(op);
  if (SmallVector<unsigned> varying = varyingOperands(op); !varying.empty())
    return inferByDevice(op, varying);
  return aten::inferAndSetTypes(op);
}

LogicalResult FunctionSpecializer::checkStatic() {
  if (auto symbols = function->getAttrOfType<ArrayAttr>(kSymbolsAttr); symbols && !symbols.empty())
    return success();
  Violations violations;
  auto check = [&](Value value, const Twine &what) {
    RankedTensorType type = getDeliveredType(value.getType());
    if (type && !type.hasStaticShape())
      violations.add(value.getLoc(), what +
                                         " still has a dynamic dim after specialisation, but the "
                                         "function has no symbols that could give its size");
  };
  for (BlockArgument argument : function.getArguments())
    check(argument, "argument " + Twine(argument.getArgNumber()));
  function.walk([&](Operation *op) {
    for (Value result : op->getResults())
      check(result, "a result of '" + op->getName().getStringRef() + "'");
  });
  if (violations.empty() || devices.size() == 1)
    return violations.report();
  // An index that cannot be followed for several devices at once is a constant on each of them.
  for (int64_t device : devices)
    parts.push_back({device});
  return success();
}

/// Sizes that are attributes now are computed no longer.
static void eraseUnusedIndices(func::FuncOp function) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(function.getBody().front())))
    if (isOpTriviallyDead(&op) && llvm::all_of(op.getResultTypes(), llvm::IsaPred<IndexType>))
      op.erase();
}

LogicalResult FunctionSpecializer::run() {
  specializeArguments();
  bool ok = true;
  for (Operation &op : llvm::make_early_inc_range(function.getOps())) {
    ok &= succeeded(specialize(&op));
    if (!parts.empty())
      return success();
  }
  if (!ok)
    return failure();
  eraseUnusedIndices(function);
  auto result = cast<func::ReturnOp>(function.getBody().back().getTerminator());
  function.setFunctionType(FunctionType::get(
      function.getContext(), function.getBody().getArgumentTypes(), result.getOperandTypes()));
  return checkStatic();
}

/// After so many classes with errors the others are left: a large world may have one for each
/// device.
static constexpr size_t enoughFailures = 32;

std::vector<SpecializedFunction>
shardc::makeVariants(func::FuncOp function, std::deque<DeviceClass> classes, Devices &devices,
                     const Mesh &world,
                     llvm::function_ref<LogicalResult(func::FuncOp, const DeviceClass &)> prepare,
                     int64_t *numFolded) {
  std::vector<SpecializedFunction> variants;
  DeviceErrors errors;
  size_t numFailed = 0;
  while (!classes.empty() && numFailed < enoughFailures) {
    SpecializedFunction variant{function.clone(), std::move(classes.front())};
    classes.pop_front();
    RankValues values(world, function.getContext());
    FunctionSpecializer specializer(variant.function, variant.devices, devices, values);
    std::vector<Diagnostic> said = DeviceErrors::collect(function.getContext(), [&] {
      variant.ok = (!prepare || succeeded(prepare(variant.function, variant.devices))) &&
                   succeeded(specializer.run());
    });
    if (specializer.split().empty()) {
      if (numFolded)
        *numFolded += specializer.getNumFolded();
      errors.add(std::move(said), variant.devices);
      numFailed += !variant.ok;
      variants.push_back(std::move(variant));
      continue;
    }
    // The parts will say what is wrong.
    variant.function.erase();
    classes.insert(classes.begin(), specializer.split().begin(), specializer.split().end());
  }
  errors.emit(function.getContext(), devices.size(), classes.empty());
  return variants;
}
