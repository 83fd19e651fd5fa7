// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/exported/ProgramRules.h"

#include "dialects/sharding/RuleBuilder.h"
#include "passes/collectives/exported/FromProgram.h"

#include <algorithm>
#include <array>

using namespace shardc;
using namespace shardc::collectives;
using torch_export::Argument;

namespace {

constexpr std::string_view pointwiseOps[] = {
    "_to_copy", "abs",     "add",        "clone", "convert_element_type",
    "copy",     "cos",     "div",        "eq",    "exp",
    "ge",       "gelu",    "gt",         "le",    "log",
    "lt",       "maximum", "minimum",    "mul",   "ne",
    "neg",      "pow",     "reciprocal", "relu",  "rsqrt",
    "rsub",     "sigmoid", "silu",       "sin",   "sqrt",
    "sub",      "tanh",    "where"};
constexpr std::string_view aliasOps[] = {"alias", "detach", "lift_fresh"};
constexpr std::string_view reshapeOps[] = {"view",      "reshape", "_unsafe_view",
                                           "unsqueeze", "squeeze", "unflatten"};
/// With the operand that has the rows of the result.
constexpr std::pair<std::string_view, unsigned> productOps[] = {
    {"mm", 0}, {"bmm", 0}, {"matmul", 0}, {"addmm", 1}, {"linear", 0}};
constexpr std::pair<std::string_view, Reduction> reduceOps[] = {
    {"mean", Reduction::Avg}, {"sum", Reduction::Sum}, {"amax", Reduction::Max}};

template <size_t n> bool isOne(const std::string_view (&ops)[n], std::string_view op) {
  return std::find(std::begin(ops), std::end(ops), op) != std::end(ops);
}

using Shapes = std::vector<std::vector<int64_t>>;

/// One node with the sizes of its tensors.
class RuleReader {
public:
  RuleReader(const torch_export::Node &node, Shapes operands, Shapes results)
      : node(node), op(operatorName(node.target)), operands(std::move(operands)),
        results(std::move(results)) {}

  std::optional<ShardingRule> read() const {
    RuleBuilder builder = RuleBuilder::ofShapes(operands, results);
    if (!describe(builder) || !builder.errors().empty())
      return std::nullopt;
    return builder.build();
  }

private:
  bool describe(RuleBuilder &builder) const {
    if (isOne(pointwiseOps, op) || isOne(aliasOps, op))
      return builder.pointwise(), true;
    if (isOne(reshapeOps, op))
      return builder.view(), true;
    if (op == "expand")
      return builder.expand(), true;
    if (op == "mm" || op == "bmm" || op == "matmul")
      return builder.matmul(), true;
    if (op == "addmm")
      return addmm(builder);
    if (op == "linear")
      return linear(builder);
    if (op == "cat")
      return builder.concat(integer("dim", 0)), true;
    if (op == "split" || op == "split_with_sizes")
      return builder.split(integer("dim", 0)), true;
    if (op == "view_as_complex" || op == "view_as_real")
      return leadingDims(builder);
    if (op == "permute" || op == "transpose" || op == "t")
      return permutation(builder);
    for (auto [name, reduction] : reduceOps)
      if (op == name)
        return reduce(builder, reduction);
    return false;
  }

  bool addmm(RuleBuilder &builder) const {
    if (operands.size() != 3 || operands[0].size() > 2)
      return false;
    std::string added = std::string("mn").substr(2 - operands[0].size());
    builder.einsum({added, "mk", "kn"}, {"mn"});
    return true;
  }

  bool linear(RuleBuilder &builder) const {
    constexpr std::string_view letters = "abcdefgh";
    if (operands.size() < 2 || operands[0].empty() || operands[0].size() > letters.size() ||
        operands[1].size() != 2)
      return false;
    std::string batch(letters.substr(0, operands[0].size() - 1));
    std::vector<std::string> dims = {batch + "i", "oi"};
    if (operands.size() == 3)
      dims.push_back("o");
    builder.einsum(dims, {batch + "o"});
    return true;
  }

  /// All dims but the last of whichever has one more.
  bool leadingDims(RuleBuilder &builder) const {
    size_t rank = std::min(operands[0].size(), results[0].size());
    for (size_t dim = 0; dim != rank; ++dim) {
      unsigned factor = builder.factor(operands[0][dim]);
      builder.operandDim(0, dim, {factor}).resultDim(0, dim, {factor});
    }
    return true;
  }

  bool permutation(RuleBuilder &builder) const {
    std::vector<int64_t> dims(operands[0].size());
    auto rank = static_cast<int64_t>(dims.size());
    for (int64_t dim = 0; dim != rank; ++dim)
      dims[dim] = dim;
    if (op == "permute") {
      dims = integers("dims");
      if (static_cast<int64_t>(dims.size()) != rank)
        return false;
      for (int64_t &dim : dims)
        dim += dim < 0 ? rank : 0;
    } else if (rank >= 2) {
      int64_t a = op == "t" ? 0 : integer("dim0", 0), b = op == "t" ? 1 : integer("dim1", 0);
      std::swap(dims[a < 0 ? a + rank : a], dims[b < 0 ? b + rank : b]);
    }
    builder.permute(dims);
    return true;
  }

  bool reduce(RuleBuilder &builder, Reduction reduction) const {
    std::vector<int64_t> dims = integers("dim");
    auto rank = static_cast<int64_t>(operands[0].size());
    for (int64_t &dim : dims)
      dim += dim < 0 ? rank : 0;
    builder.reduce(dims, reduction);
    return true;
  }

  const Argument *argument(std::string_view name) const {
    for (const torch_export::NamedArgument &input : node.inputs)
      if (input.name == name)
        return &input.value;
    return nullptr;
  }
  int64_t integer(std::string_view name, int64_t otherwise) const {
    const Argument *value = argument(name);
    const auto *number = value ? std::get_if<int64_t>(value) : nullptr;
    return number ? *number : otherwise;
  }
  std::vector<int64_t> integers(std::string_view name) const {
    const Argument *value = argument(name);
    if (const auto *list = value ? std::get_if<std::vector<int64_t>>(value) : nullptr)
      return *list;
    return {};
  }

  const torch_export::Node &node;
  std::string_view op;
  Shapes operands, results;
};

/// Calls fn with the number of each tensor that an argument names, in order.
template <typename Fn> void forEachTensorNumber(const Argument &argument, Fn fn) {
  auto visit = [&](const torch_export::TensorArg &tensor) {
    if (!tensor.name.empty() && tensor.number != torch_export::TensorArg::unknown)
      fn(tensor.number);
  };
  if (auto *tensor = std::get_if<torch_export::TensorArg>(&argument))
    visit(*tensor);
  else if (auto *tensors = std::get_if<torch_export::TensorListArg>(&argument))
    for (const torch_export::TensorArg &tensor : tensors->tensors)
      visit(tensor);
}

} // namespace

ProgramRules::ProgramRules(const torch_export::ExportedProgram &program, const Graph &graph)
    : program(program), graph(graph), tensorOf(graph.numValues(), none) {
  auto note = [&](std::span<const ValueId> values, const std::vector<uint32_t> &numbers) {
    if (values.size() == numbers.size())
      for (size_t i = 0; i != values.size(); ++i)
        tensorOf[values[i]] = numbers[i];
  };
  for (NodeId id = 0; id != graph.numNodes(); ++id) {
    const torch_export::Node &node = program.graph.nodes[id];
    std::vector<uint32_t> operands, results;
    for (const torch_export::NamedArgument &input : node.inputs)
      forEachTensorNumber(input.value, [&](uint32_t number) { operands.push_back(number); });
    for (const Argument &output : node.outputs)
      forEachTensorNumber(output, [&](uint32_t number) { results.push_back(number); });
    // Buffers of a collective come last in the graph, wherever the node names them.
    if (!graph.isCollective(id) || graph.outBuffers(id) == 0)
      note(graph.operands(id), operands);
    note(graph.results(id), results);
  }
}

std::vector<int64_t> ProgramRules::shapeOf(ValueId value) const {
  std::vector<int64_t> shape;
  if (tensorOf[value] == none)
    return shape;
  for (const torch_export::SymInt &size : program.graph.tensors[tensorOf[value]].second.sizes) {
    if (!size.constant())
      return {};
    shape.push_back(size.value);
  }
  return shape;
}

std::optional<ShardingRule> ProgramRules::ruleOf(NodeId node) const {
  Shapes operands, results;
  for (auto [values, shapes] :
       {std::pair(graph.operands(node), &operands), std::pair(graph.results(node), &results)})
    for (ValueId value : values) {
      shapes->push_back(shapeOf(value));
      bool isScalar =
          tensorOf[value] != none && program.graph.tensors[tensorOf[value]].second.sizes.empty();
      if (shapes->back().empty() && !isScalar)
        return std::nullopt;
    }
  if (operands.empty() || results.empty())
    return std::nullopt;
  return RuleReader(program.graph.nodes[node], std::move(operands), std::move(results)).read();
}

std::optional<unsigned> ProgramRules::rowOperandOf(NodeId node) const {
  std::string_view op = operatorName(program.graph.nodes[node].target);
  for (auto [name, operand] : productOps)
    if (op == name && operand < graph.operands(node).size())
      return operand;
  return std::nullopt;
}

bool ProgramRules::mayAddInTurn(NodeId reduceScatter) const {
  auto type = static_cast<ElementType>(graph.elementTypeOf(graph.operands(reduceScatter)[0]));
  constexpr std::array rounded = {ElementType::F16,        ElementType::BF16,
                                  ElementType::C32,        ElementType::F8E4M3FN,
                                  ElementType::F8E5M2,     ElementType::F8E4M3FNUZ,
                                  ElementType::F8E5M2FNUZ, ElementType::F8E8M0FNU};
  bool isShortFloat = std::find(rounded.begin(), rounded.end(), type) != rounded.end();
  return graph.reductionOf(reduceScatter) == "sum" &&
         addsInTurnAlike(isShortFloat, graph.group(graph.groupOf(reduceScatter)).size);
}

bool ProgramRules::isDivisible(NodeId collective) const {
  return graph.outBuffers(collective) == 0;
}

std::optional<unsigned> ProgramRules::dimOf(NodeId collective) const {
  return isDivisible(collective) ? std::optional(0u) : std::nullopt;
}
