// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/memory/SizeEstimator.h"

#include "dialects/dist/Dist.h"
#include "dialects/dist/FunctionAttributes.h"
#include "dialects/dist/TypicalSizes.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::memory;

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
  SmallVector<int64_t> origin;
  if (dist::MeshAttr mesh = extents.getMesh())
    origin.assign(mesh.getValue().axes.size(), 0);
  return extents.evaluate(origin, [&](StringRef name) { return std::optional(symbol(name)); })
      .value_or(dist::kTypicalSymbol);
}

int64_t SizeEstimator::compute(Operation *op) {
  if (auto extent = dyn_cast<dist::ExtentOp>(op))
    return value(extent.getExtents());
  if (isa<dist::AxisIndexOp>(op))
    return 0;
  SmallVector<Attribute> operands;
  for (Value operand : op->getOperands()) {
    Type type = operand.getType();
    if (!type.isIndex() && !type.isInteger(1))
      return dist::kTypicalSymbol;
    // What a bound is depends on a comparison: without it, equal sizes would be estimated as
    // different.
    int64_t number = value(operand);
    operands.push_back(type.isIndex() ? Attribute(IntegerAttr::get(type, number))
                                      : BoolAttr::get(type.getContext(), number != 0));
  }
  SmallVector<OpFoldResult> results;
  if (failed(op->fold(operands, results)) || results.size() != 1)
    return dist::kTypicalSymbol;
  // One of the operands, as of a selection.
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
