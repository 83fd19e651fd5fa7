// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Small programs that can be taken apart, and what became of them.

#ifndef SHARDC_TEST_UNIT_PASSES_COLLECTIVES_CHUNKPROGRAM_H
#define SHARDC_TEST_UNIT_PASSES_COLLECTIVES_CHUNKPROGRAM_H

#include "dialects/sharding/RuleBuilder.h"
#include "passes/collectives/chunk/core/ChunkOrder.h"
#include "passes/cost/core/SimV1.h"
#include "test/unit/passes/collectives/Builder.h"

#include <set>

namespace shardc::collectives::test {

using Shape = std::vector<int64_t>;

/// Graphs of f32 tensors with the rules of their nodes. Four ranks.
struct Program : ChunkRules {
  Builder b;
  Graph graph;
  std::map<ValueId, Shape> shapes;
  std::map<std::string, ShardingRule> ruleByName;
  std::map<std::string, unsigned> dims;
  std::set<std::string> products, rounded;
  GroupId tp = b.group("tp", {0, 1, 2, 3});

  static uint64_t bytes(const Shape &shape) {
    uint64_t count = 4;
    for (int64_t size : shape)
      count *= size;
    return count;
  }
  ValueId input(const Shape &shape) {
    ValueId value = b.input(bytes(shape));
    shapes[value] = shape;
    return value;
  }
  ValueId product(const std::string &name, ValueId x, ValueId w, double us) {
    Shape result = {shapes[x][0], shapes[w][1]};
    ValueId value = b.kernel(name, {x, w}, us, bytes(result));
    shapes[value] = result;
    ruleByName[name] = RuleBuilder::ofShapes({shapes[x], shapes[w]}, {result}).matmul().build();
    products.insert(name);
    return value;
  }
  ValueId pointwise(const std::string &name, std::vector<ValueId> operands, double us) {
    Shape result = shapes[operands[0]];
    ValueId value = b.kernel(name, operands, us, bytes(result));
    shapes[value] = result;
    std::vector<Shape> from;
    for (ValueId operand : operands)
      from.push_back(shapes[operand]);
    ruleByName[name] = RuleBuilder::ofShapes(from, {result}).pointwise().build();
    return value;
  }
  /// Needs all rows.
  ValueId mixing(const std::string &name, ValueId x, double us) {
    ValueId value = b.kernel(name, {x}, us, bytes(shapes[x]));
    shapes[value] = shapes[x];
    return value;
  }
  ValueId collective(const std::string &name, CollectiveKind kind, ValueId x, unsigned dim) {
    Shape result = shapes[x];
    if (kind == CollectiveKind::AllGather)
      result[dim] *= 4;
    else if (kind == CollectiveKind::ReduceScatter)
      result[dim] /= 4;
    ValueId future = b.start(name, kind, tp, x, bytes(result), "sum");
    ValueId value = b.wait(name + ".wait", future);
    shapes[future] = shapes[value] = result;
    dims[name] = dim;
    return value;
  }
  void finish() { graph = b.finish(); }

  std::optional<ShardingRule> ruleOf(NodeId node) const override {
    auto it = ruleByName.find(graph.nameOf(node));
    return it == ruleByName.end() ? std::nullopt : std::optional(it->second);
  }
  std::optional<unsigned> rowOperandOf(NodeId node) const override {
    return products.contains(graph.nameOf(node)) ? std::optional(0u) : std::nullopt;
  }
  bool isDivisible(NodeId) const override { return true; }
  bool mayAddInTurn(NodeId node) const override { return !rounded.contains(graph.nameOf(node)); }
  std::optional<unsigned> dimOf(NodeId node) const override { return dims.at(graph.nameOf(node)); }
  Shape shapeOf(ValueId value) const override { return shapes.at(value); }

  std::vector<std::string> names(const std::vector<NodeId> &nodes) const {
    std::vector<std::string> result;
    for (NodeId node : nodes)
      result.push_back(graph.nameOf(node));
    return result;
  }
  std::vector<ChunkRegion> regions(ChunkDim along = ChunkDim::Gathered) const {
    return findChunkRegions(graph, *this, cost::SimV1(), along);
  }
};

/// "name" of whole nodes, "name.piece", "cut.piece" and "join", in order.
inline std::vector<std::string> describe(const Graph &graph, std::span<const ChunkStep> steps) {
  std::vector<std::string> result;
  for (const ChunkStep &step : steps) {
    std::string piece = "." + std::to_string(step.piece);
    switch (step.what) {
    case ChunkStep::What::Whole:
      result.push_back(graph.nameOf(step.node));
      break;
    case ChunkStep::What::Cut:
      result.push_back("cut" + piece);
      break;
    case ChunkStep::What::Piece:
      result.push_back(graph.nameOf(step.node) + piece);
      break;
    case ChunkStep::What::Join:
      result.push_back("join");
      break;
    }
  }
  return result;
}

using Names = std::vector<std::string>;

} // namespace shardc::collectives::test

#endif // SHARDC_TEST_UNIT_PASSES_COLLECTIVES_CHUNKPROGRAM_H
