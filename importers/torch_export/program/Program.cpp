// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "importers/torch_export/program/Program.h"

#include "importers/torch_export/program/Reader.h"

namespace shardc::torch_export {
namespace {

constexpr int64_t knownMajor = 8;

bool checkVersion(JsonValue root, Reader &reader) {
  int64_t major = 0;
  if (!reader.integer(root["schema_version"]["major"], major, "schema_version.major"))
    return false;
  if (major > knownMajor)
    return reader.fail(
        "the program has schema version " + std::to_string(major) + ", newer than version " +
        std::to_string(knownMajor) +
        ", which this version of shardc reads: update shardc, or export with PyTorch 2.13");
  if (major < knownMajor)
    return reader.fail("the program has schema version " + std::to_string(major) +
                       "; versions before " + std::to_string(knownMajor) +
                       " are not read: export it again with PyTorch 2.13");
  return true;
}

bool readModuleCalls(JsonValue calls, Reader &reader, ExportedProgram &program) {
  std::vector<std::string> paths;
  for (JsonValue call : calls.elements()) {
    std::string_view name;
    if (!reader.string(call["fqn"], name, "the name of a module"))
      return false;
    program.modules.push_back(name);
    JsonValue signature = call["signature"];
    if (!name.empty() || !signature.isObject())
      continue;
    for (JsonValue argument : signature["forward_arg_names"].elements())
      program.argumentNames.push_back(argument.string().value_or(std::string_view()));
    paths = treeLeafPaths(signature["out_spec"].string().value_or(std::string_view()));
  }
  // The tree's leaves are the user outputs, in order.
  size_t users = 0;
  for (const OutputSpec &output : program.outputs)
    users += output.kind == OutputSpec::Kind::UserOutput || output.kind == OutputSpec::Kind::Loss;
  if (users != paths.size())
    return true;
  users = 0;
  for (OutputSpec &output : program.outputs)
    if (output.kind == OutputSpec::Kind::UserOutput || output.kind == OutputSpec::Kind::Loss)
      output.path = std::move(paths[users++]);
  return true;
}

bool readSignature(JsonValue module, Reader &reader, ExportedProgram &program) {
  JsonValue signature = module["signature"];
  for (JsonValue spec : signature["input_specs"].elements())
    if (!reader.inputSpec(spec, program.inputs.emplace_back()))
      return false;
  for (JsonValue spec : signature["output_specs"].elements())
    if (!reader.outputSpec(spec, program.outputs.emplace_back()))
      return false;
  if (program.inputs.size() != program.graph.inputs.size() ||
      program.outputs.size() != program.graph.outputs.size())
    return reader.fail("the signature has another number of inputs or outputs than the graph");
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    auto *tensor = std::get_if<TensorArg>(&program.graph.inputs[i]);
    if (tensor && tensor->name != program.inputs[i].name)
      return reader.fail("input " + std::to_string(i) + " is '" + std::string(tensor->name) +
                         "' in the graph and '" + std::string(program.inputs[i].name) +
                         "' in the signature");
  }
  for (size_t i = 0; i < program.outputs.size(); ++i) {
    auto *inGraph = std::get_if<TensorArg>(&program.graph.outputs[i]);
    auto *inSpec = std::get_if<TensorArg>(&program.outputs[i].value);
    if ((inGraph != nullptr) != (inSpec != nullptr) || (inGraph && inGraph->name != inSpec->name))
      return reader.fail("output " + std::to_string(i) + " differs between graph and signature");
  }
  return readModuleCalls(module["module_call_graph"], reader, program);
}

bool readProgram(JsonValue root, Reader &reader, ExportedProgram &program) {
  if (!root.isObject())
    return reader.fail("the program is not a JSON object");
  if (!checkVersion(root, reader))
    return false;
  JsonValue module = root["graph_module"];
  if (!reader.graph(module["graph"], program.graph))
    return false;
  reader.tensors = &program.graph.tensors;
  if (!readSignature(module, reader, program))
    return false;
  for (JsonMember member : root["range_constraints"].members())
    program.ranges.push_back(
        {member.key, member.value["min_val"].integer(), member.value["max_val"].integer()});
  for (JsonValue guard : root["guards_code"].elements())
    program.guards.push_back(guard.string().value_or(std::string_view()));
  program.torchVersion = root["torch_version"].string().value_or(std::string_view());
  for (JsonValue verifier : root["verifiers"].elements())
    program.training |= verifier.string() == "TRAINING";
  return verifyGraph(program.graph, reader.error);
}

} // namespace

std::optional<ExportedProgram> parseProgram(std::string_view json, std::string &error) {
  std::optional<JsonDocument> document = JsonDocument::parse(json, error);
  return document ? parseProgram(*document, error) : std::nullopt;
}

std::optional<ExportedProgram> parseProgram(const JsonDocument &document, std::string &error) {
  ExportedProgram program;
  program.strings = document.strings();
  Reader reader;
  if (!readProgram(document.root(), reader, program)) {
    error = reader.error;
    return std::nullopt;
  }
  return program;
}

} // namespace shardc::torch_export
