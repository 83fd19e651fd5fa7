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

struct PlanMistake {
  std::string text;
  /// The item of the plan, and the bucket, that it is due to; `none` where it is due to no one item
  /// (a node that never runs), or to none that is part of a bucket.
  uint32_t item = none;
  BucketId bucket = none;
};

/// Every rule that the plan breaks, and where; empty if it is valid. A node that is missing where
/// it is needed is reported there only, a bucket whose parts are out of order once, and so is a
/// storage that is overwritten out of order.
/// - every kernel and collective of the graph runs exactly once, alone or in one bucket (B4);
/// - a value exists before it is used, and is not read while its collective is in flight
///   (B3, S2);
/// - every collective that the graph waits for is waited for (S1);
/// - a bucket has two or more gathers, reduce-scatters or all-reduces of one group and reduction,
///   reduces of one element type, gathers too unless `mixedDtype`, none with output buffers; it is
///   packed, started, waited for and unpacked in this order (B1, B5);
/// - nodes that overwrite a storage keep their order against all others that touch it, and stay
///   behind the wait of a collective that they were behind.
std::vector<PlanMistake> planMistakes(const Graph &graph, const Plan &plan,
                                      const CheckOptions &options = {});

/// The text of the first of them, empty if there is none.
std::string checkPlan(const Graph &graph, const Plan &plan, const CheckOptions &options = {});

} // namespace shardc::collectives

#endif // SHARDC_PASSES_COLLECTIVES_CORE_CHECKPLAN_H
