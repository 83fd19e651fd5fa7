// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reads nodes, tensor metadata and graphs.
#include "importers/torch_export/program/Reader.h"

#include <utility>

namespace shardc::torch_export {

bool Reader::string(JsonValue value, std::string_view &out, std::string_view what) {
  std::optional<std::string_view> text = value.string();
  if (!text)
    return fail(std::string(what) + " is not a string");
  out = *text;
  return true;
}

bool Reader::integer(JsonValue value, int64_t &out, std::string_view what) {
  std::optional<int64_t> number = value.integer();
  if (!number)
    return fail(std::string(what) + " is not an integer of 64 bits");
  out = *number;
  return true;
}

bool Reader::symInt(JsonValue value, SymInt &out) {
  JsonMember member = unionMember(value);
  if (member.key == "as_int")
    return integer(member.value, out.value, "a size");
  if (member.key != "as_expr")
    return fail("a size is neither as_int nor as_expr");
  if (!string(member.value["expr_str"], out.expr, "the expression of a size"))
    return false;
  if (out.expr.empty())
    return fail("the expression of a size is empty");
  std::optional<int64_t> hint = member.value["hint"]["as_int"].integer();
  out.hasHint = hint.has_value();
  out.value = hint.value_or(0);
  return true;
}

bool Reader::tensorMeta(JsonValue value, TensorMeta &out) {
  auto symInts = [&](JsonValue list, std::vector<SymInt> &sizes) {
    if (!list.isArray())
      return fail("sizes or strides are not a list");
    sizes.reserve(list.size());
    for (JsonValue element : list.elements())
      if (!symInt(element, sizes.emplace_back()))
        return false;
    return true;
  };
  // One pass over the members: this is read for every value of the graph.
  bool typed = false, sized = false;
  for (JsonMember member : value.members()) {
    if (member.key == "dtype") {
      int64_t code = 0;
      if (!integer(member.value, code, "dtype"))
        return false;
      std::optional<ElementType> type = elementTypeFromExport(code);
      if (!type)
        return fail("the element type code " + std::to_string(code) + " is not known");
      out.type = *type;
      typed = true;
    } else if (member.key == "sizes") {
      if (!symInts(member.value, out.sizes))
        return false;
      sized = true;
    } else if (member.key == "strides") {
      if (!symInts(member.value, out.strides))
        return false;
    } else if (member.key == "storage_offset") {
      if (!symInt(member.value, out.offset))
        return false;
    } else if (member.key == "layout") {
      if (!integer(member.value, out.layout, "layout"))
        return false;
    } else if (member.key == "requires_grad") {
      out.requiresGrad = member.value.boolean().value_or(false);
    } else if (member.key == "device") {
      out.device = member.value["type"].string().value_or(std::string_view());
    }
  }
  if (!typed || !sized)
    return fail("tensor metadata lack dtype or sizes");
  return true;
}

bool Reader::node(JsonValue value, Node &out) {
  JsonValue inputs, outputs;
  for (JsonMember member : value.members()) {
    if (member.key == "target") {
      if (!string(member.value, out.target, "target"))
        return false;
    } else if (member.key == "name") {
      out.name = member.value.string().value_or(std::string_view());
    } else if (member.key == "inputs") {
      inputs = member.value;
    } else if (member.key == "outputs") {
      outputs = member.value;
    } else if (member.key == "metadata") {
      out.stackTrace = member.value["stack_trace"].string().value_or(std::string_view());
      out.moduleStack = member.value["nn_module_stack"].string().value_or(std::string_view());
      out.noGrad = member.value["no_grad"].boolean().value_or(false);
    }
  }
  if (out.target.empty())
    return fail("it has no target");
  if (!inputs.isArray() || !outputs.isArray())
    return fail("it has no lists of inputs and outputs");
  out.inputs.reserve(inputs.size());
  for (JsonValue input : inputs.elements()) {
    NamedArgument &argument = out.inputs.emplace_back();
    if (!string(input["name"], argument.name, "an argument's name") ||
        !this->argument(input["arg"], argument.value))
      return false;
    argument.keyword = input["kind"].integer() == 2;
  }
  out.outputs.reserve(outputs.size());
  for (JsonValue output : outputs.elements())
    if (!argument(output, out.outputs.emplace_back()))
      return false;
  // Files before schema 8.9 name no nodes: the first output's name is the node's.
  if (out.name.empty() && !out.outputs.empty())
    if (auto *tensor = std::get_if<TensorArg>(&out.outputs.front()))
      out.name = tensor->name;
  return true;
}

bool Reader::graph(JsonValue value, Graph &out) {
  const TensorTable *around = std::exchange(tensors, &out.tensors);
  bool ok = graphParts(value, out);
  tensors = around;
  return ok;
}

bool Reader::graphParts(JsonValue value, Graph &out) {
  if (!value["nodes"].isArray() || !value["inputs"].isArray() || !value["outputs"].isArray() ||
      !value["tensor_values"].isObject())
    return fail("a graph lacks inputs, outputs, nodes or tensor_values");
  JsonValue metas = value["tensor_values"];
  out.tensors.reserve(metas.size());
  for (JsonMember member : metas.members()) {
    auto [place, added] = out.tensors.add(member.key);
    if (!added)
      return fail("the tensor '" + std::string(member.key) + "' is described twice");
    if (!tensorMeta(member.value, place->second)) {
      error = "tensor '" + std::string(member.key) + "': " + error;
      return false;
    }
  }
  for (JsonMember member : value["sym_int_values"].members())
    if (!symInt(member.value, out.symInts[member.key]))
      return false;
  for (JsonMember member : value["sym_bool_values"].members())
    out.symBools[member.key] =
        member.value["as_expr"]["expr_str"].string().value_or(std::string_view());
  for (JsonMember member : value["sym_float_values"].members())
    out.symFloats[member.key] =
        member.value["as_expr"]["expr_str"].string().value_or(std::string_view());
  auto arguments = [&](JsonValue list, std::vector<Argument> &all) {
    for (JsonValue element : list.elements())
      if (!argument(element, all.emplace_back()))
        return false;
    return true;
  };
  if (!arguments(value["inputs"], out.inputs) || !arguments(value["outputs"], out.outputs))
    return false;
  JsonValue nodes = value["nodes"];
  out.nodes.reserve(nodes.size());
  for (JsonValue element : nodes.elements()) {
    Node &node = out.nodes.emplace_back();
    if (!this->node(element, node)) {
      error = "node " + std::to_string(out.nodes.size() - 1) + " '" + std::string(node.name) +
              "' (" + std::string(node.target) + "): " + error;
      return false;
    }
  }
  return true;
}

} // namespace shardc::torch_export
