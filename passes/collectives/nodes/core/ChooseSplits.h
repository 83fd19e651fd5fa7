// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which collectives over several nodes are taken apart: those for which the scheduled program is
// predicted to be shorter.

#ifndef SHARDC_PASSES_COLLECTIVES_NODES_CORE_CHOOSESPLITS_H
#define SHARDC_PASSES_COLLECTIVES_NODES_CORE_CHOOSESPLITS_H

#include "passes/collectives/core/Optimize.h"
#include "passes/collectives/nodes/core/SplitGraph.h"

#include <array>

namespace shardc::collectives {

/// What the option of passes and tools says: off, auto or all.
enum class SplitMode : uint8_t { Off, Auto, All };
std::optional<SplitMode> parseSplitMode(std::string_view text, std::string &error);

/// What is wrong with a model that does not say which ranks share a node, or nothing.
std::string describeMissingNodes(const cost::CostModel &model);

struct SplitOptions {
  /// As the program is optimised afterwards. Programs in parts keep to the limit that the program
  /// as it is has.
  OptimizeOptions optimize;
  SplitMode mode = SplitMode::Auto;
  /// The part of the step that must be saved: less is within what a prediction cannot tell.
  double leastGain = 0.01;
};

struct SplitDecision {
  /// In the order of the program; empty where nothing pays.
  std::vector<NodeId> choices;
  /// All-gathers, reduce-scatters and all-reduces by why they cannot be split; those that can are
  /// counted under Splits.
  std::array<size_t, numWhyFlat> counts = {};
  /// Collectives that could be split but never save what it costs.
  size_t tooCostly = 0;
  /// 0 where it was not asked.
  double stepBeforeUs = 0, stepAfterUs = 0;
  /// How many programs were scheduled.
  unsigned candidates = 0;

  size_t count(WhyFlat why) const { return counts[static_cast<size_t>(why)]; }
};

/// With `Auto`, schedules the program with the collectives split for which the busier of the two
/// networks has less to do, with those whose parts take less even one after the other, and with
/// those that the schedule does not hide; and takes the best. Programs are compared as
/// ProgramTrials.h says. Deterministic.
SplitDecision chooseSplits(const NodeSplits &splits, const SplitOptions &options);

} // namespace shardc::collectives

#endif // SHARDC_PASSES_COLLECTIVES_NODES_CORE_CHOOSESPLITS_H
