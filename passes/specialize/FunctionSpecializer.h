// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One function for a set of devices.

#ifndef SHARDC_PASSES_SPECIALIZE_FUNCTIONSPECIALIZER_H
#define SHARDC_PASSES_SPECIALIZE_FUNCTIONSPECIALIZER_H

#include "passes/specialize/Devices.h"
#include "passes/specialize/RankValues.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Transforms/FoldUtils.h"

#include <deque>
#include <map>

namespace shardc {

/// Devices that run the same code.
using DeviceClass = std::vector<int64_t>;

/// The extents that differ between devices and that every clone must agree on from the start: those
/// in the layouts of the function's signature, and those of `dist.extent` ops of other meshes than
/// that of all ranks. None depends on a symbol.
std::vector<dist::ExtentsAttr> varyingExtents(mlir::func::FuncOp function, dist::MeshAttr world);

/// Devices by the values that they have of these extents, in order of their first device.
std::deque<DeviceClass> classifyDevices(llvm::ArrayRef<dist::ExtentsAttr> extents,
                                        Devices &devices);

class FunctionSpecializer {
public:
  /// All devices of a class agree on the varying extents.
  FunctionSpecializer(mlir::func::FuncOp function, const DeviceClass &devices, Devices &all,
                      RankValues &values)
      : function(function), devices(devices), all(all), values(values),
        folder(function.getContext()) {}

  /// Makes every shape static that does not depend on a symbol. Where devices of the class turn out
  /// to differ in the shape of some result, the class must be split: `split()` then holds its
  /// parts, and the function is of no use. An index that differs and is part of no shape (where a
  /// slice begins, say) stays as it is: a rank looks it up when it runs.
  mlir::LogicalResult run();

  const std::vector<DeviceClass> &split() const { return parts; }
  int64_t getNumFolded() const { return numFolded; }

private:
  void specializeArguments();
  mlir::LogicalResult specialize(mlir::Operation *op);
  /// What the index is on each device of the class, in order; nothing where it depends on more than
  /// the rank.
  std::optional<std::vector<int64_t>> valuesOf(mlir::Value index);
  /// Becomes a constant if it is the same on all devices of the class.
  void foldIndex(mlir::Operation *op);
  /// The index operands that differ between devices of the class.
  llvm::SmallVector<unsigned> varyingOperands(mlir::Operation *op);
  /// Devices of the class by the values of these operands.
  std::map<std::vector<int64_t>, DeviceClass> classify(mlir::Operation *op,
                                                       llvm::ArrayRef<unsigned> operands);
  /// Infers the results' types for all devices, with these operands; where they differ the class
  /// must be split.
  mlir::LogicalResult inferByDevice(mlir::Operation *op, llvm::ArrayRef<unsigned> varying);
  void setCrossing(mlir::Value result, mlir::Value input, dist::MeshAttr mesh);
  /// False where the class must be split.
  bool refine(dist::CollectiveOpInterface op);
  mlir::LogicalResult checkStatic();

  mlir::func::FuncOp function;
  const DeviceClass &devices;
  Devices &all;
  RankValues &values;
  mlir::OperationFolder folder;
  std::vector<DeviceClass> parts;
  int64_t numFolded = 0;
};

/// A clone of a function, and the devices that run it.
struct SpecializedFunction {
  mlir::func::FuncOp function;
  DeviceClass devices;
  bool ok = true; ///< not everything could be made static: is reported
};

/// Clones the function for each class, splitting classes as far as it takes; `prepare` changes a
/// clone first. All devices of a class must agree on the varying extents. What is wrong is emitted
/// for all classes at the end.
std::vector<SpecializedFunction> makeVariants(
    mlir::func::FuncOp function, std::deque<DeviceClass> classes, Devices &devices,
    const Mesh &world,
    llvm::function_ref<mlir::LogicalResult(mlir::func::FuncOp, const DeviceClass &)> prepare =
        nullptr,
    int64_t *numFolded = nullptr);

} // namespace shardc

#endif // SHARDC_PASSES_SPECIALIZE_FUNCTIONSPECIALIZER_H
