// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Says whether a plan does what its graph says. It looks at nothing but the graph and the plan and
// shares no code with the optimiser, so that it can be trusted to check it.

#ifndef SHARDC_PASSES_COLLECTIVES_CORE_CHECKPLAN_H
#define SHARDC_PASSES_COLLECTIVES_CORE_CHECKPLAN_H

#include "passes/collectives/core/Plan.h"

namespace shardc::collectives {

struct CheckOptions {
  /// Members of a gather bucket may differ in element type.
  bool mixedDtype = false;
  /// Members of a bucket must name the same group; otherwise equal ranks suffice.
  bool groupsByName = false;
};

/// The first rule that the plan breaks, empty if it is valid:
/// - every kernel and collective of the graph runs exactly once, alone or in one bucket (B4);
/// - a value exists before it is used, and is not read while its collective is in flight
///   (B3, S2);
/// - every collective that the graph waits for is waited for (S1);
/// - a bucket has two or more gathers, reduce-scatters or all-reduces of one group and reduction,
///   reduces of one element type, gathers too unless `mixedDtype`, none with output buffers; it is
///   packed, started, waited for and unpacked in this order (B1, B5);
/// - nodes that overwrite a storage keep their order against all others that touch it, and stay
///   behind the wait of a collective that they were behind.
std::string checkPlan(const Graph &graph, const Plan &plan, const CheckOptions &options = {});

} // namespace shardc::collectives

#endif // SHARDC_PASSES_COLLECTIVES_CORE_CHECKPLAN_H
