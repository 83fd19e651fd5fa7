// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/cost/core/Transfer.h"

using namespace shardc;
using namespace shardc::cost;

double cost::ringBytes(CollectiveKind kind, double bytes, int64_t n) {
  double others = static_cast<double>(n - 1) / static_cast<double>(n) * bytes;
  switch (kind) {
  case CollectiveKind::AllReduce:
    return 2 * others; // a reduce-scatter, then an all-gather
  case CollectiveKind::AllGather:
  case CollectiveKind::ReduceScatter:
  case CollectiveKind::AllToAll:
    return others;
  case CollectiveKind::Broadcast:
  case CollectiveKind::Permute:
    return n > 1 ? bytes : 0;
  }
  return bytes;
}

double cost::transitionBytes(const AxisUse &from, const AxisUse &to, bool sameSplit, double bytes,
                             int64_t n) {
  bool toShard = to.kind == PlacementKind::Shard, toPartial = to.kind == PlacementKind::Partial;
  double shard = bytes / static_cast<double>(n);
  if (from.kind == PlacementKind::Partial) {
    if (toPartial && to.reduction == from.reduction)
      return 0;
    bool scatters = toShard || (toPartial && to.reduction == Reduction::Sum); // zeros around it
    return ringBytes(scatters ? CollectiveKind::ReduceScatter : CollectiveKind::AllReduce, bytes,
                     n);
  }
  if (from.kind != PlacementKind::Shard)
    return 0; // slices and partial values of what every rank has are local
  if (toShard)
    return to.dim == from.dim && sameSplit ? 0 : ringBytes(CollectiveKind::AllToAll, shard, n);
  if (toPartial && to.reduction == Reduction::Sum)
    return 0; // a block of zeros around the shard
  return ringBytes(CollectiveKind::AllGather, bytes, n);
}

LinkCost LinkCosts::of(CollectiveKind kind, std::span<const unsigned> meshAxes) const {
  if (!axes.empty()) {
    LinkCost total{0, 0};
    for (unsigned axis : meshAxes) {
      total.latencyUs += axes[axis].latencyUs;
      total.usPerByte = std::max(total.usPerByte, axes[axis].usPerByte);
    }
    return total;
  }
  if (!model)
    return {};
  std::vector<unsigned> sorted(meshAxes.begin(), meshAxes.end());
  std::sort(sorted.begin(), sorted.end());
  auto [entry, isNew] = known.try_emplace({kind, sorted});
  if (isNew) {
    if (!model->supports(kind))
      kind = CollectiveKind::AllGather; // which every model knows
    std::vector<int64_t> ranks = mesh->groups(sorted).front();
    Group group{static_cast<uint32_t>(ranks.size()), ranks};
    constexpr uint64_t large = uint64_t(1) << 30;
    int64_t n = static_cast<int64_t>(ranks.size());
    double latency = n > 1 ? model->latencyUs(kind, group) : 0;
    double moved = ringBytes(kind, static_cast<double>(large), n);
    entry->second = {latency,
                     n > 1 ? (model->collectiveUs(kind, group, large) - latency) / moved : 0};
  }
  return entry->second;
}

double LinkCosts::fastest(unsigned numAxes) const {
  double least = 1;
  for (unsigned axis = 0; axis < numAxes; ++axis)
    for (size_t kind = 0; kind < numCollectiveKinds; ++kind) {
      double time = of(static_cast<CollectiveKind>(kind), std::array{axis}).usPerByte;
      least = axis == 0 && kind == 0 ? time : std::min(least, time);
    }
  return least;
}
