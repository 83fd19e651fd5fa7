// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/memory/SizeEstimator.h"

#include "dialects/dist/Dist.h"
#include "dialects/dist/FunctionAttributes.h"
#include "dialects/dist/TypicalSizes.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::memory;

/// The sizes that a variant of a program has, where they are constants of it, are those of its
/// ranks.
int64_t SizeEstimator::firstRank(func::FuncOp function) {
  auto module = function->getParentOfType<ModuleOp>();
  auto mesh = module ? module->getAttrOfType<dist::MeshAttr>(dist::kMeshAttr) : nullptr;
  if (!mesh)
    return 0;
  int64_t first = mesh.getValue().rankAtPosition(0);
  auto all = module->getAttrOfType<DictionaryAttr>(dist::kSpecializationsAttr);
  for (NamedAttribute named : all ? all.getValue() : ArrayRef<NamedAttribute>()) {
    auto variants = cast<dist::VariantsAttr>(named.getValue());
    for (auto [position, variant] : llvm::enumerate(variants.getPositions()))
      if (variants.getFunctions()[variant].getAttr() == function.getSymNameAttr())
        return mesh.getValue().rankAtPosition(position);
  }
  return first;
}

int64_t SizeEstimator::value(Value index) {
  auto [it, inserted] = known.try_emplace(index, 1);
  if (!inserted)
    return it->second;
  Operation *op = index.getDefiningOp();
  int64_t result = op ? compute(op) : dist::kTypicalSymbol;
  return known[index] = result;
}

int64_t SizeEstimator::value(Attribute attribute) {
  auto extents = cast<dist::ExtentsAttr>(attribute);
  Coordinate coordinate;
  if (dist::MeshAttr mesh = extents.getMesh())
    coordinate =
        mesh.getValue().coordinateOf(rank).value_or(Coordinate(mesh.getValue().numAxes(), 0));
  return extents.evaluate(coordinate, [&](StringRef name) { return std::optional(symbol(name)); })
      .value_or(dist::kTypicalSymbol);
}

int64_t SizeEstimator::compute(Operation *op) {
  if (auto extent = dyn_cast<dist::ExtentOp>(op))
    return value(extent.getExtents());
  if (auto index = dyn_cast<dist::AxisIndexOp>(op)) {
    if (auto lists = index.getGroup().getRankLists())
      for (const std::vector<int64_t> &list : *lists)
        if (auto it = llvm::find(list, rank); it != list.end())
          return it - list.begin();
    return 0;
  }
  SmallVector<Attribute> operands;
  for (Value operand : op->getOperands()) {
    Type type = operand.getType();
    if (!type.isIntOrIndex())
      return dist::kTypicalSymbol;
    // What a bound is depends on a comparison: without it, equal sizes would be estimated as
    // different.
    int64_t number = value(operand);
    operands.push_back(IntegerAttr::get(type, type.isInteger(1) ? number & 1 : number));
  }
  SmallVector<OpFoldResult> results;
  if (failed(op->fold(operands, results)) || results.size() != 1)
    return dist::kTypicalSymbol;
  // One of the operands: a selection, or x + 0.
  if (auto operand = dyn_cast<Value>(results[0]); operand && operand != op->getResult(0))
    return value(operand);
  if (std::optional<int64_t> folded = getConstantIntValue(results[0]))
    return *folded;
  return dist::kTypicalSymbol;
}

int64_t SizeEstimator::symbol(StringRef name) {
  if (auto given = symbols.find(name); given != symbols.end())
    return given->second;
  dist::SymbolAttr symbol = dist::findSymbol(function, name);
  return symbol ? dist::typicalValue(symbol) : dist::kTypicalSymbol;
}
