// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A graph in which some regions run in pieces.

#ifndef SHARDC_PASSES_COLLECTIVES_CHUNK_CORE_CHUNKGRAPH_H
#define SHARDC_PASSES_COLLECTIVES_CHUNK_CORE_CHUNKGRAPH_H

#include "passes/collectives/chunk/core/ChunkOrder.h"

namespace shardc::collectives {

struct ChunkedGraph {
  Graph graph;
  /// By node: that of the graph before which it is a piece of, or whose tensors it cuts or joins.
  std::vector<NodeId> originOf;
};

/// Microseconds of one piece of a kernel: its share of the arithmetic, and what it takes whole read
/// in full.
double pieceUs(const Graph &graph, const cost::CostModel &model, const ChunkRegion &region,
               NodeId kernel, uint32_t pieces);

/// Microseconds that a rank takes to add to what it received, of a reduce-scatter in a ring.
double addUs(const Graph &graph, const cost::CostModel &model, NodeId reduceScatter, uint32_t size);

/// The program in the order of `orderChunks`. What a piece takes of a tensor from outside is a view
/// where it is contiguous, else a copy; what is read outside is put together by a copy, in a ring
/// by two. In a ring, a gather is permutes of a rank's share and their waits, and a reduce-scatter
/// is those and sums.
ChunkedGraph chunkGraph(const Graph &graph, const cost::CostModel &model,
                        std::span<const ChunkChoice> choices);

} // namespace shardc::collectives

#endif // SHARDC_PASSES_COLLECTIVES_CHUNK_CORE_CHUNKGRAPH_H
