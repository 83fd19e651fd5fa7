// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The larger moves of `shardc simulate --optimize`: graphs that are made from the one that was
// given before the collectives are scheduled.
#ifndef SHARDC_TOOLS_SHARDC_SIMULATEMOVES_H
#define SHARDC_TOOLS_SHARDC_SIMULATEMOVES_H

#include "tools/shardc/SimulateReport.h"

namespace shardc {

/// Keeps the graphs and decisions that a simulation refers to. Each move goes on from what is
/// planned, notes itself in the simulation, and where it changes anything gives `optimizing` the
/// memory limit that the graph as it was given has.
class LargerMoves {
public:
  /// Collectives and products in pieces. The regions are those of the graph as it was given.
  void chunk(const cost::CostModel &model,
             std::span<const std::vector<collectives::ChunkRegion>> regions,
             const collectives::ChunkMode &mode, Simulation &simulation,
             collectives::OptimizeOptions &optimizing);
  /// Collectives within nodes and between them. The facts are of the graph as it was given.
  void split(const cost::CostModel &model, const collectives::SplitFacts &facts,
             collectives::SplitMode mode, Simulation &simulation,
             collectives::OptimizeOptions &optimizing);

private:
  collectives::ChunkDecision chunks;
  collectives::ChunkedGraph chunked;
  collectives::SplitDecision splits;
  collectives::SplitGraph parts;
};

} // namespace shardc

#endif // SHARDC_TOOLS_SHARDC_SIMULATEMOVES_H
