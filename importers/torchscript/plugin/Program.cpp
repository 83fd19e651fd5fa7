// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "importers/torchscript/plugin/Program.h"

#include "importers/torchscript/plugin/Json.h"
#include "support/ElementType.h"

#include <ATen/ops/empty_strided.h>

#include <algorithm>
#include <cctype>
#include <utility>

namespace shardc::torchscript {
namespace {

/// Tensors of known values are written out element by element.
constexpr int64_t maxSpelledElements = 1024;

/// What PyTorch calls the element types of tensors that can be imported.
constexpr std::pair<at::ScalarType, ElementType> scalarTypes[] = {
    {at::kByte, ElementType::U8},          {at::kChar, ElementType::I8},
    {at::kShort, ElementType::I16},        {at::kInt, ElementType::I32},
    {at::kLong, ElementType::I64},         {at::kHalf, ElementType::F16},
    {at::kFloat, ElementType::F32},        {at::kDouble, ElementType::F64},
    {at::kComplexFloat, ElementType::C64}, {at::kBool, ElementType::Bool},
    {at::kBFloat16, ElementType::BF16},
};

std::string tensorArgument(const std::string &name) { return member("name", jsonString(name)); }

std::string metaOf(const at::Tensor &tensor, bool requiresGrad) {
  auto size = [](int64_t n) { return member("as_int", std::to_string(n)); };
  std::vector<int64_t> strides;
  if (tensor.layout() == at::kStrided)
    strides = tensor.strides().vec();
  return "{\"dtype\": " + std::to_string(exportCode(tensor.scalar_type())) +
         ", \"sizes\": " + list(tensor.sizes(), size) + ", \"strides\": " + list(strides, size) +
         ", \"storage_offset\": {\"as_int\": 0}, \"requires_grad\": " +
         (requiresGrad ? "true" : "false") +
         ", \"device\": {\"type\": \"cpu\", \"index\": null}, \"layout\": 7}";
}

} // namespace

int exportCode(at::ScalarType type) {
  for (auto [scalar, element] : scalarTypes)
    if (scalar == type)
      return factsOf(element).exportCode;
  TORCH_CHECK(false, "tensors of element type ", type, " are not supported");
}

std::optional<at::ScalarType> parseElementType(std::string_view name) {
  std::optional<ElementType> wanted = elementTypeFromIr(name);
  for (auto [scalar, element] : scalarTypes)
    if (element == wanted)
      return scalar;
  return std::nullopt;
}

std::string Place::describe() const {
  size_t line = trace.rfind("  File ");
  std::string source = line == std::string::npos ? "" : trace.substr(line + 2);
  if (size_t end = source.find('\n'); end != std::string::npos)
    source.resize(end);
  std::string where = module.empty() ? "the model" : "module '" + module + "'";
  return source.empty() ? where : where + " (" + source + ")";
}

std::string Program::uniqueName(const std::string &wanted) {
  std::string base = wanted;
  for (char &c : base)
    if (!std::isalnum(static_cast<unsigned char>(c)))
      c = '_';
  while (true) {
    unsigned &count = taken[base];
    std::string name = count == 0 ? base : base + "_" + std::to_string(count);
    ++count;
    if (count == 1 || taken.emplace(name, 1).second)
      return name;
  }
}

const std::string &Program::define(const at::Tensor &tensor, const std::string &wanted,
                                   bool requiresGrad) {
  std::string name = uniqueName(wanted);
  metas[name] = metaOf(tensor, requiresGrad);
  kept.push_back(tensor);
  return names[tensor.unsafeGetTensorImpl()] = name;
}

const std::string &Program::nameOf(const at::Tensor &tensor) const {
  auto found = names.find(tensor.unsafeGetTensorImpl());
  TORCH_CHECK(found != names.end(), "a tensor comes from an operation that was not recorded");
  return found->second;
}

at::Tensor Program::addInput(InputKind kind, const std::string &path, at::ScalarType type,
                             c10::IntArrayRef sizes, c10::IntArrayRef strides, bool requiresGrad) {
  at::Tensor tensor =
      at::empty_strided(sizes, strides, at::TensorOptions().dtype(type).device(at::kMeta));
  const char *prefix = kind == InputKind::Parameter  ? "p_"
                       : kind == InputKind::Buffer   ? "b_"
                       : kind == InputKind::Constant ? "c_"
                                                     : "";
  inputs.push_back({kind, define(tensor, prefix + path, requiresGrad), path});
  return tensor;
}

at::Tensor Program::constant(const at::Tensor &value) {
  for (size_t i = 0; i < constants.size(); ++i) {
    const at::Tensor &candidate = constants[i];
    if (!candidate.defined() || candidate.scalar_type() != value.scalar_type() ||
        !candidate.equal(value))
      continue;
    at::Tensor &input = constantInputs[i];
    if (!input.defined())
      input = addInput(InputKind::Constant, "CONSTANTS.c" + std::to_string(i), value.scalar_type(),
                       value.sizes(), candidate.strides());
    return input;
  }
  TORCH_CHECK(false, "a tensor of the code is not in the archive's table of constants");
}

void Program::addOutput(const at::Tensor &tensor) {
  outputs.push_back(nameOf(symbolic(tensor, Place{})));
}

void Program::addMutation(const std::string &buffer, const at::Tensor &tensor) {
  mutations.emplace_back(buffer, nameOf(symbolic(tensor, Place{})));
}

at::Tensor Program::symbolic(const at::Tensor &tensor, const Place &place) {
  if (tensor.is_meta())
    return tensor;
  TORCH_CHECK(tensor.numel() <= maxSpelledElements, "a tensor of ", tensor.numel(),
              " numbers is made by the code: make it a buffer of the model");
  auto [found, added] = symbols.try_emplace(tensor.unsafeGetTensorImpl());
  if (added) {
    kept.push_back(tensor);
    found->second =
        at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().device(at::kMeta));
    at::Tensor symbol = found->second;
    addConstant(tensor, symbol, place);
    return symbol;
  }
  return found->second;
}

/// Each element as a 0-dim constant; several are stacked and given their shape.
void Program::addConstant(const at::Tensor &value, const at::Tensor &symbol, const Place &place) {
  at::Tensor flat = value.contiguous().flatten();
  auto element = [&](int64_t i) {
    c10::Scalar scalar = flat[i].item();
    if (scalar.isBoolean())
      return member("as_bool", scalar.toBool() ? "true" : "false");
    if (scalar.isIntegral(/*includeBool=*/false))
      return member("as_int", std::to_string(scalar.toLong()));
    return member("as_float", number(scalar.toDouble()));
  };
  auto input = [](const char *name, const std::string &argument, int kind) {
    return "{\"name\": " + jsonString(name) + ", \"arg\": " + argument +
           ", \"kind\": " + std::to_string(kind) + "}";
  };
  std::string type =
      input("dtype", member("as_scalar_type", std::to_string(exportCode(value.scalar_type()))), 2);
  auto sizes = [](c10::IntArrayRef list_) {
    return member("as_ints", list(list_, [](int64_t n) { return std::to_string(n); }));
  };
  auto add = [&](const char *target, const std::string &arguments, const std::string &name,
                 std::vector<std::string> used) {
    nodes.push_back({name,
                     target,
                     "[" + arguments + "]",
                     "[" + member("as_tensor", tensorArgument(name)) + "]",
                     std::move(used),
                     {name},
                     false,
                     place});
  };
  if (flat.numel() == 1 || flat.numel() == 0) {
    std::string fill = flat.numel() == 0 ? member("as_int", "0") : element(0);
    std::string name = define(symbol, "constant");
    add("torch.ops.aten.full.default",
        input("size", sizes(value.sizes()), 1) + ", " + input("fill_value", fill, 1) + ", " + type,
        name, {});
    return;
  }
  std::vector<std::string> parts;
  for (int64_t i = 0; i < flat.numel(); ++i) {
    std::string name = define(symbol.new_empty({}), "constant");
    add("torch.ops.aten.full.default",
        input("size", sizes({}), 1) + ", " + input("fill_value", element(i), 1) + ", " + type, name,
        {});
    parts.push_back(name);
  }
  std::string stacked = define(symbol.new_empty({flat.numel()}), "constant");
  add("torch.ops.aten.stack.default",
      input("tensors", member("as_tensors", list(parts, tensorArgument)), 1), stacked, parts);
  std::string name = define(symbol, "constant");
  add("torch.ops.aten.view.default",
      input("self", member("as_tensor", tensorArgument(stacked)), 1) + ", " +
          input("size", sizes(value.sizes()), 1),
      name, {stacked});
}

std::string Program::argument(const c10::IValue &value, const c10::TypePtr &declared, Node &node) {
  c10::TypePtr type = declared;
  if (auto optional = type->cast<c10::OptionalType>())
    type = optional->getElementType();
  auto tensor = [&](const at::Tensor &t) {
    node.used.push_back(nameOf(t));
    return tensorArgument(node.used.back());
  };
  auto integers = [](const std::vector<int64_t> &values) {
    return list(values, [](int64_t n) { return std::to_string(n); });
  };
  if (value.isNone())
    return member("as_none", "true");
  if (value.isTensor())
    return value.toTensor().defined() ? member("as_tensor", tensor(value.toTensor()))
                                      : member("as_none", "true");
  if (value.isBool())
    return member("as_bool", value.toBool() ? "true" : "false");
  if (value.isInt()) {
    int64_t code = value.toInt();
    switch (type->kind()) {
    case c10::TypeKind::ScalarTypeType:
      return member("as_scalar_type",
                    std::to_string(exportCode(static_cast<at::ScalarType>(code))));
    case c10::TypeKind::LayoutType:
      return member("as_layout", code == 0 ? "7" : "0");
    case c10::TypeKind::MemoryFormatType: // contiguous, preserve, channels last, the same in 3-d
      return member("as_memory_format", std::to_string(code == 0 ? 1 : code == 1 ? 4 : code));
    default:
      return member("as_int", std::to_string(code));
    }
  }
  if (value.isDouble())
    return member("as_float", number(value.toDouble()));
  if (value.isString())
    return member("as_string", jsonString(value.toStringRef()));
  if (value.isIntList())
    return member("as_ints", integers(value.toIntVector()));
  if (value.isDoubleList())
    return member("as_floats", list(value.toDoubleVector(), number));
  if (value.isBoolList())
    return member("as_bools", list(value.toBoolList().vec(),
                                   [](bool b) { return std::string(b ? "true" : "false"); }));
  if (value.isDevice())
    return member("as_device", "{\"type\": \"cpu\", \"index\": null}");
  if (value.isTensorList())
    return member("as_tensors", list(value.toTensorVector(), tensor));
  if (value.isList()) {
    const auto &items = value.toListRef();
    bool tensors = std::all_of(items.begin(), items.end(), [](const c10::IValue &item) {
      return item.isNone() || item.isTensor();
    });
    if (tensors)
      return member("as_optional_tensors", list(items, [&](const c10::IValue &item) {
                      return item.isTensor() && item.toTensor().defined()
                                 ? member("as_tensor", tensor(item.toTensor()))
                                 : member("as_none", "true");
                    }));
    if (items.empty())
      return member("as_ints", "[]");
  }
  return member("as_custom_obj", jsonString(value.tagKind())); // a form that the importer refuses
}

std::string Program::output(const c10::IValue &value, Node &node) {
  auto make = [&](const at::Tensor &tensor) {
    node.made.push_back(define(tensor, node.name));
    return tensorArgument(node.made.back());
  };
  if (value.isTensor() && value.toTensor().defined())
    return member("as_tensor", make(value.toTensor()));
  if (value.isTensorList())
    return member("as_tensors", list(value.toTensorVector(), make));
  return member("as_none", "true");
}

void Program::addCall(const c10::FunctionSchema &schema, const std::vector<c10::IValue> &arguments,
                      const std::vector<c10::IValue> &results, const Place &place) {
  std::string packet = schema.name();
  if (size_t colon = packet.rfind("::"); colon != std::string::npos)
    packet.replace(colon, 2, ".");
  std::string overload = schema.overload_name().empty() ? "default" : schema.overload_name();
  Node node;
  node.target = "torch.ops." + packet + "." + overload;
  node.name = packet.substr(packet.rfind('.') + 1);
  node.place = place;
  node.updates = schema.is_mutable();
  // Results that are arguments: nothing new, unless they were updated.
  bool isNew = node.updates;
  for (const c10::IValue &result : results)
    isNew |= !result.isTensor() || !result.toTensor().defined() || !isNamed(result.toTensor());
  if (!isNew)
    return;
  node.inputs = "[";
  for (size_t i = 0; i < arguments.size(); ++i) {
    const c10::Argument &declared = schema.arguments()[i];
    std::optional<c10::IValue> otherwise = declared.default_value();
    if (arguments[i].isNone() && otherwise && otherwise->isNone())
      continue;
    if (node.inputs.size() > 1)
      node.inputs += ", ";
    node.inputs += "{\"name\": " + jsonString(declared.name()) +
                   ", \"arg\": " + argument(arguments[i], declared.real_type(), node) +
                   ", \"kind\": " + (declared.kwarg_only() ? "2" : "1") + "}";
  }
  node.inputs += "]";
  node.outputs = list(results, [&](const c10::IValue &result) { return output(result, node); });
  node.name = node.made.empty() ? uniqueName(node.name) : node.made.front();
  nodes.push_back(std::move(node));
}

/// Updates in place may be seen through other names, so all of them stay.
void Program::dropDead() {
  std::unordered_set<std::string> needed(outputs.begin(), outputs.end());
  for (const auto &[buffer, value] : mutations)
    needed.insert(value);
  std::vector<Node> live;
  for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
    bool isLive = node->updates || std::any_of(node->made.begin(), node->made.end(),
                                               [&](const auto &n) { return needed.contains(n); });
    if (!isLive) {
      for (const std::string &name : node->made)
        metas.erase(name);
      continue;
    }
    needed.insert(node->used.begin(), node->used.end());
    live.push_back(std::move(*node));
  }
  std::reverse(live.begin(), live.end());
  nodes = std::move(live);
}

std::string Program::toJson() {
  dropDead();
  auto asTensor = [](const std::string &name) { return member("as_tensor", tensorArgument(name)); };
  auto inputSpec = [&](const Input &input) -> std::string {
    std::string arg = "\"arg\": " + tensorArgument(input.name);
    switch (input.kind) {
    case InputKind::Parameter:
      return member("parameter",
                    "{" + arg + ", \"parameter_name\": " + jsonString(input.path) + "}");
    case InputKind::Buffer:
      return member("buffer", "{" + arg + ", \"buffer_name\": " + jsonString(input.path) +
                                  ", \"persistent\": true}");
    case InputKind::Constant:
      return member("tensor_constant",
                    "{" + arg + ", \"tensor_constant_name\": " + jsonString(input.path) + "}");
    case InputKind::User:
      break;
    }
    return member("user_input", member("arg", asTensor(input.name)));
  };
  std::string json = "{\"schema_version\": {\"major\": 8, \"minor\": 20}, \"torch_version\": \"\", "
                     "\"verifiers\": [\"TRAINING\"], \"range_constraints\": {}, \"graph_module\": "
                     "{\"graph\": {\"inputs\": ";
  json += list(inputs, [&](const Input &input) { return asTensor(input.name); });
  std::vector<std::string> results;
  for (const auto &[buffer, value] : mutations)
    results.push_back(value);
  results.insert(results.end(), outputs.begin(), outputs.end());
  json += ", \"outputs\": " + list(results, asTensor) + ", \"nodes\": ";
  json += list(nodes, [](const Node &node) {
    std::string stack = node.place.module.empty() ? "" : "L," + node.place.module + ",";
    return "{\"name\": " + jsonString(node.name) + ", \"target\": " + jsonString(node.target) +
           ", \"inputs\": " + node.inputs + ", \"outputs\": " + node.outputs +
           ", \"metadata\": {\"stack_trace\": " + jsonString(node.place.trace) +
           ", \"nn_module_stack\": " + jsonString(stack) + "}}\n";
  });
  json += ", \"tensor_values\": {";
  bool first = true;
  for (const auto &[name, meta] : metas) {
    json += (first ? "" : ",\n") + jsonString(name) + ": " + meta;
    first = false;
  }
  json += "}, \"sym_int_values\": {}, \"sym_bool_values\": {}, \"sym_float_values\": {}}, "
          "\"signature\": {\"input_specs\": ";
  std::vector<std::string> specs;
  for (const auto &[buffer, value] : mutations)
    specs.push_back(member("buffer_mutation", "{\"arg\": " + tensorArgument(value) +
                                                  ", \"buffer_name\": " + jsonString(buffer) +
                                                  "}"));
  for (const std::string &name : outputs)
    specs.push_back(member("user_output", member("arg", asTensor(name))));
  json += list(inputs, inputSpec) + ", \"output_specs\": ";
  json += list(specs, [](const std::string &spec) { return spec; });
  return json + "}, \"module_call_graph\": []}}\n";
}

} // namespace shardc::torchscript
