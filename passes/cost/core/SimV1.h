// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `sim-v1`: a system-neutral model of 8-GPU nodes for comparing optimisers on one graph. It looks
// at the size of a group only. Its constants are part of its definition: do not tune them.

#ifndef SHARDC_PASSES_COST_CORE_SIMV1_H
#define SHARDC_PASSES_COST_CORE_SIMV1_H

#include "passes/cost/core/CostModel.h"

#include <limits>

namespace shardc::cost {

/// t = latency + volume / bandwidth with volume = S (n-1)/n, twice that for an all-reduce. Both
/// figures are linear between the points of a table: over the group size up to 8 ranks, over the
/// number of 8-rank nodes above. All-gather, reduce-scatter, all-reduce and all-to-all only.
class SimV1 final : public CostModel {
public:
  std::string_view name() const override { return "sim-v1"; }
  bool supports(CollectiveKind kind) const override;
  double collectiveUs(CollectiveKind kind, const Group &group, uint64_t bytes) const override;
  double latencyUs(CollectiveKind kind, const Group &group) const override;
  double launchUs() const override { return 1.0; }
  double memoryBytesPerSecond() const override { return 3.35e12; }
  double peakFlops(std::string_view) const override {
    return std::numeric_limits<double>::infinity();
  }
};

} // namespace shardc::cost

#endif // SHARDC_PASSES_COST_CORE_SIMV1_H
