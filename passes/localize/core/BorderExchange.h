// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What ranks need of each other where windows cross the borders of their shards, and whether the
// elements move or what the windows make of them. A sum over a window, or the largest element of
// it, can be made of parts: then the rank that has the elements sends one number for each position
// of another rank whose window has some of them, which is less where few windows cross a border, as
// those with a stride do, or where results have fewer channels than the image.
#ifndef SHARDC_PASSES_LOCALIZE_CORE_BORDEREXCHANGE_H
#define SHARDC_PASSES_LOCALIZE_CORE_BORDEREXCHANGE_H

#include "dialects/sharding/DimSplit.h"

#include <span>
#include <vector>

namespace shardc {

/// One rank along a dim of an image and the dim of a window's positions in it.
struct BorderRank {
  Run elements;  ///< that it has
  Run positions; ///< that it has
  Run covered;   ///< elements from the first to the last that its positions cover
  Run touched;   ///< positions from the first to the last whose windows have some of its elements

  /// What it touches of the positions of ranks before and behind it. To a rank without positions,
  /// whose run is {0, 0}, all others are behind it.
  Run before() const;
  Run behind() const;
};

/// What the positions of one rank need of the elements of another one.
struct BorderNeed {
  int64_t source = 0, owner = 0; ///< of the elements and of the positions
  int64_t elements = 0;          ///< of the source that the owner's positions cover
  int64_t positions = 0;         ///< of the owner that have some of them
  bool isBehind = false;         ///< the owner's positions are behind those of the source
};

/// Of ranks that are in one of the `groups`, which are lists of numbers of ranks.
std::vector<BorderNeed> borderNeeds(std::span<const BorderRank> ranks,
                                    std::span<const std::vector<int64_t>> groups);

/// On which sides a rank sends what it makes for positions of others. On the other sides, these
/// fetch its elements.
struct BorderSums {
  bool before = false, behind = false;

  bool covers(const BorderNeed &need) const { return need.isBehind ? behind : before; }
  bool operator==(const BorderSums &) const = default;
};

/// For each side of each rank what is less. `ofElement` and `ofPosition` are how many numbers an
/// element and a position stand for on each rank.
std::vector<BorderSums> cheapestSums(std::span<const BorderNeed> needs,
                                     std::span<const double> ofElement,
                                     std::span<const double> ofPosition);

/// Numbers that each rank gets and gives.
class BorderTraffic {
public:
  explicit BorderTraffic(size_t ranks) : got(ranks), given(ranks) {}

  void addElements(std::span<const BorderNeed> needs, std::span<const BorderSums> sums,
                   std::span<const double> ofElement);
  void addSums(std::span<const BorderNeed> needs, std::span<const BorderSums> sums,
               std::span<const double> ofPosition);
  /// The most that a rank gets or gives.
  double most() const;

private:
  void add(const BorderNeed &need, double numbers);

  std::vector<double> got, given;
};

} // namespace shardc

#endif // SHARDC_PASSES_LOCALIZE_CORE_BORDEREXCHANGE_H
