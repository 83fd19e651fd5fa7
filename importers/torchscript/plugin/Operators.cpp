// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "importers/torchscript/plugin/Operators.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/enum_tag.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/jit/runtime/operator.h>

#include <functional>

namespace shardc::torchscript {
namespace {

using c10::IValue;

/// Stand-ins for symbolic tensors, where an operator has no form for the Meta device, take at most
/// so many bytes.
constexpr int64_t maxStandInBytes = int64_t(4) << 30;

constexpr const char *needsValues =
    "what it does depends on the values of a tensor, which are known only when the program runs";

/// `value` with every tensor in it replaced.
IValue mapTensors(const IValue &value, const std::function<at::Tensor(const at::Tensor &)> &map) {
  if (value.isTensor())
    return value.toTensor().defined() ? IValue(map(value.toTensor())) : value;
  if (value.isTensorList()) {
    c10::List<at::Tensor> mapped;
    for (const at::Tensor &tensor : value.toTensorVector())
      mapped.push_back(map(tensor));
    return mapped;
  }
  if (value.isList()) {
    c10::impl::GenericList mapped(value.toList().elementType());
    for (const IValue &item : value.toListRef())
      mapped.push_back(mapTensors(item, map));
    return mapped;
  }
  return value;
}

void forEachTensor(const std::vector<IValue> &values,
                   const std::function<void(const at::Tensor &)> &visit) {
  for (const IValue &value : values)
    mapTensors(value, [&](const at::Tensor &tensor) {
      visit(tensor);
      return tensor;
    });
}

bool returnsTensors(const c10::FunctionSchema &schema) {
  for (const c10::Argument &result : schema.returns())
    if (result.type()->isSubtypeOf(*c10::TensorType::get()) ||
        result.type()->kind() == c10::TypeKind::ListType)
      return true;
  return false;
}

/// What is created is symbolic, wherever the model wanted it.
void moveToMeta(const c10::FunctionSchema &schema, std::vector<IValue> &arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    c10::TypePtr type = schema.arguments()[i].real_type();
    if (auto optional = type->cast<c10::OptionalType>())
      type = optional->getElementType();
    if (type->kind() == c10::TypeKind::DeviceObjType)
      arguments[i] = c10::Device(c10::kMeta);
    else if (schema.arguments()[i].name() == "pin_memory")
      arguments[i] = IValue();
  }
}

std::vector<IValue> call(const c10::OperatorHandle &op, const std::vector<IValue> &arguments) {
  torch::jit::Stack stack(arguments.begin(), arguments.end());
  op.callBoxed(stack);
  return stack;
}

/// On tensors of zeros, for shapes and element types alone.
std::vector<IValue> callOnZeros(const c10::OperatorHandle &op,
                                const std::vector<IValue> &arguments) {
  std::unordered_map<const c10::TensorImpl *, at::Tensor> standIns, originals;
  int64_t bytes = 0;
  auto zeros = [&](const at::Tensor &tensor) {
    at::Tensor &standIn = standIns[tensor.unsafeGetTensorImpl()];
    if (!standIn.defined()) {
      int64_t size = 0;
      TORCH_CHECK(!__builtin_mul_overflow(tensor.numel(), int64_t(tensor.element_size()), &size) &&
                      !__builtin_add_overflow(bytes, size, &bytes) && bytes <= maxStandInBytes,
                  op.schema().name(),
                  " has no form for shapes alone, and its tensors are too large");
      standIn = at::zeros(tensor.sizes(), tensor.options().device(at::kCPU));
      originals[standIn.unsafeGetTensorImpl()] = tensor;
    }
    return standIn;
  };
  std::vector<IValue> moved;
  for (const IValue &argument : arguments)
    moved.push_back(argument.isDevice() ? IValue(c10::Device(c10::kCPU))
                                        : mapTensors(argument, zeros));
  std::vector<IValue> results = call(op, moved);
  for (IValue &result : results)
    result = mapTensors(result, [&](const at::Tensor &tensor) {
      auto original = originals.find(tensor.unsafeGetTensorImpl());
      if (original != originals.end())
        return original->second;
      return at::empty_strided(tensor.sizes(), tensor.strides(),
                               tensor.options().device(at::kMeta));
    });
  return results;
}

std::vector<IValue> callSymbolic(const c10::OperatorHandle &op, std::vector<IValue> arguments,
                                 Program &program, const Place &place) {
  for (IValue &argument : arguments)
    argument = mapTensors(
        argument, [&](const at::Tensor &tensor) { return program.symbolic(tensor, place); });
  moveToMeta(op.schema(), arguments);
  std::vector<IValue> results;
  try {
    results = call(op, arguments);
  } catch (const c10::NotImplementedError &) {
    TORCH_CHECK(returnsTensors(op.schema()) && !op.hasTag(at::Tag::data_dependent_output) &&
                    !op.hasTag(at::Tag::dynamic_output_shape),
                needsValues);
    results = callOnZeros(op, arguments);
  }
  bool makesTensors = false;
  forEachTensor(results, [&](const at::Tensor &) { makesTensors = true; });
  if (makesTensors)
    program.addCall(op.schema(), arguments, results, place);
  return results;
}

} // namespace

std::vector<IValue> runOperator(const torch::jit::Node &node, std::vector<IValue> arguments,
                                Program &program, const Place &place) {
  const torch::jit::Operator *known = node.maybeOperator();
  TORCH_CHECK(known, "there is no operator ", node.kind().toQualString(), " of this form");
  const c10::FunctionSchema &schema = known->schema();
  bool isSymbolic = false, isKnown = false;
  forEachTensor(arguments, [&](const at::Tensor &tensor) {
    (tensor.is_meta() ? isSymbolic : isKnown) = true;
  });
  std::optional<c10::OperatorHandle> op =
      c10::Dispatcher::singleton().findSchema({schema.name(), schema.overload_name()});
  if (!op) {
    // Arithmetic on numbers, lists and strings, built into TorchScript. What touches the world
    // outside (saving, seeds) is not run.
    TORCH_CHECK(!node.hasSideEffects(), "'", schema.name(),
                "' is not run while a model is imported");
    torch::jit::Stack stack(arguments.begin(), arguments.end());
    try {
      node.getOperation()(stack);
    } catch (const c10::NotImplementedError &) {
      TORCH_CHECK(false, needsValues); // a number of a symbolic tensor
    }
    return stack;
  }
  // Such operators read and write files.
  for (size_t i = 0; i < arguments.size(); ++i)
    TORCH_CHECK(!arguments[i].isString() || isSymbolic || isKnown, "'", schema.name(),
                "' is not run while a model is imported");
  if (isSymbolic || (!isKnown && returnsTensors(schema)))
    return callSymbolic(*op, std::move(arguments), program, place);
  std::vector<IValue> results = call(*op, arguments);
  bool isSmall = true;
  forEachTensor(results,
                [&](const at::Tensor &tensor) { isSmall &= tensor.numel() <= maxKnownElements; });
  return isSmall ? results : callSymbolic(*op, std::move(arguments), program, place);
}

} // namespace shardc::torchscript
