// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/shardc/SimulateMoves.h"

using namespace shardc;
using namespace shardc::collectives;

/// Goes on with a graph that was made from the planned one, under the limit that the graph as it
/// was given has.
static void replacePlanned(const Graph &graph, std::span<const NodeId> originOf,
                           Simulation &simulation, OptimizeOptions &optimizing) {
  uint64_t peak = simulation.asIs.peakHoldBytes;
  optimizing.memoryLimit = optimizing.memoryLimit.value_or(peak + peak / 50);
  std::vector<Origin> origins;
  for (NodeId node : originOf)
    origins.push_back(node < simulation.origins.size() ? simulation.origins[node] : Origin{});
  simulation.origins = std::move(origins);
  simulation.planned = &graph;
}

void LargerMoves::chunk(const cost::CostModel &model,
                        std::span<const std::vector<ChunkRegion>> regions, const ChunkMode &mode,
                        Simulation &simulation, OptimizeOptions &optimizing) {
  ChunkOptions chunking;
  chunking.optimize = optimizing;
  chunking.pieces = mode.pieces;
  chunking.ring = mode.ring;
  chunks = chooseChunks(simulation.graph, model, regions, chunking);
  simulation.chunks = &chunks;
  if (chunks.choices.empty())
    return;
  chunked = chunkGraph(simulation.graph, model, chunks.choices);
  replacePlanned(chunked.graph, chunked.originOf, simulation, optimizing);
}

void LargerMoves::split(const cost::CostModel &model, const SplitFacts &facts, SplitMode mode,
                        Simulation &simulation, OptimizeOptions &optimizing) {
  SplitFacts ofPlanned = facts;
  if (simulation.planned == &chunked.graph) {
    ofPlanned.of.clear();
    for (NodeId node : chunked.originOf)
      ofPlanned.of.push_back(facts.of[node]);
  }
  NodeSplits possible(*simulation.planned, model, ofPlanned);
  splits = chooseSplits(possible, {optimizing, mode});
  simulation.splits = &splits;
  if (splits.choices.empty())
    return;
  parts = splitGraph(possible, splits.choices);
  replacePlanned(parts.graph, parts.originOf, simulation, optimizing);
}
