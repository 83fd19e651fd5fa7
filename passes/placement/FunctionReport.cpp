// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the core of placement has to say, at the places in the model that it is about.
#include "passes/placement/FunctionGraph.h"

#include "dialects/dist/FunctionAttributes.h"
#include "dialects/interfaces/ModelLocation.h"

using namespace mlir;

namespace shardc {
namespace {

Location locationOf(const FunctionGraph &function, OpId op, TensorId tensor) {
  if (op != kNone && function.operations[op])
    return function.operations[op]->getLoc();
  if (tensor != kNone && function.values[tensor])
    return function.values[tensor].getLoc();
  return func::FuncOp(function.function).getLoc();
}

/// What people call a tensor: the parameter's or input's name, else where it is made.
std::string describeValue(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value))
    if (auto function = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp()))
      if (DictionaryAttr attributes = function.getArgAttrDict(argument.getArgNumber()))
        for (StringRef name : dist::getNames(attributes))
          return ("'" + name + "'").str();
  return "the value of " + describePlace(value.getLoc());
}

} // namespace

LogicalResult report(const FunctionGraph &function, ArrayRef<Remark> remarks,
                     ArrayRef<Refusal> errors) {
  auto subjectOf = [&](TensorId tensor) {
    bool known = tensor != kNone && function.values[tensor];
    return known ? describeValue(function.values[tensor]) + ": " : "";
  };
  for (const Remark &remark : remarks)
    emitRemark(locationOf(function, remark.op, remark.tensor))
        << subjectOf(remark.tensor) << remark.text;
  for (const Refusal &error : errors) {
    auto output = llvm::find(function.outputs, error.tensor);
    if (error.tensor != kNone && output != function.outputs.end())
      emitError(func::FuncOp(function.function).getLoc())
          << "result " << output - function.outputs.begin() << ": " << error.text;
    else
      emitError(locationOf(function, error.op, error.tensor))
          << subjectOf(error.tensor) << error.text;
  }
  return success(errors.empty());
}

} // namespace shardc
