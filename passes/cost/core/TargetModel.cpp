// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/cost/core/Interpolate.h"
#include "passes/cost/core/TargetDescription.h"

#include <algorithm>
#include <limits>

using namespace shardc;
using namespace shardc::cost;

namespace {

/// How a group lies on the machine.
struct Span {
  double nodes;
  /// The fewest ranks that a node of the group holds.
  double ranksOnNode;
};

Span spanOf(const Group &group, uint32_t ranksPerNode) {
  if (group.ranks.empty()) {
    // Only the size is known: consecutive ranks.
    double nodes = (group.size + ranksPerNode - 1) / ranksPerNode;
    return {nodes, std::min<double>(group.size, ranksPerNode)};
  }
  std::map<int64_t, uint32_t> ranksOf;
  for (int64_t rank : group.ranks)
    ++ranksOf[rank / ranksPerNode];
  uint32_t fewest = std::numeric_limits<uint32_t>::max();
  for (auto &[node, count] : ranksOf)
    fewest = std::min(fewest, count);
  return {static_cast<double>(ranksOf.size()), static_cast<double>(fewest)};
}

/// Kinds in which every rank sends its own data over its own link, so that ranks of one node do not
/// share the bandwidth of all its links.
bool isPointToPoint(CollectiveKind kind) {
  return kind == CollectiveKind::AllToAll || kind == CollectiveKind::Permute;
}

} // namespace

double MeasuredTable::at(double x) const {
  size_t n = bytes.size();
  if (x <= bytes.back())
    return interpolateClamped(x, bytes, us);
  if (n == 1)
    return bytes[0] > 0 ? us[0] * x / bytes[0] : us[0];
  double slope = (us[n - 1] - us[n - 2]) / (bytes[n - 1] - bytes[n - 2]);
  return us[n - 1] + slope * (x - bytes[n - 1]);
}

TargetModel::TargetModel(TargetDescription description) : target(std::move(description)) {}

double TargetModel::peakFlops(std::string_view elementType) const {
  auto it = target.peakTflops.find(elementType);
  return it == target.peakTflops.end() ? std::numeric_limits<double>::infinity()
                                       : it->second * 1e12;
}

const MeasuredTable *TargetModel::measuredFor(CollectiveKind kind, const Group &group) const {
  auto it = target.measured.find({kind, group.size});
  return it == target.measured.end() ? nullptr : &it->second;
}

TargetModel::Link TargetModel::linkOf(CollectiveKind kind, const Group &group) const {
  if (target.isOneRank())
    return {std::numeric_limits<double>::infinity(), 1}; // there is none: supports()
  Span span = spanOf(group, target.ranksPerNode);
  bool between = span.nodes > 1;
  size_t index = static_cast<size_t>(kind);
  auto pick = [&](const std::array<LinkTable, numCollectiveKinds> &tables) -> const LinkTable & {
    return tables[index].empty() ? tables[0] : tables[index];
  };
  // A machine of one node has no inter table, and one whose nodes hold one rank no intra table.
  const LinkTable &wanted = pick(between ? target.inter : target.intra);
  bool useInter = between != wanted.empty();
  const LinkTable &table = wanted.empty() ? pick(between ? target.intra : target.inter) : wanted;

  double count = useInter ? span.nodes : group.size;
  double gbPerSecond = interpolateClamped(count, table.counts, table.gbPerSecond);
  // The table is for full nodes; a group with fewer ranks on a node drives fewer of its links.
  if (useInter && !isPointToPoint(kind))
    gbPerSecond *= span.ranksOnNode / target.ranksPerNode;
  double n = std::max<double>(group.size, 2);
  if (table.busBandwidth) {
    gbPerSecond *= n / (n - 1);
    if (kind == CollectiveKind::AllReduce)
      gbPerSecond /= 2;
  }
  return {interpolateClamped(count, table.counts, table.latencyUs), gbPerSecond * 1e3};
}

double TargetModel::latencyUs(CollectiveKind kind, const Group &group) const {
  if (group.size <= 1)
    return 0;
  if (const MeasuredTable *table = measuredFor(kind, group))
    return table->us.front();
  return linkOf(kind, group).latencyUs;
}

double TargetModel::collectiveUs(CollectiveKind kind, const Group &group, uint64_t bytes) const {
  if (group.size <= 1)
    return 0;
  if (const MeasuredTable *table = measuredFor(kind, group))
    return table->at(static_cast<double>(bytes));
  Link link = linkOf(kind, group);
  return link.latencyUs + static_cast<double>(bytes) / link.bytesPerUs;
}
