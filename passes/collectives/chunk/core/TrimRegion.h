// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef SHARDC_PASSES_COLLECTIVES_CHUNK_CORE_TRIMREGION_H
#define SHARDC_PASSES_COLLECTIVES_CHUNK_CORE_TRIMREGION_H

#include "passes/collectives/chunk/core/ChunkRegions.h"

namespace shardc::collectives {

/// Finds what a region is better without: what follows its last product or collective and only
/// makes more to put together, and last products that cost more to put together than the
/// collectives before them take.
class RegionTrimmer {
public:
  /// `users` and `returned` are by value: the nodes that read it, and whether the program returns
  /// it. All must outlive this object.
  RegionTrimmer(const Graph &graph, const ChunkRules &rules, const cost::CostModel &model,
                const std::vector<std::vector<NodeId>> &users, const std::vector<bool> &returned,
                const ChunkRegion &region)
      : graph(graph), rules(rules), model(model), users(users), returned(returned), region(region) {
  }

  /// The nodes that stay, of all of the region.
  std::set<NodeId> run() const;
  /// Whether a value is read by other nodes than these, or returned.
  bool isUsedOutside(ValueId value, const std::set<NodeId> &inside) const;

private:
  bool isProduct(NodeId node) const { return graph.isKernel(node) && rules.rowOperandOf(node); }
  void trim(std::set<NodeId> &inside) const;
  bool isReadInside(NodeId node, const std::set<NodeId> &inside,
                    const std::set<NodeId> &gone = {}) const;
  double joinUs(ValueId value) const;
  bool trimProducts(std::set<NodeId> &inside) const;

  const Graph &graph;
  const ChunkRules &rules;
  const cost::CostModel &model;
  const std::vector<std::vector<NodeId>> &users;
  const std::vector<bool> &returned;
  const ChunkRegion &region;
};

} // namespace shardc::collectives

#endif // SHARDC_PASSES_COLLECTIVES_CHUNK_CORE_TRIMREGION_H
