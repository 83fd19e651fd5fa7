// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Waits for what a program only returns, such as gradients. A schedule waits when a collective
// should be over, to free its operands. Where there is memory for them, waiting later costs
// nothing, and hides a link that is slower than the cost model says, or a rank that is late.

#ifndef SHARDC_PASSES_COLLECTIVES_CORE_DELAYWAITS_H
#define SHARDC_PASSES_COLLECTIVES_CORE_DELAYWAITS_H

#include "passes/collectives/core/Plan.h"

namespace shardc::collectives {

/// The plan with each wait whose result no node uses moved behind the next `distance` such waits,
/// or to the end where there are fewer. All else keeps its order.
Plan delayWaits(const Graph &graph, const Plan &plan, size_t distance);

} // namespace shardc::collectives

#endif // SHARDC_PASSES_COLLECTIVES_CORE_DELAYWAITS_H
