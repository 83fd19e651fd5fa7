// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/exported/Flops.h"

#include "passes/collectives/exported/FromProgram.h"

using namespace shardc;
using namespace shardc::collectives;
using torch_export::TensorMeta;

namespace {

/// Products of matrices, and the name of their left operand: its last dim is summed over.
constexpr std::pair<std::string_view, std::string_view> products[] = {
    {"mm", "self"},      {"bmm", "self"},        {"matmul", "self"},   {"_grouped_mm", "self"},
    {"addmm", "mat1"},   {"baddbmm", "batch1"},  {"addbmm", "batch1"}, {"linear", "input"},
    {"_int_mm", "self"}, {"_scaled_mm", "self"}, {"dot", "self"},      {"mv", "self"}};

double extentOf(const TensorMeta &meta, size_t dim) {
  const torch_export::SymInt &size = meta.sizes[dim];
  return static_cast<double>(size.constant() || size.hasHint ? size.value : unknownExtent);
}

double elementsOf(const TensorMeta &meta) {
  double count = 1;
  for (size_t dim = 0; dim != meta.sizes.size(); ++dim)
    count *= extentOf(meta, dim);
  return count;
}

class Counter {
public:
  Counter(const torch_export::Node &node, const torch_export::Graph &graph)
      : node(node), graph(graph) {}

  double count() const {
    std::string_view op = operatorName(node.target);
    for (auto [name, left] : products)
      if (op == name)
        return product(tensor(left));
    if (op.find("scaled_dot_product") != op.npos)
      return attention() * (op.ends_with("_backward") ? 2.5 : 1);
    if (op == "convolution_backward")
      return 2 * convolution(tensor("grad_output"));
    if (op.starts_with("conv"))
      return convolution(result());
    return 0;
  }

private:
  double product(const TensorMeta *left) const {
    const TensorMeta *out = result();
    if (!left || !out || left->sizes.empty())
      return 0;
    return 2 * elementsOf(*out) * extentOf(*left, left->sizes.size() - 1);
  }

  /// Both products, over all keys: kernels skip what a causal mask hides only in part.
  double attention() const {
    const TensorMeta *query = tensor("query"), *key = tensor("key"), *value = tensor("value");
    for (const TensorMeta *meta : {query, key, value})
      if (!meta || meta->sizes.size() < 2)
        return 0;
    size_t last = query->sizes.size() - 1;
    double rows = elementsOf(*query) / std::max(extentOf(*query, last), 1.0);
    return 2 * rows * extentOf(*key, key->sizes.size() - 2) *
           (extentOf(*query, last) + extentOf(*value, value->sizes.size() - 1));
  }

  /// Each element of the output (of the input, if transposed) meets one filter.
  double convolution(const TensorMeta *out) const {
    const TensorMeta *weight = tensor("weight");
    if (!weight || weight->sizes.empty() || extentOf(*weight, 0) == 0)
      return 0;
    const torch_export::Argument *flag = argument("transposed");
    const bool *transposed = flag ? std::get_if<bool>(flag) : nullptr;
    if ((transposed && *transposed) || operatorName(node.target).starts_with("conv_transpose"))
      out = tensor("input");
    return out ? 2 * elementsOf(*out) * elementsOf(*weight) / extentOf(*weight, 0) : 0;
  }

  const torch_export::Argument *argument(std::string_view name) const {
    for (const torch_export::NamedArgument &input : node.inputs)
      if (input.name == name)
        return &input.value;
    return nullptr;
  }
  const TensorMeta *metaOf(const torch_export::Argument *value) const {
    auto *tensor = value ? std::get_if<torch_export::TensorArg>(value) : nullptr;
    return tensor && tensor->number != torch_export::TensorArg::unknown
               ? &graph.tensors[tensor->number].second
               : nullptr;
  }
  const TensorMeta *tensor(std::string_view name) const { return metaOf(argument(name)); }
  const TensorMeta *result() const {
    return node.outputs.empty() ? nullptr : metaOf(&node.outputs.front());
  }

  const torch_export::Node &node;
  const torch_export::Graph &graph;
};

} // namespace

double shardc::collectives::flopsOf(const torch_export::Node &node,
                                    const torch_export::Graph &graph) {
  return Counter(node, graph).count();
}
