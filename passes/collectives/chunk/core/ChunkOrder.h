// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// In which order a program runs in which some regions are in pieces: what its graph, and the
// program itself, are made from.

#ifndef SHARDC_PASSES_COLLECTIVES_CHUNK_CORE_CHUNKORDER_H
#define SHARDC_PASSES_COLLECTIVES_CHUNK_CORE_CHUNKORDER_H

#include "passes/collectives/chunk/core/ChunkRegions.h"

namespace shardc::collectives {

/// A region, and how many pieces it becomes: a divisor of its extent, and of a ring its size. The
/// region must outlive it.
struct ChunkChoice {
  const ChunkRegion *region = nullptr;
  uint32_t pieces = 1;
};

struct ChunkStep {
  enum class What : uint8_t {
    Whole, ///< a node as it is
    Cut,   ///< what piece `piece` takes of a value from outside
    Piece, ///< piece `piece` of a node
    Join,  ///< a value from its pieces; of a ring's sums, from what arrived and the own piece
  };
  What what;
  NodeId node = none;   ///< of a cut, the node that asks for it; of a join, the one that makes it
  ValueId value = none; ///< of a cut or a join
  uint32_t piece = 0;
  const ChunkChoice *choice = nullptr; ///< where what is no whole node belongs
};

/// All nodes, each behind what it reads. Of the nodes of a region that follow one another without
/// waiting for what is put together first, piece 0 of all comes first, then piece 1 of all, and so
/// on, in the place of the first of them; nodes of other parts are moved in front of the first
/// piece that needs them. Where a kernel overwrites its operand, nothing is moved: each node is
/// followed by its next piece. In a ring that gathers nothing, piece 0 comes last: what the others
/// have added arrives by then. Regions must not share nodes.
std::vector<ChunkStep> orderChunks(const Graph &graph, std::span<const ChunkChoice> choices);

} // namespace shardc::collectives

#endif // SHARDC_PASSES_COLLECTIVES_CHUNK_CORE_CHUNKORDER_H
