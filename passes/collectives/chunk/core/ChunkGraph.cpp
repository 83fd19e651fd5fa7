// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/chunk/core/ChunkGraph.h"

using namespace shardc;
using namespace shardc::collectives;

double shardc::collectives::pieceUs(const Graph &graph, const cost::CostModel &model,
                                    const ChunkRegion &region, NodeId kernel, uint32_t pieces) {
  std::vector<ValueId> operands(graph.operands(kernel).begin(), graph.operands(kernel).end());
  std::sort(operands.begin(), operands.end());
  operands.erase(std::unique(operands.begin(), operands.end()), operands.end());
  double bytes = static_cast<double>(graph.resultBytes(kernel)) / pieces;
  for (ValueId operand : operands) {
    bool whole = !region.made.contains(operand) && !region.cuts.contains(operand);
    bytes += static_cast<double>(graph.bytesOf(operand)) / (whole ? 1 : pieces);
  }
  double us = graph.durationUs(kernel);
  // A given duration may be below what the model says of its bytes.
  return std::max(us / pieces, std::min(us, model.memoryUs(bytes)));
}

double shardc::collectives::addUs(const Graph &graph, const cost::CostModel &model,
                                  NodeId reduceScatter, uint32_t size) {
  return model.memoryUs(3.0 * static_cast<double>(graph.operandBytes(reduceScatter)) / size);
}

namespace {

class Chunker {
public:
  Chunker(const Graph &graph, const cost::CostModel &model)
      : graph(graph), model(model), wholeOf(graph.numValues(), none) {}

  ChunkedGraph run(std::span<const ChunkChoice> choices) {
    for (GroupId group = 0; group != graph.numGroups(); ++group)
      made().addGroup(graph.group(group));
    for (ValueId value : graph.graphInputs())
      made().addInput(define(value));
    for (const ChunkStep &step : orderChunks(graph, choices)) {
      switch (step.what) {
      case ChunkStep::What::Whole:
        addWhole(step.node);
        break;
      case ChunkStep::What::Cut:
        addCut(step);
        break;
      case ChunkStep::What::Piece:
        addPiece(step);
        break;
      case ChunkStep::What::Join:
        addJoin(step);
        break;
      }
      result.originOf.resize(made().numNodes(), step.node);
    }
    std::map<ValueId, ValueId> delivered;
    for (const ChunkChoice &choice : choices)
      delivered.insert(choice.region->delivered.begin(), choice.region->delivered.end());
    for (ValueId value : graph.graphOutputs()) {
      auto it = delivered.find(value);
      made().addOutput(wholeOf[it == delivered.end() ? value : it->second]);
    }
    std::vector<std::string> errors;
    made().finalize(errors); // as right as the graph was
    return std::move(result);
  }

private:
  Graph &made() { return result.graph; }

  ValueId add(ValueId like, uint32_t pieces) {
    return graph.isTensor(like)
               ? made().addTensor(graph.bytesOf(like) / pieces, graph.elementTypeOf(like))
               : made().addScalar();
  }
  ValueId define(ValueId value) { return wholeOf[value] = add(value, 1); }

  CollectiveInfo infoOf(NodeId node, uint32_t pieces) const {
    CollectiveInfo info;
    info.kind = graph.kindOf(node);
    info.group = graph.groupOf(node);
    info.reduction = graph.reductionOf(node);
    info.outBuffers = graph.outBuffers(node);
    for (ValueId value : graph.results(node))
      info.inPlace.push_back(graph.isInPlace(value));
    info.fullBytes = graph.fullBytes(node) / pieces;
    return info;
  }

  void addWhole(NodeId node) {
    std::vector<ValueId> operands, results;
    for (auto list : {graph.operands(node), graph.scalarOperands(node)})
      for (ValueId value : list)
        operands.push_back(wholeOf[value]);
    for (auto list : {graph.results(node), graph.scalarResults(node)})
      for (ValueId value : list)
        results.push_back(define(value));
    if (graph.isCollective(node))
      made().addCollective(infoOf(node, 1), graph.nameOf(node), operands, results);
    else
      made().addNode(graph.classOf(node), graph.nameOf(node), operands, results,
                     graph.durationUs(node));
  }

  std::string freshName(const char *what) const {
    return std::string(what) + "." + std::to_string(result.graph.numNodes());
  }

  void addCut(const ChunkStep &step) {
    const ChunkRegion &region = *step.choice->region;
    uint32_t pieces = step.choice->pieces;
    bool isView = region.cuts.at(step.value).contiguous;
    ValueId piece = add(step.value, pieces);
    cutsOf[{&region, step.value, step.piece}] = piece;
    made().addNode(isView ? NodeClass::Alias : NodeClass::Compute, freshName("cut"),
                   std::vector{wholeOf[step.value]}, std::vector{piece},
                   isView ? 0 : copyUs(graph, model, step.value) / pieces);
  }

  ValueId pieceOf(ValueId value, uint32_t piece) const { return piecesOf.at(value)[piece]; }
  void setPiece(ValueId value, const ChunkStep &step, ValueId piece) {
    std::vector<ValueId> &list = piecesOf[value];
    list.resize(step.choice->pieces, none);
    list[step.piece] = piece;
  }

  /// Sends a block to the next rank, and takes the one of the rank before.
  ValueId addHop(NodeId node, const ChunkStep &step, ValueId sent, ValueId like) {
    uint32_t pieces = step.choice->pieces;
    CollectiveInfo info;
    info.kind = CollectiveKind::Permute;
    info.group = graph.groupOf(node);
    std::string name = graph.nameOf(node) + "." + std::to_string(step.piece);
    ValueId future = add(like, pieces), delivered = add(like, pieces);
    made().addCollective(info, name, std::vector{sent}, std::vector{future});
    made().addNode(NodeClass::Wait, name + ".wait", std::vector{future}, std::vector{delivered});
    return delivered;
  }

  ValueId addSum(NodeId node, const ChunkStep &step, ValueId arrived, ValueId own) {
    uint32_t pieces = step.choice->pieces;
    ValueId sum = add(graph.operands(node)[0], pieces);
    made().addNode(NodeClass::Compute, freshName("add"), std::vector{arrived, own},
                   std::vector{sum}, addUs(graph, model, node, pieces));
    return sum;
  }

  /// A piece of a gather is what the last hop brought; of a reduce-scatter, what is sent on with
  /// this rank's part.
  void addRingPiece(const ChunkStep &step) {
    NodeId node = step.node;
    ValueId operand = graph.operands(node)[0], result = graph.results(node)[0];
    if (graph.kindOf(node) == CollectiveKind::AllGather) {
      setPiece(result, step,
               step.piece == 0 ? wholeOf[operand]
                               : addHop(node, step, pieceOf(result, step.piece - 1), result));
    } else if (step.piece != 0) {
      ValueId part = pieceOf(operand, step.piece);
      if (step.piece > 1)
        part = addSum(node, step, arrived.at(node), part);
      arrived[node] = addHop(node, step, part, operand);
    }
  }

  /// Of the shares of ranks, a piece is one: nothing to split or to concatenate.
  void relay(const ChunkStep &step, ValueId from) {
    if (from != none)
      setPiece(graph.results(step.node)[0], step, pieceOf(from, step.piece));
  }

  /// A wait of a ring is part of its hops.
  void passOn(const ChunkStep &step) {
    for (size_t i = 0; i != graph.operands(step.node).size(); ++i)
      if (!step.choice->region->ring->sums.contains(graph.operands(step.node)[i]))
        setPiece(graph.results(step.node)[i], step,
                 pieceOf(graph.operands(step.node)[i], step.piece));
  }

  void addPiece(const ChunkStep &step) {
    const ChunkRegion &region = *step.choice->region;
    uint32_t pieces = step.choice->pieces;
    if (region.ring && graph.isCollective(step.node))
      return addRingPiece(step);
    if (region.ring && region.ring->relays.contains(step.node))
      return relay(step, region.ring->relays.at(step.node));
    if (region.ring && graph.classOf(step.node) == NodeClass::Wait)
      return passOn(step);
    std::vector<ValueId> operands, results;
    for (ValueId value : graph.operands(step.node)) {
      if (region.made.contains(value))
        operands.push_back(pieceOf(value, step.piece));
      else if (region.cuts.contains(value))
        operands.push_back(cutsOf.at({&region, value, step.piece}));
      else
        operands.push_back(wholeOf[value]);
    }
    for (ValueId value : graph.scalarOperands(step.node))
      operands.push_back(wholeOf[value]);
    for (ValueId value : graph.results(step.node)) {
      results.push_back(add(value, pieces));
      setPiece(value, step, results.back());
    }
    std::string name = graph.nameOf(step.node) + "." + std::to_string(step.piece);
    if (graph.isCollective(step.node))
      made().addCollective(infoOf(step.node, pieces), std::move(name), operands, results);
    else
      made().addNode(graph.classOf(step.node), std::move(name), operands, results,
                     graph.isKernel(step.node) ? pieceUs(graph, model, region, step.node, pieces)
                                               : 0);
  }

  /// What a reduce-scatter delivers: what has been around, and this rank's part.
  void addLastSum(const ChunkStep &step) {
    NodeId start = graph.pendingOf(graph.operands(step.node)[0]);
    wholeOf[step.value] =
        addSum(start, step, arrived.at(start), pieceOf(graph.operands(start)[0], 0));
  }

  void addJoin(const ChunkStep &step) {
    const std::optional<ChunkRing> &ring = step.choice->region->ring;
    if (ring && ring->sums.contains(step.value))
      return addLastSum(step);
    std::vector<ValueId> pieces = piecesOf.at(step.value);
    // In a ring, where a piece goes depends on the rank: its blocks are copied once more.
    if (ring) {
      ValueId inTurn = add(step.value, 1);
      made().addNode(NodeClass::Compute, freshName("join"), pieces, std::vector{inTurn},
                     copyUs(graph, model, step.value));
      pieces = {inTurn};
    }
    made().addNode(NodeClass::Compute, freshName(ring ? "rotate" : "join"), pieces,
                   std::vector{define(step.value)}, copyUs(graph, model, step.value));
  }

  const Graph &graph;
  const cost::CostModel &model;
  std::vector<ValueId> wholeOf;
  std::map<ValueId, std::vector<ValueId>> piecesOf;
  std::map<std::tuple<const ChunkRegion *, ValueId, uint32_t>, ValueId> cutsOf;
  /// By reduce-scatter in a ring: what the rank before sent last.
  std::map<NodeId, ValueId> arrived;
  ChunkedGraph result;
};

} // namespace

ChunkedGraph shardc::collectives::chunkGraph(const Graph &graph, const cost::CostModel &model,
                                             std::span<const ChunkChoice> choices) {
  return Chunker(graph, model).run(choices);
}
