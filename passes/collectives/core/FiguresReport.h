// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Figures as JSON and timelines as Chrome traces.

#ifndef SHARDC_PASSES_COLLECTIVES_CORE_FIGURESREPORT_H
#define SHARDC_PASSES_COLLECTIVES_CORE_FIGURESREPORT_H

#include "passes/collectives/core/Simulate.h"

#include <iosfwd>
#include <utility>

namespace shardc::collectives {

struct FiguresReport {
  const Figures &figures;
  const Bounds &bounds;
  /// The step when packing costs nothing.
  double stepUsFlat = 0;
  /// Nodes of the simulated program.
  size_t nodes = 0;
  /// Seconds by pass, in order; a total is added.
  std::vector<std::pair<std::string, double>> passSeconds;
};

/// The members of a JSON object: step_us, compute_us, launches, exposed_us, comm_us and counts by
/// kind (AG, RS, AR, A2A, and BC and PM where there are any), peak_bytes, peak_hold_bytes,
/// lower_bound_us, lower_bound_nolat_us, critical_path_us, pass_seconds, step_us_flat. Without the
/// braces, so that a caller can add to them.
void writeFigures(const FiguresReport &report, std::ostream &out);

/// A timeline and what to call it ("before", "after", "measured").
struct NamedTimeline {
  std::string name;
  const std::vector<Span> *spans;
  /// The plan whose buckets the spans name; null if there are none.
  const Plan *plan;
  /// The program whose nodes the spans name, where it is not the one of the trace; its groups are
  /// the same.
  const Graph *graph = nullptr;
};

/// A Chrome trace (chrome://tracing, Perfetto): one process per timeline, one thread per stream,
/// stalls on the compute stream included. Times in microseconds.
void writeTrace(const Graph &graph, std::span<const NamedTimeline> timelines, std::ostream &out);

} // namespace shardc::collectives

#endif // SHARDC_PASSES_COLLECTIVES_CORE_FIGURESREPORT_H
