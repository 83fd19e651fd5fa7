// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/specialize/RankValues.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

#include <map>

using namespace mlir;
using namespace shardc;
using namespace shardc::dist;

bool shardc::dependsOnSymbol(ExtentsAttr extents) {
  return extents.getSize() && !extents.getSize().getConstant();
}

/// What an op's result is where its operands are these numbers.
static std::optional<int64_t> fold(Operation *op, unsigned result, ArrayRef<int64_t> operands) {
  SmallVector<Attribute> constants;
  for (auto [operand, number] : llvm::zip_equal(op->getOperands(), operands))
    constants.push_back(IntegerAttr::get(operand.getType(), number));
  SmallVector<OpFoldResult> folded;
  if (failed(op->fold(constants, folded)) || folded.size() <= result)
    return std::nullopt;
  // One of the operands (x + 0, or a selection), or a number.
  auto same = dyn_cast<Value>(folded[result]);
  if (!same)
    return getConstantIntValue(folded[result]);
  auto operand = llvm::find(op->getOperands(), same);
  if (operand == op->getOperands().end())
    return std::nullopt;
  return operands[std::distance(op->getOperands().begin(), operand)];
}

std::vector<int64_t> RankValues::evaluate(Operation *op, unsigned result) {
  if (auto extent = dyn_cast<ExtentOp>(op)) {
    // Of another mesh this one may know some ranks only.
    MeshAttr other = extent.getExtents().getMesh();
    if (dependsOnSymbol(extent.getExtents()) || (other && other != mesh))
      return {};
    std::vector<int64_t> values;
    for (int64_t device = 0; device < devices.size(); ++device)
      values.push_back(devices.extent(extent.getExtents(), device));
    return values;
  }
  if (auto index = dyn_cast<AxisIndexOp>(op)) {
    std::vector<int64_t> values;
    for (int64_t device = 0; device < devices.size(); ++device) {
      std::optional<int64_t> position = devices.position(index.getGroup(), device);
      if (!position)
        return {};
      values.push_back(*position);
    }
    return values;
  }
  // Anything else that folds when its operands are constants.
  if (!isMemoryEffectFree(op) || op->getNumRegions() != 0)
    return {};
  SmallVector<ArrayRef<int64_t>> operands;
  for (Value operand : op->getOperands()) {
    auto it = known.find(operand);
    if (it == known.end() || it->second.empty())
      return {};
    operands.push_back(it->second);
  }
  // Of many devices, few differ in the operands.
  std::map<SmallVector<int64_t>, int64_t> folded;
  std::vector<int64_t> values;
  for (int64_t device = 0; device < devices.size(); ++device) {
    auto numbers =
        llvm::map_to_vector(operands, [&](ArrayRef<int64_t> list) { return list[device]; });
    auto [entry, isNew] = folded.try_emplace(std::move(numbers), 0);
    if (isNew) {
      std::optional<int64_t> value = fold(op, result, entry->first);
      if (!value)
        return {};
      entry->second = *value;
    }
    values.push_back(entry->second);
  }
  return values;
}

ArrayRef<int64_t> RankValues::of(Value value) {
  SmallVector<Value> stack{value};
  while (!stack.empty()) {
    Value at = stack.back();
    if (known.contains(at)) {
      stack.pop_back();
      continue;
    }
    auto result = dyn_cast<OpResult>(at);
    bool isIndex = at.getType().isIntOrIndex();
    if (!result || !isIndex) {
      known[at] = {};
      stack.pop_back();
      continue;
    }
    size_t before = stack.size();
    for (Value operand : result.getOwner()->getOperands())
      if (!known.contains(operand))
        stack.push_back(operand);
    if (stack.size() != before)
      continue;
    std::vector<int64_t> values = evaluate(result.getOwner(), result.getResultNumber());
    known[at] = std::move(values);
    stack.pop_back();
  }
  return known.find(value)->second;
}

ArrayRef<int64_t> RankValues::of(OpFoldResult value) {
  if (auto dynamic = dyn_cast<Value>(value))
    return of(dynamic);
  std::optional<int64_t> constant = getConstantIntValue(value);
  if (!constant)
    return {};
  std::vector<int64_t> &values = constants[*constant];
  if (values.empty())
    values.assign(devices.size(), *constant);
  return values;
}

void RankValues::forget(Operation *op) {
  for (Value result : op->getResults())
    known.erase(result);
}

OpFoldResult RankValues::build(OpBuilder &builder, Location location, ArrayRef<int64_t> values) {
  if (llvm::all_equal(values))
    return builder.getIndexAttr(values.front());
  auto extents = ExtentsAttr::get(builder.getContext(), mesh, SizeAttr(), DimSplit(), values);
  return ExtentOp::create(builder, location, extents).getResult();
}
