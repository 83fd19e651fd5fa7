// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the ranks of a program know of each other before it runs: the index values that each of them
// computes.

#ifndef SHARDC_PASSES_SPECIALIZE_RANKVALUES_H
#define SHARDC_PASSES_SPECIALIZE_RANKVALUES_H

#include "passes/specialize/Devices.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/ArrayRef.h"

namespace shardc {

/// Whether the extents follow from a size that is not known before the program runs.
bool dependsOnSymbol(dist::ExtentsAttr extents);

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

} // namespace shardc

#endif // SHARDC_PASSES_SPECIALIZE_RANKVALUES_H
