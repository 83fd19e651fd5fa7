// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a plan takes where times are not those that it was made for: slower networks, kernels that
// take more or less, a group with a late rank. The plan is issued as it is, so that a replay is one
// pass over its items.

#ifndef SHARDC_PASSES_COLLECTIVES_CORE_REPLAY_H
#define SHARDC_PASSES_COLLECTIVES_CORE_REPLAY_H

#include "passes/collectives/core/Plan.h"

#include <array>

namespace shardc::collectives {

/// How the times of a run differ from those of the cost model.
struct Scenario {
  /// For reports: "network x1.5".
  std::string name = "nominal";
  /// How many times as long collectives take, on all groups or on one.
  double network = 1;
  GroupId group = none;
  /// Each kernel takes a factor of its own, from [1 - jitter, 1 + jitter]; the same for a kernel
  /// and a seed in every plan.
  double jitter = 0;
  uint32_t seed = 0;
};

/// By what factor a kernel takes longer, from its node.
double kernelFactor(const Scenario &scenario, NodeId kernel);

/// The set that plans are judged by: nominal times first, networks that are up to twice as slow,
/// kernels that are off by up to a fifth, and a straggler on each of the busiest groups.
inline constexpr size_t mostScenarios = 9;
std::vector<Scenario> standardScenarios(const Graph &graph, const cost::CostModel &model);

/// A plan that checkPlan accepts, ready to be replayed.
class Replay {
public:
  /// `flat`: packing costs nothing.
  Replay(const Graph &graph, const Plan &plan, const cost::CostModel &model, bool flat = false);

  /// Microseconds of a step.
  double stepUs(const Scenario &scenario) const;
  std::vector<double> stepsUs(std::span<const Scenario> scenarios) const;

  /// By what time the compute stream came later to the wait for a collective than the collective
  /// ended, on nominal times: by so much it could take longer before anything waits for it.
  /// Negative where it is exposed, by as much as that. By NodeId, for a bucket at its first member;
  /// infinity for what is never waited for and for all other nodes.
  std::vector<double> slackUs(size_t numNodes) const;

private:
  struct Event {
    enum class What : uint8_t { Kernel, Start, Wait };
    What what;
    GroupId group; // of a start
    /// The node of a kernel (`none` for packing), or the index of a collective.
    uint32_t id;
    double us; // without launch
  };
  template <size_t width, typename OnWait>
  std::array<double, width> run(std::span<const Scenario> scenarios, OnWait onWait) const;

  double launchUs;
  size_t numGroups;
  std::vector<Event> events;
  /// By index of a collective: itself, or the first member of its bucket.
  std::vector<NodeId> collectives;
};

} // namespace shardc::collectives

#endif // SHARDC_PASSES_COLLECTIVES_CORE_REPLAY_H
