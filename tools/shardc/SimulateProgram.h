// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One rank's program in MLIR as what `shardc simulate` works on.
#ifndef SHARDC_TOOLS_SHARDC_SIMULATEPROGRAM_H
#define SHARDC_TOOLS_SHARDC_SIMULATEPROGRAM_H

#include "passes/collectives/chunk/core/ChunkRegions.h"
#include "passes/collectives/core/BucketExplanation.h"
#include "passes/collectives/exported/SideFiles.h"
#include "passes/collectives/nodes/core/SplitGraph.h"

#include "llvm/ADT/StringRef.h"

namespace shardc {

struct ProgramToSimulate {
  collectives::Graph graph;
  std::vector<collectives::Origin> origins;
  /// What can be taken apart, if asked for.
  std::vector<std::vector<collectives::ChunkRegion>> regions;
  /// Of its collectives.
  collectives::SplitFacts splitFacts;
};

/// Reads a module of the local or scheduled stage and takes its function `entry`, or the only one
/// that communicates where that is empty. Kernels that `durations` names take that long, others
/// what `model` says. `findRegions`: look for what can be taken apart (collectives in flight stay
/// whole). Nothing after errors were reported.
std::optional<ProgramToSimulate> readProgramToSimulate(llvm::StringRef path, llvm::StringRef entry,
                                                       const cost::CostModel &model,
                                                       const collectives::Durations &durations,
                                                       bool findRegions);

} // namespace shardc

#endif // SHARDC_TOOLS_SHARDC_SIMULATEPROGRAM_H
