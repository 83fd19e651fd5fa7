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
  /// dim that is split so. `sizes` are those of tensors that take part, but for `dim`.
  IntervalExchange(LocalIndices indices, int64_t dim, const DimSplit &split,
                   llvm::ArrayRef<mlir::OpFoldResult> sizes)
      : indices(indices), emit(this->indices.getBuilder(), this->indices.getLoc()), dim(dim),
        split(split), sizes(sizes) {}

  size_t numMembers() const;
  /// This rank's interval, and that of a member of its group.
  IndexInterval own(IntervalOf interval);
  IndexInterval of(IntervalOf interval, size_t member);

  /// What this rank gets of the others, each part of them in order, and how many elements of the
  /// dim come from each member: none from itself.
  struct Arrived {
    mlir::Value value;
    llvm::SmallVector<mlir::Value> counts;
  };
  Arrived run(mlir::Value local, IntervalOf has, IntervalOf wants);

private:
  Coordinate memberAt(int64_t position, size_t member) const;
  size_t indexAt(int64_t position) const;
  template <typename F> mlir::Value table(F &&numberAt);
  mlir::Value isOther(size_t member);
  mlir::Value sum(llvm::ArrayRef<mlir::Value> values);
  mlir::Value unitSize();
  mlir::RankedTensorType flatType(mlir::Value length, mlir::Type elementType) const;
  mlir::ArrayAttr extentsOf(llvm::ArrayRef<mlir::Value> lengths,
                            llvm::SmallVectorImpl<mlir::Value> &operands);
  mlir::Value dimFirst(mlir::Value value);
  mlir::Value dimBack(mlir::Value value);

  LocalIndices indices;
  Emitter emit;
  int64_t dim;
  const DimSplit &split;
  llvm::ArrayRef<mlir::OpFoldResult> sizes;
};

} // namespace shardc

#endif // SHARDC_PASSES_LOCALIZE_INTERVALEXCHANGE_H
