// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the ranks of a program know of each other before it runs: the index values that each of them
// computes, and which values are the same on all ranks of a group.

#ifndef SHARDC_PASSES_COLLECTIVES_ANALYSIS_RANKVALUES_H
#define SHARDC_PASSES_COLLECTIVES_ANALYSIS_RANKVALUES_H

#include "passes/specialize/Devices.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/ArrayRef.h"

namespace shardc {

/// Index values by device, where they depend on nothing but the rank. Values are remembered: call
/// `forget` before an op is erased.
class RankValues {
public:
  RankValues(const Mesh &mesh, mlir::MLIRContext *context)
      : mesh(dist::MeshAttr::get(context, mesh)), devices(mesh) {}

  dist::MeshAttr getMesh() const { return mesh; }
  Devices &getDevices() { return devices; }

  /// One entry per device; empty where the value depends on more than the rank.
  llvm::ArrayRef<int64_t> of(mlir::Value value);
  llvm::ArrayRef<int64_t> of(mlir::OpFoldResult value);
  void forget(mlir::Operation *op);

  /// An index that is `values[d]` on device d: a constant where it is the same everywhere.
  mlir::OpFoldResult build(mlir::OpBuilder &builder, mlir::Location location,
                           llvm::ArrayRef<int64_t> values);

private:
  std::vector<int64_t> evaluate(mlir::Operation *op, unsigned result);

  dist::MeshAttr mesh;
  Devices devices;
  llvm::DenseMap<mlir::Value, std::vector<int64_t>> known;
  llvm::DenseMap<int64_t, std::vector<int64_t>> constants;
};

/// Which values all ranks of a group hold alike. A value's ranks are followed along mesh axes, and
/// along groups that are no mesh axes one by one: what is reduced or gathered over a group is the
/// same on its ranks, and so is what is computed from such values alone. Remembers as `RankValues`.
class Uniformity {
public:
  explicit Uniformity(RankValues &ranks) : ranks(ranks) {}

  bool isUniform(mlir::Value value, dist::GroupAttrInterface group);
  void forget(mlir::Operation *op);

private:
  /// A bit per mesh axis, then a bit per other group (those beyond the last bit are not followed).
  using Mask = uint64_t;
  static constexpr unsigned firstGroupBit = 32;

  Mask maskOf(dist::GroupAttrInterface group);
  Mask allAxes() const;
  Mask maskOf(mlir::Value value);
  Mask ofArgument(mlir::BlockArgument argument) const;
  Mask ofResult(mlir::OpResult result, Mask operands);
  Mask ofExtent(dist::ExtentsAttr extents);

  RankValues &ranks;
  llvm::DenseMap<mlir::Attribute, Mask> masks;
  llvm::DenseMap<mlir::Attribute, unsigned> bits;
  llvm::DenseMap<mlir::Value, Mask> known;
};

} // namespace shardc

#endif // SHARDC_PASSES_COLLECTIVES_ANALYSIS_RANKVALUES_H
