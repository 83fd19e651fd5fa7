// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which regions run in pieces, and in how many: those for which the scheduled program is predicted
// to be shorter.

#ifndef SHARDC_PASSES_COLLECTIVES_CHUNK_CORE_CHOOSECHUNKS_H
#define SHARDC_PASSES_COLLECTIVES_CHUNK_CORE_CHOOSECHUNKS_H

#include "passes/collectives/chunk/core/ChunkGraph.h"
#include "passes/collectives/core/Optimize.h"

namespace shardc::collectives {

struct ChunkOptions {
  /// As the program is optimised afterwards. Programs in pieces keep to the limit that the program
  /// as it is has.
  OptimizeOptions optimize;
  /// The most pieces.
  uint32_t most = 8;
  /// Every region in so many pieces, whatever it takes.
  std::optional<uint32_t> pieces = {};
  /// Every region that can be a ring is one, whatever it takes.
  bool ring = false;
  /// The part of the step that must be saved: less is within what a prediction cannot tell.
  double leastGain = 0.01;
};

/// What the option of passes and tools says.
struct ChunkMode {
  bool enabled = false;
  std::optional<uint32_t> pieces = {};
  bool ring = false;
  /// Parses `off`, `auto`, `ring` or the number of pieces, 2 to 64.
  static std::optional<ChunkMode> parse(std::string_view text, std::string &error);
};

/// Why a model that has no price for permutes is none for rings.
std::string describeNoRings(const cost::CostModel &model);

struct ChunkDecision {
  /// In the order of the program; empty where nothing pays. They point into the regions given.
  std::vector<ChunkChoice> choices;
  /// Regions, of all alternatives but rings, for which pieces never save what they cost, or cannot
  /// have one size.
  size_t tooCostly = 0, indivisible = 0;
  double stepBeforeUs = 0, stepAfterUs = 0;
  /// How many programs were scheduled.
  unsigned candidates = 0;
};

/// What one region saves at most in so many pieces, in microseconds of the step: all but one
/// piece's transfers, or kernels where they take less, against the launches, copies and whole
/// operands that the other pieces take again, and `withLatency` what the latencies of the other
/// pieces add where the link is what all wait for. Negative where it cannot pay.
double mostSavedUs(const Graph &graph, const cost::CostModel &model, const ChunkRegion &region,
                   uint32_t pieces, bool withLatency = false);

/// The same for a ring, which has as many pieces as ranks: the collectives and the kernels one
/// after the other, against the hops or the pieces of the kernels, whichever take longer.
double mostSavedByRingUs(const Graph &graph, const cost::CostModel &model,
                         const ChunkRegion &region);

/// Tries each alternative, a set of regions that share no node, with 2, 4, ... pieces, and rings
/// with theirs: all regions that may pay, those of them that pay with all latencies, or those whose
/// collectives the schedule does not hide. Programs are compared as ProgramTrials.h says.
/// Deterministic.
ChunkDecision chooseChunks(const Graph &graph, const cost::CostModel &model,
                           std::span<const std::vector<ChunkRegion>> alternatives,
                           const ChunkOptions &options);

} // namespace shardc::collectives

#endif // SHARDC_PASSES_COLLECTIVES_CHUNK_CORE_CHOOSECHUNKS_H
