// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/exported/FromProgram.h"

#include "passes/collectives/exported/Flops.h"

#include <unordered_map>

using namespace shardc;
using namespace shardc::collectives;
using torch_export::Argument;

namespace {

class Converter {
public:
  Converter(const torch_export::ExportedProgram &program, const ProcessGroups &processGroups,
            const Durations &durations, const cost::CostModel &model,
            std::vector<std::string> &errors, std::string_view sizesAreFrom)
      : program(program), processGroups(processGroups), durations(durations), model(model),
        errors(errors), sizesAreFrom(sizesAreFrom), tensors(program.graph.tensors.size(), none) {}

  std::optional<Graph> run() {
    size_t before = errors.size();
    for (const Argument &argument : program.graph.inputs)
      forEachName(argument, [&](const Name &name) { graph.addInput(define(name)); });
    for (const torch_export::Node &node : program.graph.nodes)
      convert(node);
    reportGroups();
    if (errors.size() != before)
      return std::nullopt;
    for (const Argument &argument : program.graph.outputs)
      forEachName(argument, [&](const Name &name) {
        if (isTensor(name))
          graph.addOutput(use(name));
      });
    if (!graph.finalize(errors))
      return std::nullopt;
    return std::move(graph);
  }

private:
  /// A tensor by its number, or a scalar, which has none, by its name.
  using Name = torch_export::TensorArg;
  static bool isTensor(const Name &name) { return name.number != Name::unknown; }

  /// Calls fn for each value that an argument names, in order.
  template <typename Fn> static void forEachName(const Argument &argument, Fn fn) {
    if (auto *tensor = std::get_if<torch_export::TensorArg>(&argument)) {
      if (!tensor->name.empty())
        fn(*tensor);
    } else if (auto *tensors = std::get_if<torch_export::TensorListArg>(&argument)) {
      for (const torch_export::TensorArg &tensor : tensors->tensors)
        if (!tensor.name.empty())
          fn(tensor);
    } else if (auto *size = std::get_if<torch_export::SymIntArg>(&argument)) {
      if (!size->constant())
        fn(Name{size->name});
    } else if (auto *sizes = std::get_if<torch_export::SymIntListArg>(&argument)) {
      for (const torch_export::SymIntArg &size : sizes->values)
        if (!size.constant())
          fn(Name{size.name});
    } else if (auto *number = std::get_if<torch_export::SymFloatArg>(&argument)) {
      fn(Name{number->name});
    } else if (auto *flag = std::get_if<torch_export::SymBoolArg>(&argument)) {
      fn(Name{flag->name});
    }
  }

  ValueId define(const Name &name) {
    if (!isTensor(name))
      return scalars[name.name] = graph.addScalar();
    const torch_export::TensorMeta &meta = program.graph.tensors[name.number].second;
    uint64_t bytes = byteWidth(meta.type);
    for (const torch_export::SymInt &size : meta.sizes)
      bytes *= size.constant() || size.hasHint ? size.value : unknownExtent;
    return tensors[name.number] = graph.addTensor(bytes, static_cast<uint32_t>(meta.type));
  }

  /// A scalar that no node makes comes from outside.
  ValueId use(const Name &name) {
    if (isTensor(name)) {
      if (tensors[name.number] != none)
        return tensors[name.number];
    } else if (auto it = scalars.find(name.name); it != scalars.end()) {
      return it->second;
    }
    ValueId value = define(name);
    graph.addInput(value);
    return value;
  }

  /// Large graphs have few targets.
  TargetClass classOf(std::string_view target) {
    auto [it, isNew] = targets.try_emplace(target);
    if (isNew) {
      it->second = classifyTarget(target);
      // What a model has no price for is a kernel to it, priced by its bytes.
      if (it->second.nodeClass == NodeClass::Collective && !model.supports(it->second.kind))
        it->second.nodeClass = NodeClass::Compute;
    }
    return it->second;
  }

  void convert(const torch_export::Node &node) {
    TargetClass target = classOf(node.target);
    std::vector<ValueId> operands, buffers, results;
    for (const torch_export::NamedArgument &input : node.inputs)
      forEachName(input.value, [&](const Name &name) {
        bool buffer = target.nodeClass == NodeClass::Collective && input.name == "out";
        (buffer ? buffers : operands).push_back(use(name));
      });
    operands.insert(operands.end(), buffers.begin(), buffers.end());
    for (const Argument &output : node.outputs)
      forEachName(output, [&](const Name &name) { results.push_back(define(name)); });
    std::string name(node.name);
    if (name.empty())
      name = node.target;
    if (target.nodeClass == NodeClass::Collective) {
      addCollective(node, target.kind, std::move(name), operands, results, buffers.size());
      return;
    }
    NodeId id = graph.addNode(target.nodeClass, std::move(name), operands, results);
    if (graph.isKernel(id))
      graph.setDurationUs(id, durationOf(node, id));
  }

  const Argument *argumentOf(const torch_export::Node &node, std::string_view name) const {
    for (const torch_export::NamedArgument &input : node.inputs)
      if (input.name == name)
        return &input.value;
    return nullptr;
  }
  std::string stringOf(const torch_export::Node &node, std::string_view name) const {
    const Argument *argument = argumentOf(node, name);
    const auto *text = argument ? std::get_if<std::string_view>(argument) : nullptr;
    return text ? std::string(*text) : "";
  }
  std::optional<int64_t> integerOf(const torch_export::Node &node, std::string_view name) const {
    const Argument *argument = argumentOf(node, name);
    const auto *value = argument ? std::get_if<int64_t>(argument) : nullptr;
    return value ? std::optional<int64_t>(*value) : std::nullopt;
  }

  void addCollective(const torch_export::Node &node, CollectiveKind kind, std::string name,
                     const std::vector<ValueId> &operands, const std::vector<ValueId> &results,
                     size_t numBuffers) {
    CollectiveInfo info;
    info.kind = kind;
    info.reduction = stringOf(node, "reduce_op");
    info.outBuffers = numBuffers;
    std::string groupName = stringOf(node, "group_name");
    std::optional<int64_t> size = integerOf(node, "group_size");
    if (groupName.empty()) {
      errors.push_back(name + ": the collective does not say its group (group_name)");
      return;
    }
    auto it = processGroups.find(groupName);
    if (it == processGroups.end()) {
      int64_t &known = missingGroups[groupName];
      known = std::max(known, size.value_or(0));
      return;
    }
    if (size && *size != it->second.size) {
      auto [other, isNew] = otherSizes.try_emplace({groupName, *size}, OtherSize{name, 0});
      other->second.nodes += 1;
    }
    auto [known, isNew] = groupIds.try_emplace(groupName, 0);
    if (isNew)
      known->second = graph.addGroup(it->second);
    info.group = known->second;
    graph.addCollective(info, std::move(name), operands, results);
  }

  /// The given duration, else what its arithmetic and the bytes that it moves take. A kernel that
  /// fills a bucket before a gather writes its own rank's part only.
  double durationOf(const torch_export::Node &node, NodeId id) const {
    if (auto it = durations.find(node.name); it != durations.end())
      return it->second;
    double bytes = static_cast<double>(graph.memoryTraffic(id));
    if (node.target.find("_pre_bucket_all_gather") != std::string_view::npos)
      if (std::optional<int64_t> size = integerOf(node, "group_size"); size && *size > 1) {
        double written = static_cast<double>(graph.resultBytes(id));
        bytes -= written - written / static_cast<double>(*size);
      }
    return model.kernelUs(flopsOf(node, program.graph), bytes, elementTypeOf(node));
  }

  /// Of the first tensor operand; f32 where there is none.
  std::string_view elementTypeOf(const torch_export::Node &node) const {
    for (const torch_export::NamedArgument &input : node.inputs)
      if (auto *tensor = std::get_if<torch_export::TensorArg>(&input.value))
        if (isTensor(*tensor))
          return elementTypeName(program.graph.tensors[tensor->number].second.type);
    return elementTypeName(ElementType::F32);
  }

  void reportGroups() {
    for (const auto &[group, other] : otherSizes)
      errors.push_back(
          other.firstNode + ": group '" + group.first + "' has " + std::to_string(group.second) +
          " ranks here, but " + std::to_string(processGroups.find(group.first)->second.size) + " " +
          std::string(sizesAreFrom) +
          (other.nodes > 1 ? " (so at " + std::to_string(other.nodes) + " nodes)" : ""));
    if (missingGroups.empty())
      return;
    std::string list;
    for (auto &[name, size] : missingGroups)
      list += (list.empty() ? "'" : ", '") + name + "'" +
              (size ? " (" + std::to_string(size) + " ranks)" : "");
    errors.push_back("unknown process groups: " + list +
                     "; a groups file gives the ranks or the number of ranks of each, {\"" +
                     missingGroups.begin()->first + "\": [0, 1, ...]} or {\"" +
                     missingGroups.begin()->first + "\": 8}");
  }

  const torch_export::ExportedProgram &program;
  const ProcessGroups &processGroups;
  const Durations &durations;
  const cost::CostModel &model;
  std::vector<std::string> &errors;
  std::string_view sizesAreFrom;
  Graph graph;
  std::vector<ValueId> tensors; // by number
  std::unordered_map<std::string_view, ValueId> scalars;
  std::unordered_map<std::string_view, TargetClass> targets;
  std::map<std::string, GroupId> groupIds;
  std::map<std::string, int64_t> missingGroups;
  /// Nodes that say another size of a group than is known, by group and size.
  struct OtherSize {
    std::string firstNode;
    size_t nodes = 0;
  };
  std::map<std::pair<std::string, int64_t>, OtherSize> otherSizes;
};

} // namespace

std::optional<Graph> shardc::collectives::graphFromProgram(
    const torch_export::ExportedProgram &program, const ProcessGroups &groups,
    const Durations &durations, const cost::CostModel &model, std::vector<std::string> &errors,
    std::string_view sizesAreFrom) {
  return Converter(program, groups, durations, model, errors, sizesAreFrom).run();
}
