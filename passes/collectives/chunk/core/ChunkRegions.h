// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Parts of a program that can run piece by piece: a collective, the products that its data go
// through, and what lies between. Each piece is some rows of every tensor, so that the collective
// of one piece travels while the products of another are computed.
//
//   all_gather x dim 0        rows of x: 1 block of 512       rows of the result: 4 blocks of 512
//   linear                    rows of the result: 4 blocks of 512
//   reduce_scatter dim 0      rows of the result: 1 block of 512
//
// In pieces of 256 rows, piece 0 has the first half of each block. In a ring, a piece is one block:
// that of another rank at each step.

#ifndef SHARDC_PASSES_COLLECTIVES_CHUNK_CORE_CHUNKREGIONS_H
#define SHARDC_PASSES_COLLECTIVES_CHUNK_CORE_CHUNKREGIONS_H

#include "passes/collectives/chunk/core/RowFactors.h"
#include "passes/collectives/core/Graph.h"

#include <set>

namespace shardc::collectives {

/// A tensor from outside, of which each piece takes its rows.
struct RowCut {
  RowBlocks rows;
  /// The rows of a piece are one run of elements.
  bool contiguous = false;
};

/// How a region is taken apart whose collectives become permutes from each rank to the next. Piece
/// t of every tensor is, on the rank at position r, block (r - t) mod size of its rows: piece 0 is
/// a rank's own.
struct ChunkRing {
  GroupId group = none;
  /// How many ranks there are, and pieces.
  uint32_t size = 0;
  /// What reduce-scatters send and deliver: a rank's own rows, whole. Nothing in the region reads
  /// them but their waits.
  std::set<ValueId> sums;
  /// Pairs of nodes that split a tensor into the ranks' shares and concatenate these along another
  /// dim, as programs do whose collectives know dim 0 only. A piece is a share either way: nothing
  /// is left to run. By node: of the second one, the value whose pieces its result has; of the
  /// first one `none`.
  std::map<NodeId, ValueId> relays;
};

struct ChunkRegion {
  /// How many rows there are to take apart. A piece has the same number of each block.
  uint64_t extent = 0;
  /// In order. With the start of a collective its wait is here, too.
  std::vector<NodeId> nodes;
  /// What the nodes make.
  std::map<ValueId, RowBlocks> made;
  /// What comes from outside. All other operands are taken whole by every piece.
  std::map<ValueId, RowCut> cuts;
  /// What is made here and read outside, or returned: put together again. Ascending.
  std::vector<ValueId> joins;
  /// What is returned while it is on its way, and what its wait here delivers, which is returned
  /// instead: one of `joins`.
  std::map<ValueId, ValueId> delivered;
  /// How many of the nodes are starts of collectives, and products.
  size_t collectives = 0, products = 0;
  /// Set in a region that can become a ring, in as many pieces as it has ranks. Its all-gathers
  /// take their operand whole, which is piece 0.
  std::optional<ChunkRing> ring = {};
};

/// What to know about nodes and values beyond the graph.
class ChunkRules {
public:
  virtual ~ChunkRules();
  /// How the dims of a kernel or a view are made of factors: `operands[i]` and `results[i]` are
  /// those of tensor i of the node. Nothing for a node that cannot run on a part of its tensors.
  virtual std::optional<ShardingRule> ruleOf(NodeId node) const = 0;
  /// Of a product: which operand has the rows that its result has, so that the other one (the
  /// weight) is taken whole.
  virtual std::optional<unsigned> rowOperandOf(NodeId node) const = 0;
  /// Whether a collective may become several.
  virtual bool isDivisible(NodeId collective) const = 0;
  /// Of an all-gather or a reduce-scatter with equal shares: the dim that it concatenates, or cuts.
  virtual std::optional<unsigned> dimOf(NodeId collective) const = 0;
  /// The sizes of a tensor; empty where they are not all known.
  virtual std::vector<int64_t> shapeOf(ValueId value) const = 0;
  /// Whether the ranks may add what a reduce-scatter sums one after the other, each rounding what
  /// it sends on to the element type.
  virtual bool mayAddInTurn(NodeId reduceScatter) const = 0;
};

/// What ChunkRules::mayAddInTurn says of sums of an element type: partial sums of floats shorter
/// than f32 would lose what an accumulator keeps. Two ranks round once either way.
inline bool addsInTurnAlike(bool isShortFloat, uint32_t ranks) {
  return !isShortFloat || ranks <= 2;
}

/// Along which rows regions are taken apart.
enum class ChunkDim : uint8_t {
  /// Those that collectives gather and scatter: the pieces of a gathered tensor are interleaved.
  Gathered,
  /// Those of another dim, such as the batch: each piece is gathered and scattered like the whole.
  Other,
  /// Those that collectives gather and scatter, in one piece for each rank's share: a ring
  /// (ChunkRing). Such a region begins at an all-gather or a product and ends at reduce-scatters,
  /// all over one group whose ranks are known; other collectives are not part of it.
  Ring,
};

/// Sets of regions, of which one may be taken: those along gathered rows, those along others, and
/// rings where the model has a price for permutes.
std::vector<std::vector<ChunkRegion>> findChunkRegions(const Graph &graph, const ChunkRules &rules,
                                                       const cost::CostModel &model);

/// The regions with at least one collective and one product, each node in at most one. A region
/// begins at a gather or a product, and goes on as far as rows are computed by themselves. What
/// follows its last product or collective stays only if it makes less to put together again, and a
/// last product only if that takes less than the collectives before it. Near-linear in the nodes.
std::vector<ChunkRegion> findChunkRegions(const Graph &graph, const ChunkRules &rules,
                                          const cost::CostModel &model, ChunkDim along);

/// Microseconds that taking a tensor apart, or putting it together, takes: a copy. (What a ring
/// puts together is copied twice: the order of the pieces depends on the rank.)
double copyUs(const Graph &graph, const cost::CostModel &model, ValueId value);

} // namespace shardc::collectives

#endif // SHARDC_PASSES_COLLECTIVES_CHUNK_CORE_CHUNKREGIONS_H
