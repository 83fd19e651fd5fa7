// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/chunk/core/ChunkOrder.h"

#include <set>
#include <unordered_map>

using namespace shardc;
using namespace shardc::collectives;

namespace {

class Orderer {
public:
  Orderer(const Graph &graph, std::span<const ChunkChoice> choices)
      : graph(graph), choiceOf(graph.numNodes()), groupOf(graph.numNodes(), none),
        users(graph.numNodes()), emitted(graph.numNodes()) {
    bool mayMove = true;
    for (NodeId node = 0; node != graph.numNodes(); ++node) {
      mayMove &= graph.classOf(node) != NodeClass::InPlace;
      forEachProducer(node, [&](NodeId producer) { users[producer].push_back(node); });
    }
    for (const ChunkChoice &choice : choices) {
      for (NodeId node : choice.region->nodes)
        choiceOf[node] = &choice;
      if (mayMove)
        groupNodes(choice);
    }
  }

  std::vector<ChunkStep> run() {
    for (NodeId node = 0; node != graph.numNodes(); ++node) {
      if (emitted[node])
        continue;
      if (groupOf[node] == none)
        emit(node);
      else
        emitGroup(groups[groupOf[node]]);
    }
    return std::move(steps);
  }

private:
  /// Calls fn with the node that makes each operand, if one does.
  template <typename Fn> void forEachProducer(NodeId node, Fn fn) const {
    for (auto list : {graph.operands(node), graph.scalarOperands(node)})
      for (ValueId value : list)
        if (NodeId producer = graph.producerOf(value); producer != none)
          fn(producer);
  }

  /// By how often what they read was put together and taken apart again. Looks at what depends on
  /// the region only: regions may lie around large parts of a program.
  void groupNodes(const ChunkChoice &choice) {
    const std::vector<NodeId> &nodes = choice.region->nodes;
    std::unordered_map<NodeId, uint32_t> stage;
    std::vector<std::vector<NodeId>> byStage;
    std::set<NodeId> next(nodes.begin(), nodes.end());
    while (!next.empty()) {
      NodeId node = *next.begin();
      next.erase(next.begin());
      bool isInside = choiceOf[node] == &choice;
      uint32_t of = 0;
      forEachProducer(node, [&](NodeId producer) {
        if (auto it = stage.find(producer); it != stage.end())
          of = std::max(of, it->second + (choiceOf[producer] == &choice && !isInside ? 1 : 0));
      });
      stage[node] = of;
      for (NodeId user : users[node])
        if (user < nodes.back())
          next.insert(user);
      if (!isInside)
        continue;
      if (byStage.size() <= of)
        byStage.resize(of + 1);
      byStage[of].push_back(node);
    }
    for (std::vector<NodeId> &group : byStage) {
      for (NodeId node : group)
        groupOf[node] = groups.size();
      groups.push_back(std::move(group));
    }
  }

  /// A node, all its pieces at once, behind what it needs.
  void emit(NodeId wanted) {
    std::vector<NodeId> stack = {wanted};
    while (!stack.empty()) {
      NodeId node = stack.back();
      size_t before = stack.size();
      if (!emitted[node])
        forEachProducer(node, [&](NodeId producer) {
          if (!emitted[producer])
            stack.push_back(producer);
        });
      if (stack.size() != before)
        continue;
      stack.pop_back();
      if (emitted[node])
        continue;
      emitted[node] = true;
      const ChunkChoice *choice = choiceOf[node];
      if (!choice) {
        steps.push_back({ChunkStep::What::Whole, node});
        continue;
      }
      for (uint32_t piece = 0; piece != choice->pieces; ++piece)
        emitPiece(node, *choice, piece);
      emitJoins(node, *choice);
    }
  }

  void emitPiece(NodeId node, const ChunkChoice &choice, uint32_t piece) {
    for (ValueId value : graph.operands(node))
      if (choice.region->cuts.contains(value) && cuts.insert({&choice, value, piece}).second)
        steps.push_back({ChunkStep::What::Cut, node, value, piece, &choice});
    steps.push_back({ChunkStep::What::Piece, node, none, piece, &choice});
  }

  void emitJoins(NodeId node, const ChunkChoice &choice) {
    for (ValueId value : graph.results(node))
      if (std::binary_search(choice.region->joins.begin(), choice.region->joins.end(), value))
        steps.push_back({ChunkStep::What::Join, node, value, 0, &choice});
  }

  bool startsWithOthers(const ChunkChoice &choice) const {
    return choice.region->ring &&
           std::none_of(choice.region->nodes.begin(), choice.region->nodes.end(), [&](NodeId node) {
             return graph.isCollective(node) && graph.kindOf(node) == CollectiveKind::AllGather;
           });
  }

  void emitGroup(const std::vector<NodeId> &group) {
    const ChunkChoice &choice = *choiceOf[group.front()];
    std::vector<NodeId> rest;
    for (NodeId node : group)
      if (!emitted[node])
        rest.push_back(node);
    std::set<NodeId> inGroup(rest.begin(), rest.end());
    uint32_t first = startsWithOthers(choice) ? 1 : 0;
    for (uint32_t i = 0; i != choice.pieces; ++i)
      for (NodeId node : rest) {
        uint32_t piece = (i + first) % choice.pieces;
        if (i == 0)
          forEachProducer(node, [&](NodeId producer) {
            if (!inGroup.contains(producer))
              emit(producer);
          });
        emitPiece(node, choice, piece);
        if (i + 1 == choice.pieces) {
          emitted[node] = true;
          emitJoins(node, choice);
        }
      }
  }

  const Graph &graph;
  std::vector<const ChunkChoice *> choiceOf;
  std::vector<uint32_t> groupOf;
  /// By node: those that read what it makes, some of them several times.
  std::vector<std::vector<NodeId>> users;
  std::vector<std::vector<NodeId>> groups;
  std::vector<bool> emitted;
  std::set<std::tuple<const ChunkChoice *, ValueId, uint32_t>> cuts;
  std::vector<ChunkStep> steps;
};

} // namespace

std::vector<ChunkStep> shardc::collectives::orderChunks(const Graph &graph,
                                                        std::span<const ChunkChoice> choices) {
  return Orderer(graph, choices).run();
}
