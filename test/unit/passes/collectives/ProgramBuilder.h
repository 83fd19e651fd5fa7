// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Small exported programs for tests.

#ifndef SHARDC_TEST_UNIT_PASSES_COLLECTIVES_PROGRAMBUILDER_H
#define SHARDC_TEST_UNIT_PASSES_COLLECTIVES_PROGRAMBUILDER_H

#include "importers/torch_export/program/Program.h"

namespace shardc::collectives::test {

/// Programs as the importer leaves them; names live as long as the string literals they are.
struct ProgramBuilder {
  torch_export::ExportedProgram program;

  torch_export::TensorArg tensor(const char *name, std::vector<int64_t> sizes,
                                 ElementType type = ElementType::BF16) {
    torch_export::TensorMeta meta;
    meta.type = type;
    for (int64_t size : sizes) {
      torch_export::SymInt &extent = meta.sizes.emplace_back();
      extent.value = size;
      if (size < 0) // a symbol without an example
        extent.expr = "Symbol('s0')";
    }
    program.graph.tensors.add(name).first->second = meta;
    return {name, program.graph.tensors.numberOf(name)};
  }
  void input(torch_export::TensorArg tensor) { program.graph.inputs.push_back(tensor); }
  void output(torch_export::TensorArg tensor) { program.graph.outputs.push_back(tensor); }
  void node(const char *name, const char *target, std::vector<torch_export::NamedArgument> inputs,
            std::vector<torch_export::Argument> outputs) {
    torch_export::Node node;
    node.name = name;
    node.target = target;
    node.inputs = std::move(inputs);
    node.outputs = std::move(outputs);
    program.graph.nodes.push_back(std::move(node));
  }
};

} // namespace shardc::collectives::test

#endif // SHARDC_TEST_UNIT_PASSES_COLLECTIVES_PROGRAMBUILDER_H
