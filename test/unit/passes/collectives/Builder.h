// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Small graphs for tests, one line per node.

#ifndef SHARDC_TEST_UNIT_PASSES_COLLECTIVES_BUILDER_H
#define SHARDC_TEST_UNIT_PASSES_COLLECTIVES_BUILDER_H

#include "passes/collectives/core/Graph.h"

#include <gtest/gtest.h>

namespace shardc::collectives::test {

class Builder {
public:
  Graph graph;

  GroupId group(std::string name, std::vector<int64_t> ranks) {
    uint32_t size = ranks.size();
    return graph.addGroup({std::move(name), size, std::move(ranks)});
  }
  GroupId group(std::string name, uint32_t size) {
    return graph.addGroup({std::move(name), size, {}});
  }
  ValueId input(uint64_t bytes, uint32_t type = 0) {
    ValueId value = graph.addTensor(bytes, type);
    graph.addInput(value);
    return value;
  }
  ValueId kernel(std::string name, std::vector<ValueId> operands, double us, uint64_t bytes,
                 uint32_t type = 0) {
    ValueId result = graph.addTensor(bytes, type);
    graph.addNode(NodeClass::Compute, std::move(name), operands, std::vector{result}, us);
    return result;
  }
  ValueId inPlace(std::string name, std::vector<ValueId> operands, double us) {
    ValueId result = graph.addTensor(graph.bytesOf(operands[0]));
    graph.addNode(NodeClass::InPlace, std::move(name), operands, std::vector{result}, us);
    return result;
  }
  ValueId view(std::string name, ValueId of) {
    ValueId result = graph.addTensor(graph.bytesOf(of), graph.elementTypeOf(of));
    graph.addNode(NodeClass::Alias, std::move(name), std::vector{of}, std::vector{result});
    return result;
  }
  /// The result in flight.
  ValueId start(std::string name, CollectiveKind kind, GroupId group, ValueId operand,
                uint64_t bytes, std::string reduction = "") {
    ValueId result = graph.addTensor(bytes, graph.elementTypeOf(operand));
    graph.addCollective({kind, group, std::move(reduction)}, std::move(name), std::vector{operand},
                        std::vector{result});
    return result;
  }
  ValueId wait(std::string name, ValueId value) {
    ValueId result = graph.addTensor(graph.bytesOf(value), graph.elementTypeOf(value));
    graph.addNode(NodeClass::Wait, std::move(name), std::vector{value}, std::vector{result});
    return result;
  }
  /// Start and wait at once; the wait is called NAME.wait.
  ValueId run(const std::string &name, CollectiveKind kind, GroupId group, ValueId operand,
              uint64_t bytes, std::string reduction = "") {
    return wait(name + ".wait", start(name, kind, group, operand, bytes, std::move(reduction)));
  }
  void output(ValueId value) { graph.addOutput(value); }

  Graph finish() {
    std::vector<std::string> errors;
    EXPECT_TRUE(graph.finalize(errors)) << (errors.empty() ? "" : errors.front());
    return std::move(graph);
  }
};

inline NodeId nodeNamed(const Graph &graph, std::string_view name) {
  for (NodeId node = 0; node != graph.numNodes(); ++node)
    if (graph.nameOf(node) == name)
      return node;
  ADD_FAILURE() << "no node " << name;
  return 0;
}

} // namespace shardc::collectives::test

#endif // SHARDC_TEST_UNIT_PASSES_COLLECTIVES_BUILDER_H
