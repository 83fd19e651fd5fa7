// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Numbers that differ from rank to rank, as index values: extents and offsets of shards, and the
// arithmetic on them. What is the same everywhere is a constant; what is known for every rank is a
// `dist.extent` with a split or a table; what depends on a symbolic size is computed when the
// program runs.
#ifndef SHARDC_PASSES_LOCALIZE_LOCALINDICES_H
#define SHARDC_PASSES_LOCALIZE_LOCALINDICES_H

#include "dialects/dist/Dist.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Builders.h"

namespace shardc {

/// A global size: an expression over symbols, or an index value where none is known.
struct GlobalSize {
  dist::SizeAttr size; ///< null: see `value`
  mlir::Value value;   ///< used where `size` is null

  /// The size as a number; kDynamic where it is symbolic.
  int64_t fixed() const { return size ? size.getConstant().value_or(kDynamic) : kDynamic; }
};

/// One axis' share of what the axes outside it leave of a dim (see DimSplit.h): `outer` splits the
/// dim before it, `split` is its own. `size` is the dim's global size.
struct AxisShare {
  GlobalSize size;
  DimSplit outer;
  AxisSplit split;
};

/// Half-open, of indices along one dim.
struct IndexInterval {
  mlir::Value begin, end;
};

class LocalIndices {
public:
  LocalIndices(mlir::OpBuilder &builder, mlir::Location loc, dist::MeshAttr mesh)
      : builder(builder), loc(loc), mesh(mesh) {}

  // Arithmetic, folded where both sides are constants.
  mlir::Value constant(int64_t value);
  mlir::Value add(mlir::Value lhs, mlir::Value rhs);
  mlir::Value sub(mlir::Value lhs, mlir::Value rhs);
  mlir::Value mul(mlir::Value lhs, mlir::Value rhs);
  mlir::Value ceilDiv(mlir::Value lhs, mlir::Value rhs);
  mlir::Value floorDiv(mlir::Value lhs, mlir::Value rhs);
  mlir::Value min(mlir::Value lhs, mlir::Value rhs);
  mlir::Value max(mlir::Value lhs, mlir::Value rhs);
  mlir::Value sum(llvm::ArrayRef<mlir::Value> values);

  /// `values[p]` at mesh position p. One constant where all are equal; negative values are allowed.
  mlir::Value table(llvm::ArrayRef<int64_t> values);
  /// This rank's coordinate on an axis.
  mlir::Value axisIndex(unsigned axis);
  /// This rank's position among the ranks that differ on these axes only (first axis slowest).
  mlir::Value groupIndex(llvm::ArrayRef<unsigned> axes);

  /// The size itself.
  mlir::Value global(const GlobalSize &size);
  /// Elements of a dim on this rank.
  mlir::Value extent(const GlobalSize &size, const DimSplit &split);
  /// Global index of the first element on this rank, for a split of one block; the size where the
  /// rank holds nothing. Null where `split` has blocks.
  mlir::Value offset(const GlobalSize &size, const DimSplit &split);

  /// Where coordinate `r` of the share's axis begins and ends in one block of what the outer axes
  /// leave to this rank; without `r`, this rank's own coordinate.
  mlir::Value begin(const AxisShare &share, std::optional<int64_t> r = std::nullopt);
  mlir::Value end(const AxisShare &share, std::optional<int64_t> r = std::nullopt);
  mlir::Value length(const AxisShare &share, std::optional<int64_t> r = std::nullopt);
  /// Elements in one block of what the outer axes leave to this rank.
  mlir::Value blockSize(const AxisShare &share);

  /// What the rank with the coordinate that `coordinateOf` says of each position of the mesh has of
  /// a dim, which is in one piece on every rank: to find what another rank has, a position is given
  /// that rank's coordinate.
  IndexInterval interval(const GlobalSize &size, const DimSplit &split,
                         llvm::function_ref<Coordinate(int64_t)> coordinateOf);
  /// What two intervals have in common, relative to the begin of the first. It lies in the first
  /// even where it is empty.
  IndexInterval within(const IndexInterval &held, const IndexInterval &wanted);
  mlir::Value lengthOf(const IndexInterval &interval) { return sub(interval.end, interval.begin); }

  mlir::OpBuilder &getBuilder() { return builder; }
  mlir::Location getLoc() const { return loc; }
  dist::MeshAttr getMesh() const { return mesh; }

private:
  enum class Bound { Begin, End, Length };
  mlir::Value bound(const AxisShare &share, std::optional<int64_t> r, Bound which);
  mlir::Value extentOp(dist::ExtentsAttr extents);

  mlir::OpBuilder &builder;
  mlir::Location loc;
  dist::MeshAttr mesh;
};

} // namespace shardc

#endif // SHARDC_PASSES_LOCALIZE_LOCALINDICES_H
