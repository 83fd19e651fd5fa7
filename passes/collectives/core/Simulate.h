// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Simulates a graph, or what a plan makes of it, on one rank: one compute stream that launches
// everything in issue order, and one stream per group. A collective starts when it has been
// launched and its group's stream is free; a wait stalls the compute stream until its collective
// has ended, and that stall is exposed communication.

#ifndef SHARDC_PASSES_COLLECTIVES_CORE_SIMULATE_H
#define SHARDC_PASSES_COLLECTIVES_CORE_SIMULATE_H

#include "passes/collectives/core/Plan.h"

#include <array>

namespace shardc::collectives {

template <typename T> using PerKind = std::array<T, numCollectiveKinds>;

/// Times in microseconds, sizes in bytes.
struct Figures {
  double stepUs = 0;
  double computeUs = 0;
  /// Kernels and collectives put on a stream.
  uint64_t launches = 0;
  PerKind<double> exposedUs = {};
  PerKind<double> commUs = {};
  PerKind<uint64_t> counts = {};
  uint64_t waits = 0;
  uint64_t buckets = 0;
  /// Storages are freed after their last use; inputs and outputs stay.
  uint64_t peakBytes = 0;
  /// The same, with the operands of a collective kept until its wait.
  uint64_t peakHoldBytes = 0;

  double totalExposedUs() const;
  double totalCommUs() const;
};

/// What no order of the graph can beat.
struct Bounds {
  /// max(compute + launches, busiest group): for this very graph.
  double lowerBoundUs = 0;
  /// The same without latency and without launches of collectives: buckets cannot beat it.
  double lowerBoundNoLatencyUs = 0;
  /// The longest path through the data, with as many streams as it takes.
  double criticalPathUs = 0;
};

/// One thing on one stream.
struct Span {
  enum class What : uint8_t { Kernel, Pack, Unpack, Collective, Stall };
  What what;
  bool isBucket;
  /// A BucketId where isBucket, else a NodeId; the collective for a stall.
  uint32_t id;
  /// `none` is the compute stream, else the group.
  GroupId group;
  double startUs, durationUs;
};

struct SimulateOptions {
  /// Operands of buckets lie side by side and results are used in place: packing costs nothing.
  bool flat = false;
  /// Where to record what runs when; may be null.
  std::vector<Span> *timeline = nullptr;
  /// Stall behind each collective, by NodeId; for a bucket on its first member. May be null.
  std::vector<double> *exposedOf = nullptr;
};

/// Simulates the graph in its own order.
Figures simulate(const Graph &graph, const cost::CostModel &model,
                 const SimulateOptions &options = {});

/// Simulates a plan that checkPlan accepts.
Figures simulate(const Graph &graph, const Plan &plan, const cost::CostModel &model,
                 const SimulateOptions &options = {});

Bounds computeBounds(const Graph &graph, const cost::CostModel &model);

} // namespace shardc::collectives

#endif // SHARDC_PASSES_COLLECTIVES_CORE_SIMULATE_H
