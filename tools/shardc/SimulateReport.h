// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What `shardc simulate` prints.
#ifndef SHARDC_TOOLS_SHARDC_SIMULATEREPORT_H
#define SHARDC_TOOLS_SHARDC_SIMULATEREPORT_H

#include "passes/collectives/core/BucketExplanation.h"
#include "passes/collectives/core/FiguresReport.h"

namespace shardc {

struct Simulation {
  std::string model, costModel;
  const collectives::Graph &graph;
  std::vector<collectives::Origin> origins;
  collectives::Figures asIs;
  /// Replays of the graph as it is, the nominal one first.
  std::vector<collectives::Scenario> scenarios;
  std::vector<double> asIsSteps;
  collectives::Bounds bounds;
  /// Kernels, and how many of them have a duration of their own.
  size_t kernels = 0, timedKernels = 0;
  /// Null where the graph was simulated as it is.
  const collectives::OptimizeResult *optimized = nullptr;
  /// Buckets need no packing.
  bool flat = false;
  /// CPU seconds by pass.
  std::vector<std::pair<std::string, double>> passSeconds;
};

/// One object: the figures of the optimised program, or of the program as it is, and
/// "step_range_us", its least and its longest step in "scenarios" ({name, step_us}); after
/// optimisation also "before" (the same figures of the program as it is), "memory_limit_bytes",
/// "buckets" and "alone".
void writeSimulation(const Simulation &simulation, std::ostream &out);

/// A table for people, and what became of each collective.
void printSimulation(const Simulation &simulation, std::ostream &out);

} // namespace shardc

#endif // SHARDC_TOOLS_SHARDC_SIMULATEREPORT_H
