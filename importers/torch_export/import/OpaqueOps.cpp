// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "importers/torch_export/import/OpaqueOps.h"

#include "importers/torch_export/import/NodeTarget.h"

#include "dialects/aten/Aten.h"
#include "dialects/interfaces/ElementTypes.h"

using namespace mlir;

namespace shardc::torch_export {
namespace {

template <typename T, typename F>
Attribute listOf(Builder &builder, const std::vector<T> &values, F make) {
  SmallVector<Attribute> list;
  for (const auto &value : values)
    list.push_back(make(value));
  return builder.getArrayAttr(list);
}

bool namesUpdate(StringRef target) {
  StringRef packet = target.rsplit('.').first;
  return packet.ends_with("_") && !packet.ends_with("__");
}

} // namespace

Attribute asAttribute(Builder &builder, const Argument &argument) {
  if (auto *value = std::get_if<bool>(&argument))
    return builder.getBoolAttr(*value);
  if (auto *value = std::get_if<int64_t>(&argument))
    return builder.getI64IntegerAttr(*value);
  if (auto *value = std::get_if<double>(&argument))
    return builder.getF64FloatAttr(*value);
  if (auto *value = std::get_if<std::string_view>(&argument))
    return builder.getStringAttr(*value);
  if (auto *values = std::get_if<std::vector<int64_t>>(&argument))
    return builder.getDenseI64ArrayAttr(*values);
  if (auto *values = std::get_if<std::vector<double>>(&argument))
    return builder.getDenseF64ArrayAttr(*values);
  if (auto *values = std::get_if<std::vector<bool>>(&argument))
    return listOf(builder, *values, [&](bool value) { return builder.getBoolAttr(value); });
  if (auto *values = std::get_if<std::vector<std::string_view>>(&argument))
    return listOf(builder, *values,
                  [&](std::string_view value) { return builder.getStringAttr(value); });
  if (auto *code = std::get_if<ScalarTypeArg>(&argument))
    if (Type type = toIrType(builder.getContext(), code->type))
      return TypeAttr::get(type);
  return {};
}

FailureOr<NodeOperands> collectOperands(OpBuilder &builder, Environment &environment,
                                        const Node &node, Location loc) {
  NodeOperands out;
  auto addTensor = [&](const TensorArg &tensor) {
    if (tensor.name.empty())
      return true; // None
    Value value = environment.tensor(tensor.name, loc);
    out.values.push_back(value);
    out.tensors.push_back(environment.find(tensor.name));
    return bool(value);
  };
  auto addSize = [&](const SymIntArg &size) {
    if (size.constant())
      return true;
    FailureOr<OpFoldResult> value = environment.size(size, loc);
    if (failed(value))
      return false;
    if (auto dynamic = dyn_cast<Value>(*value)) {
      out.values.push_back(dynamic);
      out.tensors.push_back(std::nullopt);
    }
    return true;
  };
  for (const NamedArgument &input : node.inputs) {
    bool added = true;
    if (auto *tensor = std::get_if<TensorArg>(&input.value))
      added = addTensor(*tensor);
    else if (auto *list = std::get_if<TensorListArg>(&input.value))
      added = llvm::all_of(list->tensors, addTensor);
    else if (auto *size = std::get_if<SymIntArg>(&input.value))
      added = addSize(*size);
    else if (auto *sizes = std::get_if<SymIntListArg>(&input.value))
      added = llvm::all_of(sizes->values, addSize);
    else if (Attribute attribute = asAttribute(builder, input.value);
             attribute && !input.name.empty())
      out.attributes.set(input.name, attribute);
    if (!added)
      return failure();
  }
  return out;
}

LogicalResult importOpaque(OpBuilder &builder, Environment &environment, const Node &node,
                           Location loc) {
  FailureOr<NodeOperands> collected = collectOperands(builder, environment, node, loc);
  if (failed(collected))
    return failure();
  NodeOperands &operands = *collected;
  const Graph &graph = *environment.frame().graph;
  SmallVector<Type> types;
  SmallVector<StringRef> names;
  forEachTensor(node, graph, [&](unsigned, StringRef name, const TensorMeta &meta) {
    types.push_back(convertType(builder.getContext(), meta));
    names.push_back(name);
  });
  StringRef target = shortTarget(node);
  Target known = classify(node, builder.getContext());
  bool isUpdate = namesUpdate(target);
  bool isView = !isUpdate && known.schema && sharesStorage(node, *known.schema, graph);
  // Result i of an update is tensor argument i; all results of a view are views of the first.
  SmallVector<int64_t> aliases;
  SmallVector<unsigned> tensorOperands;
  for (auto [i, tensor] : llvm::enumerate(operands.tensors))
    if (tensor)
      tensorOperands.push_back(unsigned(i));
  if ((isUpdate || isView) && !tensorOperands.empty())
    for (unsigned i = 0; i < types.size(); ++i) {
      unsigned from = isUpdate ? i : 0;
      aliases.push_back(from < tensorOperands.size() ? tensorOperands[from] : -1);
    }
  auto op = aten::OpaqueOp::create(builder, loc, types, builder.getStringAttr(target),
                                   operands.values, isUpdate && !aliases.empty(), aliases,
                                   operands.attributes.getDictionary(builder.getContext()));
  if (operands.attributes.empty())
    op.removeArgumentsAttr();
  for (auto [i, name] : llvm::enumerate(names)) {
    Value value = op.getResult(unsigned(i));
    std::optional<unsigned> from = op.getAliasedOperand(unsigned(i));
    if (!from) {
      environment.frame().tensors[name] = environment.storages.add(value);
      continue;
    }
    Storages::Tensor source = *operands.tensors[*from];
    if (isUpdate)
      environment.storages.write(source, value, loc);
    environment.frame().tensors[name] = environment.storages.addView(source, value);
  }
  return success();
}

} // namespace shardc::torch_export
