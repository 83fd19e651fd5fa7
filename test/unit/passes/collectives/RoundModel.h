// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef SHARDC_TEST_UNIT_PASSES_COLLECTIVES_ROUNDMODEL_H
#define SHARDC_TEST_UNIT_PASSES_COLLECTIVES_ROUNDMODEL_H

#include "passes/cost/core/CostModel.h"

namespace shardc::collectives::test {

/// 10 us of latency, 1 byte per microsecond on the wire, 2 in memory, launches of 1 us.
struct RoundModel : cost::CostModel {
  std::string_view name() const override { return "round"; }
  bool supports(CollectiveKind) const override { return true; }
  double collectiveUs(CollectiveKind, const cost::Group &, uint64_t bytes) const override {
    return 10 + double(bytes);
  }
  double latencyUs(CollectiveKind, const cost::Group &) const override { return 10; }
  double launchUs() const override { return 1; }
  double memoryBytesPerSecond() const override { return 2e6; }
  double peakFlops(std::string_view) const override { return 1e12; }
};

} // namespace shardc::collectives::test

#endif // SHARDC_TEST_UNIT_PASSES_COLLECTIVES_ROUNDMODEL_H
