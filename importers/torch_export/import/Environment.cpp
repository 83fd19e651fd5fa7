// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "importers/torch_export/import/Environment.h"

#include "dialects/aten/Aten.h"
#include "dialects/aten/PastAutograd.h"
#include "dialects/dist/Dist.h"

using namespace mlir;

namespace shardc::torch_export {

static bool canHaveGradient(Value value) {
  return isa<FloatType, ComplexType>(aten::typeOf(value).getElementType());
}

static Value detach(OpBuilder &builder, Location loc, Value value) {
  auto alias = aten::AliasOp::create(builder, loc, value);
  alias.setDetached(true);
  return alias;
}

Value Environment::tensor(StringRef name, Location loc) {
  if (std::optional<Storages::Tensor> found = find(name)) {
    Value value = storages.read(*found, loc);
    if (!value || !isNoGrad() || name == kept || !canHaveGradient(value) ||
        value.getDefiningOp<aten::ConstantOp>())
      return value;
    auto alias = value.getDefiningOp<aten::AliasOp>();
    return alias && alias.getDetached() ? value : detach(builder, loc, value);
  }
  if (isPending(name))
    emitError(loc) << "an operator here reads '" << name << "' before its collective is waited for";
  else
    emitError(loc) << "the tensor '" << name << "' is not available here";
  return {};
}

FailureOr<OpFoldResult> Environment::size(const SymIntArg &value, Location loc) {
  if (value.constant())
    return OpFoldResult(builder.getIndexAttr(value.value));
  auto found = frame().sizes.find(value.name);
  if (found == frame().sizes.end() && item(value))
    return emitError(loc) << "the number '" << StringRef(value.name)
                          << "' is read from a tensor when the program runs: it may be an index "
                             "of a dim, but nothing that decides over sizes";
  if (found == frame().sizes.end())
    return emitError(loc) << "the symbolic integer '" << StringRef(value.name)
                          << "' is not available here";
  if (!found->second)
    return failure(); // reported where it is made
  return found->second;
}

FailureOr<Value> Environment::draw(Location loc, StringRef distribution, Type elementType,
                                   ArrayRef<OpFoldResult> sizes) {
  if (isLocal)
    return emitError(loc) << "random numbers in a program with collectives of its own, which says "
                             "nothing about how ranks share them, are not supported";
  return random.draw(loc, distribution, elementType, sizes);
}

Value Environment::item(const SymIntArg &value) { return frame().items.lookup(value.name); }

const TensorMeta *Environment::recorded(StringRef name) {
  const TensorTable &tensors = frame().graph->tensors;
  auto found = tensors.find(name);
  return found == tensors.end() ? nullptr : &found->second;
}

bool Environment::isUsed(StringRef name) {
  std::optional<llvm::StringSet<>> &used = frame().used;
  if (!used) {
    used.emplace();
    auto add = [&](const Argument &argument) {
      if (auto *tensor = std::get_if<TensorArg>(&argument))
        used->insert(tensor->name);
      else if (auto *list = std::get_if<TensorListArg>(&argument))
        for (const TensorArg &element : list->tensors)
          used->insert(element.name);
    };
    for (const Node &node : frame().graph->nodes)
      for (const NamedArgument &input : node.inputs)
        add(input.value);
    llvm::for_each(frame().graph->outputs, add);
  }
  return used->contains(name);
}

std::optional<Storages::Tensor> Environment::find(StringRef name) {
  auto found = frame().tensors.find(name);
  if (found == frame().tensors.end())
    return std::nullopt;
  return found->second;
}

StringRef Environment::findPending(const Node &node) {
  if (frame().futures.empty() && frame().postponed.empty())
    return {};
  for (const NamedArgument &input : node.inputs) {
    if (auto *tensor = std::get_if<TensorArg>(&input.value); tensor && isPending(tensor->name))
      return tensor->name;
    if (auto *list = std::get_if<TensorListArg>(&input.value))
      for (const TensorArg &element : list->tensors)
        if (isPending(element.name))
          return element.name;
  }
  return {};
}

void Environment::wait(StringRef name, Location loc) {
  Future future = frame().futures.lookup(name);
  frame().futures.erase(name);
  Value value = dist::WaitOp::create(builder, loc, future.value).getResult(0);
  if (future.target) {
    storages.write(*future.target, value, loc);
    frame().tensors[name] = storages.addView(*future.target, value);
  } else {
    frame().tensors[name] = storages.add(value);
  }
}

void Environment::write(Storages::Tensor tensor, Value value, Location loc) {
  if (isNoGrad() && canHaveGradient(value)) {
    auto written = aten::AliasOp::create(builder, loc, value);
    written->setAttr(aten::kPastAutogradAttr, builder.getUnitAttr());
    value = written;
  }
  storages.write(tensor, value, loc);
}

void Environment::writeStatistic(const Argument *argument, Value value, Location loc) {
  auto *tensor = argument ? std::get_if<TensorArg>(argument) : nullptr;
  if (std::optional<Storages::Tensor> found = tensor ? find(tensor->name) : std::nullopt)
    storages.write(*found, value, loc);
}

Storages::Tensor Environment::addView(Storages::Tensor source, Value value, Location loc) {
  Storages::Tensor view = storages.addView(source, value);
  return isNoGrad() && canHaveGradient(value) ? addDetached(view, loc) : view;
}

Storages::Tensor Environment::addDetached(Storages::Tensor source, Location loc) {
  return storages.addView(source, detach(builder, loc, storages.lastValue(source)));
}

void Environment::detachInPlace(Storages::Tensor tensor, StringRef result, Location loc) {
  rename(tensor, addDetached(tensor, loc), result);
}

void Environment::viewInPlace(Storages::Tensor tensor, Value value, StringRef result,
                              Location loc) {
  rename(tensor, addView(tensor, value, loc), result);
}

void Environment::rename(Storages::Tensor tensor, Storages::Tensor becomes, StringRef result) {
  Storages::Tensor original = storages.original(tensor);
  for (auto &named : frame().tensors)
    if (storages.original(named.second) == original)
      named.second = becomes;
  frame().tensors[result] = becomes;
}

LogicalResult Environment::bindNames(ArrayRef<Argument> names, ArrayRef<const Argument *> arguments,
                                     Frame &from, Frame &to, Location loc) {
  for (auto [name, argument] : llvm::zip_equal(names, arguments)) {
    auto *tensorName = std::get_if<TensorArg>(&name);
    auto *sizeName = std::get_if<SymIntArg>(&name);
    if (tensorName) {
      auto *tensor = std::get_if<TensorArg>(argument);
      auto found = tensor ? from.tensors.find(tensor->name) : from.tensors.end();
      if (found == from.tensors.end())
        return emitError(loc) << "a nested graph uses a tensor that is not available";
      to.tensors[tensorName->name] = found->second;
    } else if (sizeName && !sizeName->constant()) {
      auto *value = std::get_if<SymIntArg>(argument);
      auto *constant = std::get_if<int64_t>(argument);
      if (constant || (value && value->constant()))
        to.sizes[sizeName->name] =
            OpFoldResult(builder.getIndexAttr(constant ? *constant : value->value));
      else if (value && from.items.contains(value->name))
        to.items[sizeName->name] = from.items.lookup(value->name);
      else if (value)
        to.sizes[sizeName->name] = from.sizes.lookup(value->name);
    }
  }
  return success();
}

void forEachTensor(const Node &node, const Graph &graph,
                   function_ref<void(unsigned, StringRef, const TensorMeta &)> visit) {
  unsigned number = 0;
  auto one = [&](StringRef name) {
    auto found = graph.tensors.find(std::string_view(name));
    if (found != graph.tensors.end())
      visit(number++, name, found->second);
  };
  for (const Argument &output : node.outputs) {
    if (auto *tensor = std::get_if<TensorArg>(&output))
      one(tensor->name);
    else if (auto *list = std::get_if<TensorListArg>(&output))
      for (const TensorArg &element : list->tensors)
        one(element.name);
  }
}

} // namespace shardc::torch_export
