// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "importers/torch_export/import/NeighborhoodSizes.h"

#include "importers/torch_export/import/NodeTarget.h"

using namespace mlir;

namespace shardc::torch_export {
namespace {

const Argument *argumentOf(const Node &node, StringRef name) {
  for (const NamedArgument &input : node.inputs)
    if (StringRef(input.name) == name)
      return &input.value;
  return nullptr;
}

SmallVector<int64_t> numbersOf(const Node &node, StringRef name) {
  const Argument *argument = argumentOf(node, name);
  auto *list = argument ? std::get_if<std::vector<int64_t>>(argument) : nullptr;
  return list ? SmallVector<int64_t>(list->begin(), list->end()) : SmallVector<int64_t>();
}

} // namespace

void forEachNeighborhoodSize(const ExportedProgram &program,
                             llvm::function_ref<void(const SymExpr &, int64_t)> found) {
  for (const Node &node : program.graph.nodes) {
    StringRef target = shortTarget(node);
    if (!target.consume_front("natten.na"))
      continue;
    SmallVector<int64_t> kernel = numbersOf(node, "kernel_size"),
                         dilation = numbersOf(node, "dilation");
    auto query = program.graph.tensors.find(tensorArgument(node, "query").str());
    if (query == program.graph.tensors.end() || kernel.size() != dilation.size() ||
        query->second.sizes.size() < kernel.size() + 1)
      continue; // the builder of the op says what is wrong
    for (size_t dim = 0; dim < kernel.size(); ++dim) {
      const SymInt &size = query->second.sizes[1 + dim];
      if (size.constant() || kernel[dim] == 1)
        continue;
      std::string ignored;
      if (std::optional<SymExpr> expr = parseSymExpr(size.expr, ignored))
        found(*expr, kernel[dim] * dilation[dim]);
    }
  }
}

} // namespace shardc::torch_export
