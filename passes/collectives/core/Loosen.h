// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Gives a plan slack. A schedule that is made for one set of times starts a collective when it has
// to and waits for it when it should be over. Times are estimates: networks are shared, clocks
// vary, ranks are late. Where memory allows, starting earlier and waiting later costs nothing, and
// hides what takes longer than it should.

#ifndef SHARDC_PASSES_COLLECTIVES_CORE_LOOSEN_H
#define SHARDC_PASSES_COLLECTIVES_CORE_LOOSEN_H

#include "passes/collectives/core/Plan.h"
#include "passes/collectives/core/Problem.h"

namespace shardc::collectives {

/// Which start goes first where several could.
enum class StartOrder : uint8_t {
  /// That of the plan. Each collective starts no later than before, and each kernel waits for no
  /// more.
  Kept,
  /// The one whose result is needed first. A collective that is needed later may start while an
  /// earlier one is not ready.
  Need,
};

struct LoosenOptions {
  /// Bytes, counted as peak_hold_bytes. A plan that takes more is moved only where it takes less.
  uint64_t memoryLimit = UINT64_MAX;
  /// Buckets need no packing.
  bool flat = false;
  StartOrder order = StartOrder::Kept;
  /// Each bucket is unpacked before all that the plan waits for behind it. Otherwise it may be
  /// unpacked behind a stall that hid this, which takes as long as unpacking does. With it, and
  /// with starts in the order of the plan, no step is longer, whatever times are, apart from
  /// launches that come before a kernel instead of behind it. But buckets have less slack: what
  /// something needs soon is waited for behind them.
  bool unpackInOrder = false;
};

/// The plan with each collective started as early as its operands and the memory limit allow, and
/// then waited for as late as something needs it and the limit allows. Kernels and buckets stay as
/// they are. A collective whose operand comes from another one stays where the plan starts it: to
/// wait for that one earlier could hold up kernels.
///
/// `problem` is of the graph's own order, and `plan` one that checkPlan accepts. O(n log n).
Plan loosen(const Problem &problem, const Plan &plan, const LoosenOptions &options);

} // namespace shardc::collectives

#endif // SHARDC_PASSES_COLLECTIVES_CORE_LOOSEN_H
