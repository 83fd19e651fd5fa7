// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a plan that is being changed takes, in several scenarios at once. What Replay.h says of a
// finished plan, but a change costs only as much as the part of the plan whose times it moves
// against each other.

#ifndef SHARDC_PASSES_COLLECTIVES_CORE_EVENTTIMES_H
#define SHARDC_PASSES_COLLECTIVES_CORE_EVENTTIMES_H

#include "passes/collectives/core/PlanEvents.h"
#include "passes/collectives/core/Replay.h"

#include <array>

namespace shardc::collectives {

/// Microseconds by scenario; an even number for the sake of vector registers. What is beyond the
/// scenarios is 0.
using Times = std::array<double, mostScenarios + mostScenarios % 2>;

class EventTimes {
public:
  /// At most `mostScenarios`. `flat`: buckets need no packing.
  EventTimes(const PlanEvents &events, const cost::CostModel &model,
             std::span<const Scenario> scenarios, bool flat);

  /// Of the plan as it was at the last `keep`.
  const Times &stepsUs() const { return steps; }

  /// What a unit takes, after its members changed, also when that is undone.
  void updateUnit(UnitId unit);

  /// The steps after changes of what is in positions from `first` to `last`; nothing where they
  /// are surely no shorter in any scenario. The replay ends where the plan goes on as before, only
  /// sooner or later, or no sooner anywhere. Not exact: a collective that is in flight there may be
  /// in time where it is taken to be as late as those behind it. `regrouped`: units have other
  /// members.
  std::optional<Times> estimate(uint32_t first, uint32_t last, bool regrouped);

  /// Replays the plan from `first` on; exact.
  void keep(uint32_t first);

  /// How many events have been replayed.
  size_t replayed() const { return numReplayed; }

private:
  struct Unit {
    double packUs = 0, unpackUs = 0; // launches included
    Times us = {};
    GroupId group = 0;
  };
  struct Clock {
    Times now = {};
    std::vector<Times> freeUs; // by group
  };

  void run(Clock &clock, uint32_t begin, uint32_t end);
  Times stepsOf(const Clock &clock) const;
  /// Whether nothing that comes behind a position is sooner than it was.
  bool isNoSooner(const Clock &clock, const Clock &before, uint32_t position) const;
  /// By how much later the plan goes on as it did, if it does.
  bool isShifted(const Clock &clock, const Clock &before, Times &by) const;

  const PlanEvents &events;
  const Problem &problem;
  const cost::CostModel &model;
  bool flat;
  std::vector<Times> kernelUs; // by task
  std::vector<Times> network;  // by group: how many times as long its collectives take
  std::vector<Unit> units;
  std::vector<Times> endUs; // by unit
  /// Ends before the estimate that is being made.
  std::vector<std::pair<UnitId, Times>> endsBefore;
  std::vector<Clock> clocks; // every `stride` positions
  Times steps = {};
  size_t numReplayed = 0;
};

} // namespace shardc::collectives

#endif // SHARDC_PASSES_COLLECTIVES_CORE_EVENTTIMES_H
