// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/nodes/core/SplitGraph.h"

using namespace shardc;
using namespace shardc::collectives;

static bool mayHaveParts(CollectiveKind kind) {
  return kind == CollectiveKind::AllGather || kind == CollectiveKind::ReduceScatter ||
         kind == CollectiveKind::AllReduce;
}

NodeSplits::NodeSplits(const Graph &graph, const cost::CostModel &model, const SplitFacts &facts)
    : graph(graph), model(model), copiesBlocks(facts.copiesBlocks), groups(graph.numGroups()),
      why(graph.numNodes(), WhyFlat::OtherKind) {
  std::vector<WhyFlat> whyOfGroup(graph.numGroups());
  for (GroupId id = 0; id != graph.numGroups(); ++id)
    groups[id] = splitGroups(graph.group(id).ranks, graph.group(id).size,
                             model.ranksPerNode().value_or(1), whyOfGroup[id]);
  for (NodeId node = 0; node != graph.numNodes(); ++node)
    if (graph.isCollective(node) && mayHaveParts(graph.kindOf(node)))
      why[node] = groups[graph.groupOf(node)] ? whyOf(node, facts.of[node])
                                              : whyOfGroup[graph.groupOf(node)];
}

WhyFlat NodeSplits::whyOf(NodeId node, const CollectiveFacts &facts) const {
  const NodeGroups &split = groupsOf(node);
  bool reduces = graph.kindOf(node) == CollectiveKind::AllReduce;
  if (split.order == NodeGroups::Order::Neither && !reduces)
    return WhyFlat::Unequal;
  if (facts.why != WhyFlat::Splits)
    return facts.why;
  uint64_t least = uint64_t(facts.elementBytes) * (reduces ? split.ranksOnNode : 1);
  for (ValueId operand : graph.operands(node))
    if (graph.bytesOf(operand) == 0 || graph.bytesOf(operand) % least != 0)
      return WhyFlat::Indivisible;
  return WhyFlat::Splits;
}

double NodeSplits::reorderUs(NodeId node) const {
  bool copies = copiesBlocks && graph.kindOf(node) != CollectiveKind::AllReduce &&
                groupsOf(node).order == NodeGroups::Order::ByNode;
  return copies ? model.memoryUs(2 * static_cast<double>(graph.fullBytes(node))) : 0;
}

SplitCost NodeSplits::costOf(NodeId node) const {
  const NodeGroups &split = groupsOf(node);
  uint64_t bytes = graph.fullBytes(node), share = bytes / split.ranksOnNode;
  auto within = [&](CollectiveKind kind) {
    cost::Group ranks{split.ranksOnNode, std::span(split.within).first(split.ranksOnNode)};
    return model.collectiveUs(kind, ranks, bytes);
  };
  CollectiveKind kind = graph.kindOf(node);
  SplitCost cost;
  cost.flatUs = model.collectiveUs(kind, graph.group(graph.groupOf(node)).shape(), bytes);
  cost.betweenUs =
      model.collectiveUs(kind, {split.nodes, std::span(split.between).first(split.nodes)}, share);
  cost.withinUs = kind == CollectiveKind::AllReduce
                      ? within(CollectiveKind::ReduceScatter) + within(CollectiveKind::AllGather)
                      : within(kind);
  cost.copyUs = reorderUs(node);
  cost.launches = (kind == CollectiveKind::AllReduce ? 2 : 1) + (cost.copyUs > 0);
  return cost;
}

namespace {

class Splitter {
public:
  explicit Splitter(const NodeSplits &splits)
      : splits(splits), graph(splits.graph), newOf(graph.numValues(), none) {}

  SplitGraph run(std::span<const NodeId> collectives) {
    for (GroupId id = 0; id != graph.numGroups(); ++id)
      made().addGroup(graph.group(id));
    for (ValueId value : graph.graphInputs())
      made().addInput(define(value));
    std::vector<bool> chosen(graph.numNodes());
    for (NodeId node : collectives)
      chosen[node] = true;
    for (NodeId node = 0; node != graph.numNodes(); ++node) {
      if (chosen[node])
        addParts(node);
      else if (graph.classOf(node) == NodeClass::Wait)
        addWait(node, chosen);
      else
        addSame(node, useAll(node), defineAll(node));
      result.originOf.resize(made().numNodes(), node);
    }
    for (ValueId value : graph.graphOutputs())
      made().addOutput(newOf[value]);
    std::vector<std::string> errors;
    made().finalize(errors); // as right as the graph was
    return std::move(result);
  }

private:
  Graph &made() { return result.graph; }

  ValueId define(ValueId value) {
    return newOf[value] = graph.isTensor(value)
                              ? made().addTensor(graph.bytesOf(value), graph.elementTypeOf(value))
                              : made().addScalar();
  }
  std::vector<ValueId> useAll(NodeId node) const {
    std::vector<ValueId> operands;
    for (auto list : {graph.operands(node), graph.scalarOperands(node)})
      for (ValueId value : list)
        operands.push_back(newOf[value]);
    return operands;
  }
  std::vector<ValueId> defineAll(NodeId node) {
    std::vector<ValueId> results;
    for (auto list : {graph.results(node), graph.scalarResults(node)})
      for (ValueId value : list)
        results.push_back(define(value));
    return results;
  }

  void addSame(NodeId node, std::span<const ValueId> operands, std::span<const ValueId> results) {
    if (!graph.isCollective(node)) {
      made().addNode(graph.classOf(node), graph.nameOf(node), operands, results,
                     graph.durationUs(node));
      return;
    }
    CollectiveInfo info = infoOf(node, graph.kindOf(node), graph.groupOf(node));
    info.outBuffers = graph.outBuffers(node);
    info.fullBytes = graph.fullBytes(node);
    info.inPlace = inPlaceOf(node);
    made().addCollective(info, graph.nameOf(node), operands, results);
  }

  CollectiveInfo infoOf(NodeId node, CollectiveKind kind, GroupId group) const {
    CollectiveInfo info;
    info.kind = kind;
    info.group = group;
    if (kind != CollectiveKind::AllGather)
      info.reduction = graph.reductionOf(node);
    return info;
  }

  std::vector<bool> inPlaceOf(NodeId node) const {
    std::vector<bool> inPlace;
    for (ValueId value : graph.results(node))
      inPlace.push_back(graph.isInPlace(value));
    return inPlace;
  }

  /// Groups with equal ranks are one communicator, and so is one of which only that of a single
  /// rank is known.
  GroupId groupOf(const std::string &name, const std::vector<int64_t> &ranks, uint32_t size) {
    for (GroupId id = 0; id != made().numGroups(); ++id) {
      const Group &known = made().group(id);
      if (known.size == size && (known.ranks == ranks || isOneOf(known.ranks, ranks, size)))
        return id;
    }
    return made().addGroup({name, size, ranks});
  }

  static bool isOneOf(const std::vector<int64_t> &group, const std::vector<int64_t> &groups,
                      uint32_t size) {
    if (group.size() != size)
      return false;
    for (size_t first = 0; first < groups.size(); first += size)
      if (std::equal(group.begin(), group.end(), groups.begin() + static_cast<ptrdiff_t>(first)))
        return true;
    return false;
  }

  /// A part and the wait for it, with results of so many bytes by tensor.
  std::vector<ValueId> addPart(NodeId node, const CollectiveInfo &info, const char *suffix,
                               std::span<const ValueId> operands,
                               std::span<const uint64_t> resultBytes) {
    std::vector<ValueId> started, waited;
    for (size_t i = 0; i != resultBytes.size(); ++i) {
      uint32_t type = graph.elementTypeOf(graph.results(node)[i]);
      started.push_back(made().addTensor(resultBytes[i], type));
      waited.push_back(made().addTensor(resultBytes[i], type));
    }
    std::string name = graph.nameOf(node) + suffix;
    made().addCollective(info, name, operands, started);
    made().addNode(NodeClass::Wait, name + ".wait", started, waited);
    return waited;
  }

  void addParts(NodeId node) {
    const NodeGroups &split = splits.groupsOf(node);
    const std::string &name = graph.group(graph.groupOf(node)).name;
    GroupId within = groupOf(name + " within nodes", split.within, split.ranksOnNode);
    GroupId between = groupOf(name + " between nodes", split.between, split.nodes);
    CollectiveKind kind = graph.kindOf(node);
    size_t tensors = graph.results(node).size();
    std::vector<ValueId> all = useAll(node);
    std::vector<ValueId> operands(all.begin(), all.begin() + static_cast<ptrdiff_t>(tensors));
    std::vector<uint64_t> bytes;
    for (size_t i = 0; i != tensors; ++i) {
      uint64_t own = graph.bytesOf(graph.operands(node)[i]);
      bytes.push_back(kind == CollectiveKind::AllGather ? own * split.nodes
                                                        : own / split.ranksOnNode);
    }
    CollectiveKind first = kind == CollectiveKind::AllReduce ? CollectiveKind::ReduceScatter : kind;
    if (kind == CollectiveKind::ReduceScatter)
      addReorder(node, operands);
    // The buffers of the result are for the last part; behind them come scalars, which only order.
    auto buffers = all.begin() + static_cast<ptrdiff_t>(tensors);
    auto scalars = buffers + static_cast<ptrdiff_t>(graph.outBuffers(node));
    operands.insert(operands.end(), scalars, all.end());
    std::vector<ValueId> next =
        addPart(node, infoOf(node, first, kind == CollectiveKind::AllGather ? between : within),
                ".first", operands, bytes);
    if (kind == CollectiveKind::AllReduce) {
      CollectiveInfo info = infoOf(node, CollectiveKind::AllReduce, between);
      info.inPlace = inPlaceOf(node);
      next = addPart(node, info, ".between", next, bytes);
    }
    CollectiveKind last = kind == CollectiveKind::AllReduce ? CollectiveKind::AllGather : kind;
    CollectiveInfo info =
        infoOf(node, last, kind == CollectiveKind::ReduceScatter ? between : within);
    info.outBuffers = graph.outBuffers(node);
    next.insert(next.end(), buffers, scalars);
    made().addCollective(info, graph.nameOf(node), next, defineAll(node));
  }

  /// The blocks of each tensor in the order of places.
  void addReorder(NodeId node, std::vector<ValueId> &operands) {
    double us = splits.reorderUs(node);
    if (us == 0)
      return;
    std::vector<ValueId> ordered;
    for (ValueId value : graph.operands(node).first(operands.size()))
      ordered.push_back(made().addTensor(graph.bytesOf(value), graph.elementTypeOf(value)));
    made().addNode(NodeClass::Compute, graph.nameOf(node) + ".order", operands, ordered, us);
    operands = std::move(ordered);
  }

  /// Behind a gather, blocks are brought into their order once they are there.
  void addWait(NodeId node, const std::vector<bool> &chosen) {
    NodeId gather = none;
    for (ValueId value : graph.operands(node))
      if (NodeId pending = graph.pendingOf(value);
          pending != none && chosen[pending] && graph.kindOf(pending) == CollectiveKind::AllGather)
        gather = pending;
    double us = gather == none ? 0 : splits.reorderUs(gather);
    if (us == 0)
      return addSame(node, useAll(node), defineAll(node));
    std::vector<ValueId> operands = useAll(node), waited, ordered;
    for (ValueId value : graph.results(node))
      waited.push_back(made().addTensor(graph.bytesOf(value), graph.elementTypeOf(value)));
    made().addNode(NodeClass::Wait, graph.nameOf(node), operands, waited);
    made().addNode(NodeClass::Compute, graph.nameOf(node) + ".order", waited, defineAll(node), us);
  }

  const NodeSplits &splits;
  const Graph &graph;
  std::vector<ValueId> newOf;
  SplitGraph result;
};

} // namespace

SplitGraph shardc::collectives::splitGraph(const NodeSplits &splits,
                                           std::span<const NodeId> collectives) {
  return Splitter(splits).run(collectives);
}
