// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which positions of a dim matter: those of a result that other ops read, and those of an operand
// that may be other than zero.
#ifndef SHARDC_DIALECTS_ATEN_KEPTPOSITIONS_H
#define SHARDC_DIALECTS_ATEN_KEPTPOSITIONS_H

#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseMap.h"

namespace shardc::aten {

/// Positions of a dim, as intervals [begin, end) that ascend and do not touch each other.
class PositionSet {
public:
  using Interval = std::pair<int64_t, int64_t>;

  static PositionSet all(int64_t size);
  llvm::ArrayRef<Interval> intervals() const { return list; }
  bool empty() const { return list.empty(); }
  int64_t count() const;
  bool isAll(int64_t size) const { return count() == size; }

  void add(int64_t begin, int64_t end);
  void add(const PositionSet &other, int64_t shift = 0);
  /// Those in [begin, end), counted from `begin`.
  PositionSet within(int64_t begin, int64_t end) const;
  PositionSet intersect(const PositionSet &other) const;
  /// Each position, in order.
  llvm::SmallVector<int64_t> positions() const;

  bool operator==(const PositionSet &) const = default;

private:
  llvm::SmallVector<Interval, 2> list;
};

/// Looks at the ops around values, which must not change meanwhile. Dims must have a known size.
class KeptPositions {
public:
  /// Positions of the dim that some op reads.
  PositionSet read(mlir::Value value, int64_t dim);
  /// Positions of the dim where some element may be other than zero.
  PositionSet filled(mlir::Value value, int64_t dim);

private:
  using Place = std::pair<mlir::Value, int64_t>;
  PositionSet readBy(mlir::OpOperand &use, int64_t dim, int64_t size);
  PositionSet filledBy(mlir::Value value, int64_t dim);

  llvm::DenseMap<Place, PositionSet> knownRead, knownFilled;
};

/// The tensor without all other positions of the dim: where it is made of parts, made of those that
/// are left of them.
mlir::Value takePositions(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value,
                          int64_t dim, const PositionSet &positions);
/// The reverse: a dim of `size`, with zeros at all other positions.
mlir::Value spreadPositions(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value,
                            int64_t dim, const PositionSet &positions, int64_t size);

/// Slices of `value` read the parts that it is made of.
void forwardSlices(mlir::Value value);

} // namespace shardc::aten

#endif // SHARDC_DIALECTS_ATEN_KEPTPOSITIONS_H
