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

/// By the tensor's number: the parameter, input or output at the end of a chain of operators with
/// one operand.
using Names = std::vector<Name>;

constexpr uint32_t unknown = torch_export::TensorArg::unknown;

/// A qualified name if there is one, else the first that is not empty.
Name nameFrom(std::string_view target, std::string_view name, std::string_view value) {
  return target.empty() ? Name{name.empty() ? value : name} : Name{target, true};
}

template <typename Fn> void forEachTensor(const Argument &argument, Fn fn) {
  if (auto *tensor = std::get_if<torch_export::TensorArg>(&argument))
    fn(*tensor);
  else if (auto *list = std::get_if<torch_export::TensorListArg>(&argument))
    for (const torch_export::TensorArg &tensor : list->tensors)
      fn(tensor);
}

/// The number of the only tensor that the arguments name, or `unknown`.
template <typename Arguments, typename Get>
uint32_t onlyTensor(const Arguments &arguments, Get get) {
  uint32_t only = unknown;
  size_t count = 0;
  for (const auto &argument : arguments)
    forEachTensor(get(argument), [&](const torch_export::TensorArg &tensor) {
      only = tensor.number;
      ++count;
    });
  return count == 1 ? only : unknown;
}

uint32_t operandOf(const torch_export::Node &node) {
  return onlyTensor(node.inputs, [](const auto &input) -> auto & { return input.value; });
}
uint32_t resultOf(const torch_export::Node &node) {
  return onlyTensor(node.outputs, [](const auto &output) -> auto & { return output; });
}

Names fromInputs(const torch_export::ExportedProgram &program) {
  Names names(program.graph.tensors.size());
  auto set = [&](const torch_export::TensorArg &tensor, Name name) {
    if (tensor.number != unknown)
      names[tensor.number] = name;
  };
  for (size_t i = 0; i != program.inputs.size() && i != program.graph.inputs.size(); ++i)
    forEachTensor(program.graph.inputs[i], [&](const torch_export::TensorArg &tensor) {
      set(tensor, nameFrom(program.inputs[i].target, program.inputs[i].name, tensor.name));
    });
  for (const torch_export::Node &node : program.graph.nodes)
    if (uint32_t operand = operandOf(node); operand != unknown && !names[operand].text.empty())
      for (const Argument &output : node.outputs)
        forEachTensor(output,
                      [&](const torch_export::TensorArg &tensor) { set(tensor, names[operand]); });
  return names;
}

Names toOutputs(const torch_export::ExportedProgram &program) {
  Names names(program.graph.tensors.size());
  auto setFirst = [&](uint32_t tensor, Name name) {
    if (tensor != unknown && names[tensor].text.empty())
      names[tensor] = name;
  };
  for (const torch_export::OutputSpec &spec : program.outputs)
    forEachTensor(spec.value, [&](const torch_export::TensorArg &tensor) {
      setFirst(tensor.number, nameFrom(spec.target, spec.path, tensor.name));
    });
  for (auto it = program.graph.nodes.rbegin(); it != program.graph.nodes.rend(); ++it)
    if (uint32_t result = resultOf(*it); result != unknown && !names[result].text.empty())
      setFirst(operandOf(*it), names[result]);
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
  auto find = [](const Names &names, uint32_t tensor) {
    return tensor == unknown ? Name() : names[tensor];
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
