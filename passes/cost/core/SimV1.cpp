// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/cost/core/SimV1.h"

#include "passes/cost/core/Interpolate.h"

#include <array>

using namespace shardc;
using namespace shardc::cost;

CostModel::~CostModel() = default;

namespace {
constexpr uint32_t ranksOfNode = 8;
constexpr std::array<double, 3> intraRanks = {2, 4, 8};
constexpr std::array<double, 3> intraGBs = {537, 434, 394};
constexpr std::array<double, 3> intraLatency = {8, 17, 30};
constexpr std::array<double, 3> intraLatencyAllReduce = {10, 15, 31};
constexpr std::array<double, 3> interNodes = {2, 8, 32};
constexpr std::array<double, 3> interGBs = {410, 390, 386};
constexpr std::array<double, 3> interLatency = {70, 297, 1204};

double nodesOf(uint32_t size) { return (size + ranksOfNode - 1) / ranksOfNode; }
} // namespace

bool SimV1::supports(CollectiveKind kind) const {
  return kind == CollectiveKind::AllGather || kind == CollectiveKind::ReduceScatter ||
         kind == CollectiveKind::AllReduce || kind == CollectiveKind::AllToAll;
}

double SimV1::latencyUs(CollectiveKind kind, const Group &group) const {
  if (group.size > ranksOfNode)
    return interpolateClamped(nodesOf(group.size), interNodes, interLatency);
  return interpolateClamped(group.size, intraRanks,
                            kind == CollectiveKind::AllReduce ? intraLatencyAllReduce
                                                              : intraLatency);
}

double SimV1::collectiveUs(CollectiveKind kind, const Group &group, uint64_t bytes) const {
  double gbPerSecond = group.size > ranksOfNode
                           ? interpolateClamped(nodesOf(group.size), interNodes, interGBs)
                           : interpolateClamped(group.size, intraRanks, intraGBs);
  double n = group.size;
  double volume = static_cast<double>(bytes) * (n - 1) / n;
  if (kind == CollectiveKind::AllReduce)
    volume *= 2;
  // 1 GB/s is 1e3 bytes per microsecond.
  return latencyUs(kind, group) + volume / (gbPerSecond * 1e3);
}
