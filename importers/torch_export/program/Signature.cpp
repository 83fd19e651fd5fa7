// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reads what inputs and outputs mean.
#include "importers/torch_export/program/Reader.h"

namespace shardc::torch_export {
namespace {

// The name of the value in any form of argument, if it has one.
std::string_view valueName(const Argument &argument) {
  if (auto *tensor = std::get_if<TensorArg>(&argument))
    return tensor->name;
  if (auto *number = std::get_if<SymIntArg>(&argument))
    return number->name;
  if (auto *number = std::get_if<SymFloatArg>(&argument))
    return number->name;
  if (auto *flag = std::get_if<SymBoolArg>(&argument))
    return flag->name;
  return {};
}

bool appendLeaves(JsonValue spec, const std::string &path, std::vector<std::string> &out) {
  if (!spec.isObject())
    return false;
  JsonValue children = spec["children_spec"];
  if (spec["type"].isNull()) {
    out.push_back(path);
    return true;
  }
  // A dict, or a class that PyTorch flattens like one, keeps its keys as JSON in its context.
  std::string error;
  std::optional<JsonDocument> context =
      JsonDocument::parse(spec["context"].string().value_or("null"), error);
  std::vector<std::string> keys;
  if (context && context->root().size() == children.size())
    for (JsonValue key : context->root().elements())
      if (std::optional<std::string_view> name = key.string())
        keys.emplace_back(*name);
  bool named = keys.size() == children.size();
  size_t i = 0;
  for (JsonValue child : children.elements()) {
    std::string step = named ? keys[i] : std::to_string(i);
    ++i;
    if (!appendLeaves(child, path.empty() ? step : path + "." + step, out))
      return false;
  }
  return true;
}

} // namespace

std::vector<std::string> treeLeafPaths(std::string_view treespec) {
  std::string error;
  std::optional<JsonDocument> document = JsonDocument::parse(treespec, error);
  std::vector<std::string> paths;
  if (!document || document->root().size() != 2)
    return paths;
  auto spec = document->root().elements().begin();
  if (!appendLeaves(*++spec, "", paths))
    paths.clear();
  return paths;
}

bool Reader::inputSpec(JsonValue value, InputSpec &out) {
  using Kind = InputSpec::Kind;
  JsonMember member = unionMember(value);
  JsonValue spec = member.value;
  if (member.key == "user_input") {
    Argument argument;
    if (!this->argument(spec["arg"], argument))
      return false;
    out.kind = valueName(argument).empty() ? Kind::ConstantInput : Kind::UserInput;
    out.name = valueName(argument);
    return true;
  }
  if (member.key == "constant_input") {
    out.kind = Kind::ConstantInput;
    return string(spec["name"], out.name, "the name of a constant input");
  }
  if (!string(spec["arg"]["name"], out.name, "the name of an input"))
    return false;
  if (member.key == "parameter") {
    out.kind = Kind::Parameter;
    return string(spec["parameter_name"], out.target, "parameter_name");
  }
  if (member.key == "buffer") {
    out.kind = Kind::Buffer;
    out.persistent = spec["persistent"].boolean().value_or(true);
    return string(spec["buffer_name"], out.target, "buffer_name");
  }
  if (member.key == "tensor_constant") {
    out.kind = Kind::TensorConstant;
    return string(spec["tensor_constant_name"], out.target, "tensor_constant_name");
  }
  if (member.key == "custom_obj") {
    out.kind = Kind::CustomObject;
    return string(spec["custom_obj_name"], out.target, "custom_obj_name");
  }
  out.kind = Kind::Token;
  return member.key == "token" ||
         fail("an input has the unknown kind '" + std::string(member.key) + "'");
}

bool Reader::outputSpec(JsonValue value, OutputSpec &out) {
  using Kind = OutputSpec::Kind;
  struct Form {
    std::string_view key;
    Kind kind;
    std::string_view target;
  };
  static constexpr Form forms[] = {
      {"loss_output", Kind::Loss, ""},
      {"buffer_mutation", Kind::BufferMutation, "buffer_name"},
      {"parameter_mutation", Kind::ParameterMutation, "parameter_name"},
      {"user_input_mutation", Kind::UserInputMutation, "user_input_name"},
      {"gradient_to_parameter", Kind::GradientToParameter, "parameter_name"},
      {"gradient_to_user_input", Kind::GradientToUserInput, "user_input_name"},
      {"token", Kind::Token, ""},
  };
  JsonMember member = unionMember(value);
  JsonValue spec = member.value;
  if (member.key == "user_output")
    return argument(spec["arg"], out.value);
  for (const Form &form : forms) {
    if (form.key != member.key)
      continue;
    out.kind = form.kind;
    TensorArg tensor;
    if (!string(spec["arg"]["name"], tensor.name, "the name of an output") ||
        (!form.target.empty() && !string(spec[form.target], out.target, form.target)))
      return false;
    out.value = tensor;
    return true;
  }
  return fail("an output has the unknown kind '" + std::string(member.key) + "'");
}

} // namespace shardc::torch_export
