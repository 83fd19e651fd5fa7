// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A graph in which collectives over several nodes are taken apart into some within the nodes and
// one between them:
//
//   all-reduce       reduce-scatter within, all-reduce between, all-gather within
//   reduce-scatter   reduce-scatter within, reduce-scatter between
//   all-gather       all-gather between, all-gather within
//
// so that what crosses from node to node is, for each rank, its share of what the node has.

#ifndef SHARDC_PASSES_COLLECTIVES_NODES_CORE_SPLITGRAPH_H
#define SHARDC_PASSES_COLLECTIVES_NODES_CORE_SPLITGRAPH_H

#include "passes/collectives/core/Graph.h"
#include "passes/collectives/nodes/core/NodeGroups.h"

namespace shardc::collectives {

/// What the bytes of a graph do not say of a collective.
struct CollectiveFacts {
  /// Symbolic, Indivisible (unequal shares) or Inexact; Splits where nothing stands against it.
  WhyFlat why = WhyFlat::Splits;
  /// Of an element of its tensors, the largest of them.
  uint32_t elementBytes = 1;
};

struct SplitFacts {
  /// By node; of nodes that are no collective nothing is asked.
  std::vector<CollectiveFacts> of;
  /// Whether collectives gather and scatter the outermost dim only, so that blocks are brought into
  /// their order by a copy where positions go by node.
  bool copiesBlocks = false;
};

/// Microseconds of one collective and of its parts. Latencies are in them, launches are not.
struct SplitCost {
  double flatUs = 0, withinUs = 0, betweenUs = 0, copyUs = 0;
  /// How many more things are launched.
  unsigned launches = 0;
};

/// Which collectives of a graph can be split. Graph and model must outlive it.
class NodeSplits {
public:
  /// The model must say how many ranks a node has.
  NodeSplits(const Graph &graph, const cost::CostModel &model, const SplitFacts &facts);

  WhyFlat whyFlat(NodeId collective) const { return why[collective]; }
  /// Those of a collective that splits.
  const NodeGroups &groupsOf(NodeId collective) const { return *groups[graph.groupOf(collective)]; }
  SplitCost costOf(NodeId collective) const;
  /// Microseconds of the copy that brings the blocks of a collective into their order, 0 where
  /// there is none.
  double reorderUs(NodeId collective) const;

  const Graph &graph;
  const cost::CostModel &model;

private:
  WhyFlat whyOf(NodeId node, const CollectiveFacts &facts) const;

  bool copiesBlocks;
  std::vector<std::optional<NodeGroups>> groups; ///< by group of the graph
  std::vector<WhyFlat> why;                      ///< by node
};

struct SplitGraph {
  Graph graph;
  /// By node: that of the graph before which it is a part of.
  std::vector<NodeId> originOf;
};

/// The graph with these collectives, which split, in parts. All parts stand in the place of the
/// start, each behind the wait for the one before.
SplitGraph splitGraph(const NodeSplits &splits, std::span<const NodeId> collectives);

} // namespace shardc::collectives

#endif // SHARDC_PASSES_COLLECTIVES_NODES_CORE_SPLITGRAPH_H
