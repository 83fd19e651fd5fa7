// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An exchange among the ranks of a group of which each has an interval of a dim and wants one,
// where the bounds are known only when the program runs. Every rank sends to every other one what
// that lacks, which may be nothing.
#ifndef SHARDC_PASSES_LOCALIZE_INTERVALEXCHANGE_H
#define SHARDC_PASSES_LOCALIZE_INTERVALEXCHANGE_H

#include "dialects/aten/Emitter.h"
#include "passes/localize/LocalIndices.h"

namespace shardc {

/// The coordinate of some rank, by the position in the mesh of the rank that asks.
using CoordinateOf = llvm::function_ref<Coordinate(int64_t position)>;
/// An interval of that rank.
using IntervalOf = llvm::function_ref<IndexInterval(CoordinateOf)>;

class IntervalExchange {
public:
  /// Members of a group differ on the axes of `split`, and are in the order of what they have of a
  /// dim that is split so. `sizes` are those of tensors that take part, but for `dim`. A rank's
  /// peers are all members, or, where it is known that no interval goes farther, those up to
  /// `farthest` before and behind it, of which ranks at the ends lack some.
  IntervalExchange(LocalIndices indices, int64_t dim, const DimSplit &split,
                   llvm::ArrayRef<mlir::OpFoldResult> sizes, std::optional<int64_t> farthest);

  /// This rank's interval, and that of a peer.
  IndexInterval own(IntervalOf interval);
  IndexInterval of(IntervalOf interval, size_t peer);

  /// What this rank gets of the others, each part of them in order, and how many elements of the
  /// dim come from each peer: none from itself, and from one that it lacks.
  struct Arrived {
    mlir::Value value;
    llvm::SmallVector<mlir::Value> counts;
  };
  Arrived run(mlir::Value local, IntervalOf has, IntervalOf wants);

private:
  int64_t numMembers() const;
  size_t numPeers() const;
  Coordinate memberAt(int64_t position, int64_t member) const;
  int64_t indexAt(int64_t position) const;
  /// The member that a peer is of the rank at a position; none of them where it lacks one.
  int64_t memberOf(int64_t position, size_t peer) const;
  template <typename F> mlir::Value table(F &&numberAt);
  mlir::Value isOther(size_t peer);
  llvm::SmallVector<mlir::Value> byMember(llvm::ArrayRef<mlir::Value> ofPeers);
  mlir::Value dimFirst(mlir::Value value);
  mlir::Value dimBack(mlir::Value value);

  LocalIndices indices;
  Emitter emit;
  int64_t dim;
  const DimSplit &split;
  llvm::ArrayRef<mlir::OpFoldResult> sizes;
  std::optional<int64_t> farthest; ///< where that leaves fewer peers than members
};

} // namespace shardc

#endif // SHARDC_PASSES_LOCALIZE_INTERVALEXCHANGE_H
