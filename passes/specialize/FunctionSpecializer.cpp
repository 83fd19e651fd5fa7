// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/specialize/FunctionSpecializer.h"

#include "dialects/aten/ConstantSizes.h"
#include "dialects/aten/Inference.h"
#include "dialects/dist/CollectiveTypes.h"
#include "dialects/dist/FunctionAttributes.h"
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

static bool dependsOnSymbol(ExtentsAttr extents) {
  return extents.getSize() && !extents.getSize().getConstant();
}

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

std::vector<ExtentsAttr> shardc::varyingExtents(func::FuncOp function) {
  llvm::SetVector<ExtentsAttr> result;
  auto add = [&](ExtentsAttr extents) {
    if (extents && !dependsOnSymbol(extents) && !extents.getConstant())
      result.insert(extents);
  };
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    llvm::for_each(extentsOf(function.getArgAttrDict(i)), add);
  for (unsigned i = 0; i < function.getNumResults(); ++i)
    llvm::for_each(extentsOf(function.getResultAttrDict(i)), add);
  function.walk([&](ExtentOp op) { add(op.getExtents()); });
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

void FunctionSpecializer::foldExtent(ExtentOp op) {
  if (dependsOnSymbol(op.getExtents()))
    return;
  OpBuilder builder(op);
  int64_t value = all.extent(op.getExtents(), devices.front());
  op.replaceAllUsesWith(arith::ConstantIndexOp::create(builder, op.getLoc(), value).getResult());
  op.erase();
  ++numFolded;
}

//===------------------------------------------------------------------------------------------===//
// Collectives
//===------------------------------------------------------------------------------------------===//

bool FunctionSpecializer::refine(CollectiveOpInterface op) {
  foldConstantExtents(op);
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
  if (auto extent = dyn_cast<ExtentOp>(op)) {
    foldExtent(extent);
    return success();
  }
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
    (void)folder.tryToFold(op); // one that does not fold depends on a symbol, or on the rank
    return success();
  }
  aten::foldConstantSizes(op);
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
  return violations.report();
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
