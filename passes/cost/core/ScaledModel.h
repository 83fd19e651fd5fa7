// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A network that is slower, or faster, than a cost model says.

#ifndef SHARDC_PASSES_COST_CORE_SCALEDMODEL_H
#define SHARDC_PASSES_COST_CORE_SCALEDMODEL_H

#include "passes/cost/core/CostModel.h"

#include <memory>

namespace shardc::cost {

/// `base`, with collectives that take `network` times as long.
class ScaledModel final : public CostModel {
public:
  /// `base` must outlive it.
  ScaledModel(const CostModel &base, double network) : base(base), network(network) {}
  ScaledModel(std::unique_ptr<CostModel> owned, double network)
      : owned(std::move(owned)), base(*this->owned), network(network) {}

  std::string_view name() const override { return base.name(); }
  bool supports(CollectiveKind kind) const override { return base.supports(kind); }
  double collectiveUs(CollectiveKind kind, const Group &group, uint64_t bytes) const override {
    return network * base.collectiveUs(kind, group, bytes);
  }
  double latencyUs(CollectiveKind kind, const Group &group) const override {
    return network * base.latencyUs(kind, group);
  }
  std::optional<uint32_t> ranksPerNode() const override { return base.ranksPerNode(); }
  double launchUs() const override { return base.launchUs(); }
  double memoryBytesPerSecond() const override { return base.memoryBytesPerSecond(); }
  double peakFlops(std::string_view elementType) const override {
    return base.peakFlops(elementType);
  }

private:
  std::unique_ptr<CostModel> owned;
  const CostModel &base;
  double network;
};

} // namespace shardc::cost

#endif // SHARDC_PASSES_COST_CORE_SCALEDMODEL_H
