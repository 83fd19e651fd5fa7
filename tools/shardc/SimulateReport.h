// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What `shardc simulate` prints.
#ifndef SHARDC_TOOLS_SHARDC_SIMULATEREPORT_H
#define SHARDC_TOOLS_SHARDC_SIMULATEREPORT_H

#include "passes/collectives/chunk/core/ChooseChunks.h"
#include "passes/collectives/core/BucketExplanation.h"
#include "passes/collectives/core/FiguresReport.h"
#include "passes/collectives/nodes/core/ChooseSplits.h"

namespace shardc {

struct Simulation {
  std::string model, costModel;
  /// As it was given, and so are the figures `asIs` and the bounds.
  const collectives::Graph &graph;
  collectives::Figures asIs;
  /// Replays of the graph as it is, the nominal one first.
  std::vector<collectives::Scenario> scenarios;
  std::vector<double> asIsSteps;
  collectives::Bounds bounds;
  /// What was optimised: the graph, or one in which regions are in pieces or collectives in
  /// parts; and where its nodes come
  /// from.
  const collectives::Graph *planned = nullptr;
  std::vector<collectives::Origin> origins;
  /// Null where nothing was to be taken apart.
  const collectives::ChunkDecision *chunks = nullptr;
  /// Null where no collectives were to be split over nodes.
  const collectives::SplitDecision *splits = nullptr;
  /// Kernels, and how many of them have a duration of their own.
  size_t kernels = 0, timedKernels = 0;
  /// Null where nothing was optimised.
  const collectives::OptimizeResult *optimized = nullptr;
  /// Of a plan of the graph that was given; null without one.
  const collectives::OptimizeResult *given = nullptr;
  /// Buckets need no packing.
  bool flat = false;
  /// CPU seconds by pass.
  std::vector<std::pair<std::string, double>> passSeconds;
};

/// One object: the figures of the optimised program, of the plan that was given ("mode": "plan"),
/// or of the program as it is, and "step_range_us", its least and its longest step in "scenarios"
/// ({name, step_us}); after optimisation, and of a plan, also "before" (the same figures of the
/// program as it is), "buckets" and "alone"; after optimisation "memory_limit_bytes", and, where a
/// plan was given as well, "plan" with that one's figures, scenarios, buckets and alone; with
/// pieces "chunks": regions, collectives, products, pieces and rings of what was taken apart, how
/// many regions are too_costly or indivisible, and the optimised step_us_whole without pieces, for
/// nominal times (null where it was not asked); with --split-nodes "nodes": how many collectives
/// were split, why others were not, and step_us_whole.
void writeSimulation(const Simulation &simulation, std::ostream &out);

/// A table for people, and what became of each collective.
void printSimulation(const Simulation &simulation, std::ostream &out);

/// A Chrome trace of the graph as it is and of all plans.
void writeTimelines(const Simulation &simulation, const cost::CostModel &model, std::ostream &out);

} // namespace shardc

#endif // SHARDC_TOOLS_SHARDC_SIMULATEREPORT_H
