// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Whether ranks fetch what they need for what is made at the borders of their shards, or send to
// others what they make for them of what they have (core/BorderExchange.h), along each dim of an
// op that slides windows over shards: the way with which the fewest numbers move.
#ifndef SHARDC_PASSES_LOCALIZE_BORDERPLAN_H
#define SHARDC_PASSES_LOCALIZE_BORDERPLAN_H

#include "passes/localize/Halos.h"
#include "passes/localize/core/BorderExchange.h"

namespace shardc {

/// How ranks come to what windows at their borders make along a dim.
enum class BorderWay {
  Fetch, ///< all elements are fetched
  Sides, ///< on some sides sums are sent, made by ops of their own, so that nothing waits for them
  Whole, ///< on all sides sums are sent, made by one op over all positions that a rank touches
};

/// A dim of what an op reads, which becomes one of what it makes.
struct BorderDim {
  const HaloDim *halo; ///< not owned: of the op that is being localised
  int64_t read, made;  ///< the dims
  std::vector<BorderRank> ranks = {};
  std::vector<BorderNeed> needs = {};
  /// How many elements each rank has, its own and others, once all are fetched.
  llvm::SmallVector<int64_t> fetched = {};
  /// What there is to choose from; of ways that move as much, the first.
  llvm::SmallVector<BorderWay, 3> ways = {BorderWay::Fetch};
  BorderWay way = BorderWay::Fetch;
  std::vector<BorderSums> sums = {}; ///< where the way is Sides; else empty

  /// Finds the needs of ranks that differ on `axes`.
  void findNeeds(const Mesh &mesh, llvm::ArrayRef<unsigned> axes);
};

/// The sizes of a tensor's dims on every rank, of which unknown ones count as 1.
class LocalExtents {
public:
  LocalExtents(const Mesh &mesh, mlir::RankedTensorType global, const Layout *layout);

  void set(size_t position, int64_t dim, int64_t extent) { all[position][dim] = extent; }
  /// The most elements of a rank.
  double most() const;
  /// The product of the sizes of all dims but one, on each rank.
  std::vector<double> beside(int64_t dim) const;

private:
  llvm::SmallVector<llvm::SmallVector<int64_t>> all;
};

/// Sets the ways with which the busiest rank gets or gives the fewest numbers, in all exchanges
/// together. Of several dims one has sums of sides at most, as each would make three ops of one.
/// Others than the first ways must move less than `worth` times what those move. Returns how many
/// numbers fewer than with the first ways move.
double chooseBorderWays(const Mesh &mesh, llvm::MutableArrayRef<BorderDim> dims,
                        const LocalExtents &read, const LocalExtents &made, double worth = 1);

} // namespace shardc

#endif // SHARDC_PASSES_LOCALIZE_BORDERPLAN_H
