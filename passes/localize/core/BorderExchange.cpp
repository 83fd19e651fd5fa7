// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/localize/core/BorderExchange.h"

#include <algorithm>

namespace shardc {

static Run common(const Run &a, const Run &b) {
  int64_t begin = std::max(a.begin, b.begin);
  return {begin, std::max(begin, std::min(a.end, b.end))};
}

Run BorderRank::before() const {
  return {touched.begin, std::max(touched.begin, std::min(touched.end, positions.begin))};
}

Run BorderRank::behind() const {
  int64_t begin = std::max(touched.begin, positions.end);
  return {begin, std::max(begin, touched.end)};
}

std::vector<BorderNeed> borderNeeds(std::span<const BorderRank> ranks,
                                    std::span<const std::vector<int64_t>> groups) {
  std::vector<BorderNeed> needs;
  for (const std::vector<int64_t> &group : groups)
    for (int64_t source : group)
      for (int64_t owner : group) {
        const BorderRank &from = ranks[static_cast<size_t>(source)],
                         &to = ranks[static_cast<size_t>(owner)];
        if (owner == source || to.positions.size() <= 0)
          continue;
        BorderNeed need{source, owner, common(to.covered, from.elements).size(),
                        common(from.touched, to.positions).size(),
                        to.positions.begin >= from.positions.end};
        if (need.elements > 0 || need.positions > 0)
          needs.push_back(need);
      }
  return needs;
}

std::vector<BorderSums> cheapestSums(std::span<const BorderNeed> needs,
                                     std::span<const double> ofElement,
                                     std::span<const double> ofPosition) {
  struct Side {
    double elements = 0, sums = 0;
  };
  std::vector<Side> before(ofElement.size()), behind(ofElement.size());
  for (const BorderNeed &need : needs) {
    auto source = static_cast<size_t>(need.source), owner = static_cast<size_t>(need.owner);
    Side &side = (need.isBehind ? behind : before)[source];
    side.elements += static_cast<double>(need.elements) * ofElement[owner];
    side.sums += static_cast<double>(need.positions) * ofPosition[owner];
  }
  std::vector<BorderSums> sums;
  for (size_t rank = 0; rank < ofElement.size(); ++rank)
    sums.push_back(
        {before[rank].sums < before[rank].elements, behind[rank].sums < behind[rank].elements});
  return sums;
}

void BorderTraffic::add(const BorderNeed &need, double numbers) {
  got[static_cast<size_t>(need.owner)] += numbers;
  given[static_cast<size_t>(need.source)] += numbers;
}

void BorderTraffic::addElements(std::span<const BorderNeed> needs, std::span<const BorderSums> sums,
                                std::span<const double> ofElement) {
  for (const BorderNeed &need : needs)
    if (!sums[static_cast<size_t>(need.source)].covers(need))
      add(need, static_cast<double>(need.elements) * ofElement[static_cast<size_t>(need.owner)]);
}

void BorderTraffic::addSums(std::span<const BorderNeed> needs, std::span<const BorderSums> sums,
                            std::span<const double> ofPosition) {
  for (const BorderNeed &need : needs)
    if (sums[static_cast<size_t>(need.source)].covers(need))
      add(need, static_cast<double>(need.positions) * ofPosition[static_cast<size_t>(need.owner)]);
}

double BorderTraffic::most() const {
  double most = 0;
  for (const std::vector<double> &numbers : {got, given})
    for (double number : numbers)
      most = std::max(most, number);
  return most;
}

} // namespace shardc
