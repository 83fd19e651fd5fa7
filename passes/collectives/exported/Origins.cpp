// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/exported/Origins.h"

#include "importers/torch_export/program/Metadata.h"

using namespace shardc;
using namespace shardc::collectives;
using torch_export::Argument;

namespace {

struct Name {
  std::string_view text;
  /// A qualified name in the model, so that what precedes the last dot is a module.
  bool qualified = false;
};

/// Value -> the parameter, input or output at the end of a chain of operators with one operand.
using Names = std::unordered_map<std::string_view, Name>;

/// A qualified name if there is one, else the first that is not empty.
Name nameOf(std::string_view target, std::string_view name, std::string_view value) {
  return target.empty() ? Name{name.empty() ? value : name} : Name{target, true};
}

template <typename Fn> void forEachTensor(const Argument &argument, Fn fn) {
  if (auto *tensor = std::get_if<torch_export::TensorArg>(&argument))
    fn(tensor->name);
  else if (auto *list = std::get_if<torch_export::TensorListArg>(&argument))
    for (const torch_export::TensorArg &tensor : list->tensors)
      fn(tensor.name);
}

/// The only tensor that the arguments name, or nothing.
template <typename Arguments, typename Get>
std::string_view onlyTensor(const Arguments &arguments, Get get) {
  std::string_view only;
  size_t count = 0;
  for (const auto &argument : arguments)
    forEachTensor(get(argument), [&](std::string_view name) {
      only = name;
      ++count;
    });
  return count == 1 ? only : std::string_view();
}

std::string_view operandOf(const torch_export::Node &node) {
  return onlyTensor(node.inputs, [](const auto &input) -> auto & { return input.value; });
}
std::string_view resultOf(const torch_export::Node &node) {
  return onlyTensor(node.outputs, [](const auto &output) -> auto & { return output; });
}

Names fromInputs(const torch_export::ExportedProgram &program) {
  Names names;
  for (size_t i = 0; i != program.inputs.size() && i != program.graph.inputs.size(); ++i)
    forEachTensor(program.graph.inputs[i], [&](std::string_view value) {
      names[value] = nameOf(program.inputs[i].target, program.inputs[i].name, value);
    });
  for (const torch_export::Node &node : program.graph.nodes)
    if (auto it = names.find(operandOf(node)); it != names.end()) {
      Name name = it->second;
      for (const Argument &output : node.outputs)
        forEachTensor(output, [&](std::string_view value) { names[value] = name; });
    }
  return names;
}

Names toOutputs(const torch_export::ExportedProgram &program) {
  Names names;
  for (const torch_export::OutputSpec &spec : program.outputs)
    forEachTensor(spec.value, [&](std::string_view value) {
      names.try_emplace(value, nameOf(spec.target, spec.path, value));
    });
  for (auto it = program.graph.nodes.rbegin(); it != program.graph.nodes.rend(); ++it) {
    auto known = names.find(resultOf(*it));
    if (std::string_view operand = operandOf(*it); known != names.end() && !operand.empty()) {
      Name name = known->second;
      names.try_emplace(operand, name);
    }
  }
  return names;
}

/// "model.layers.0.weight" -> "model.layers.0"
std::string_view parentOf(std::string_view name) {
  size_t dot = name.rfind('.');
  return dot == name.npos ? std::string_view() : name.substr(0, dot);
}

std::string locationText(torch_export::SourceLine line) {
  if (line.line == 0)
    return "";
  return std::string(line.file) + ":" + std::to_string(line.line);
}

} // namespace

std::vector<Origin> shardc::collectives::originsOf(const torch_export::ExportedProgram &program) {
  Names inputs = fromInputs(program), outputs = toOutputs(program);
  auto find = [](const Names &names, std::string_view value) {
    auto it = names.find(value);
    return it == names.end() ? Name() : it->second;
  };
  std::vector<Origin> origins;
  origins.reserve(program.graph.nodes.size());
  for (const torch_export::Node &node : program.graph.nodes) {
    Name tensor = find(inputs, operandOf(node));
    if (tensor.text.empty())
      tensor = find(outputs, resultOf(node));
    std::string_view module = torch_export::modulePath(node.moduleStack);
    if (module.empty() && tensor.qualified)
      module = parentOf(tensor.text);
    origins.push_back({std::string(module), std::string(tensor.text),
                       locationText(torch_export::sourceLine(node.stackTrace))});
  }
  return origins;
}
