// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "importers/torch_export/program/Program.h"

#include <unordered_set>

namespace shardc::torch_export {
namespace {

// Larger ranks do not exist in PyTorch.
constexpr size_t maxRank = 64;

class Verifier {
public:
  Verifier(const Graph &graph, std::string &error)
      : graph(graph), error(error), definedTensors(graph.tensors.size()) {}

  bool run() {
    for (const auto &[name, meta] : graph.tensors)
      if (!shape(meta))
        return fail("tensor '" + std::string(name) + "': " + error);
    for (const Argument &input : graph.inputs)
      if (!define(input))
        return fail("graph inputs: " + error);
    for (const Node &node : graph.nodes)
      if (!check(node))
        return fail("node '" + std::string(node.name) + "' (" + std::string(node.target) +
                    "): " + error);
    for (const Argument &output : graph.outputs)
      if (!use(output))
        return fail("graph outputs: " + error);
    return true;
  }

private:
  bool fail(std::string what) {
    error = std::move(what);
    return false;
  }

  bool shape(const TensorMeta &meta) {
    if (meta.sizes.size() > maxRank)
      return fail("it has " + std::to_string(meta.sizes.size()) + " dims");
    int64_t bytes = int64_t(byteWidth(meta.type));
    bool empty = false, overflow = false;
    for (const SymInt &size : meta.sizes) {
      if (size.value < 0)
        return fail("it has a negative size");
      if (!size.constant() && !size.hasHint)
        continue;
      empty |= size.value == 0;
      overflow |= __builtin_mul_overflow(bytes, size.value, &bytes);
    }
    return (empty || !overflow) || fail("its size in bytes does not fit in 64 bits");
  }

  bool check(const Node &node) {
    for (const NamedArgument &input : node.inputs)
      if (!use(input.value))
        return false;
    for (const Argument &output : node.outputs)
      if (!define(output))
        return false;
    return true;
  }

  bool isDefined(const TensorArg &tensor) const {
    return tensor.number != TensorArg::unknown && definedTensors[tensor.number];
  }
  bool notDefined(std::string_view name) {
    return fail("the value '" + std::string(name) + "' is used but not defined before");
  }
  bool definedTwice(std::string_view name) {
    return fail("the value '" + std::string(name) + "' is defined twice");
  }
  bool useTensor(const TensorArg &tensor) { return isDefined(tensor) || notDefined(tensor.name); }
  bool useScalar(std::string_view name) {
    return definedScalars.contains(name) || notDefined(name);
  }
  bool defineScalar(std::string_view name) {
    uint32_t tensor = graph.tensors.numberOf(name);
    return (definedScalars.insert(name).second && !isDefined({name, tensor})) || definedTwice(name);
  }
  bool defineTensor(const TensorArg &tensor) {
    if (tensor.number == TensorArg::unknown)
      return fail("the tensor '" + std::string(tensor.name) + "' has no metadata");
    if (isDefined(tensor) || (!definedScalars.empty() && definedScalars.contains(tensor.name)))
      return definedTwice(tensor.name);
    return definedTensors[tensor.number] = true;
  }

  bool use(const Argument &argument) {
    if (auto *tensor = std::get_if<TensorArg>(&argument))
      return tensor->name.empty() || useTensor(*tensor);
    if (auto *list = std::get_if<TensorListArg>(&argument)) {
      for (const TensorArg &tensor : list->tensors)
        if (!tensor.name.empty() && !useTensor(tensor))
          return false;
    } else if (auto *number = std::get_if<SymIntArg>(&argument)) {
      return number->constant() || useScalar(number->name);
    } else if (auto *numbers = std::get_if<SymIntListArg>(&argument)) {
      for (const SymIntArg &value : numbers->values)
        if (!value.constant() && !useScalar(value.name))
          return false;
    } else if (auto *flag = std::get_if<SymBoolArg>(&argument)) {
      return useScalar(flag->name);
    } else if (auto *real = std::get_if<SymFloatArg>(&argument)) {
      return useScalar(real->name);
    } else if (auto *nested = std::get_if<GraphArg>(&argument)) {
      return Verifier(*nested->graph, error).run() ||
             fail("in its graph '" + std::string(nested->name) + "': " + error);
    }
    return true;
  }

  bool define(const Argument &argument) {
    if (auto *tensor = std::get_if<TensorArg>(&argument))
      return tensor->name.empty() ? fail("an output has no name") : defineTensor(*tensor);
    if (auto *list = std::get_if<TensorListArg>(&argument)) {
      for (const TensorArg &tensor : list->tensors)
        if (!tensor.name.empty() && !defineTensor(tensor))
          return false;
    } else if (auto *number = std::get_if<SymIntArg>(&argument)) {
      if (number->constant())
        return true;
      if (!graph.symInts.contains(number->name))
        return fail("the symbolic integer '" + std::string(number->name) + "' has no expression");
      return defineScalar(number->name);
    } else if (auto *flag = std::get_if<SymBoolArg>(&argument)) {
      return defineScalar(flag->name);
    } else if (auto *real = std::get_if<SymFloatArg>(&argument)) {
      return defineScalar(real->name);
    }
    return true;
  }

  const Graph &graph;
  std::string &error;
  std::vector<bool> definedTensors; // by number
  std::unordered_set<std::string_view> definedScalars;
};

} // namespace

bool verifyGraph(const Graph &graph, std::string &error) { return Verifier(graph, error).run(); }

} // namespace shardc::torch_export
