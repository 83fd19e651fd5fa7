// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One function for a set of devices.

#ifndef SHARDC_PASSES_SPECIALIZE_FUNCTIONSPECIALIZER_H
#define SHARDC_PASSES_SPECIALIZE_FUNCTIONSPECIALIZER_H

#include "passes/specialize/Devices.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Transforms/FoldUtils.h"

#include <deque>

namespace shardc {

/// Devices that run the same code.
using DeviceClass = std::vector<int64_t>;

/// The extents that differ between devices and are written in the function: in its signature's
/// layouts and its `dist.extent` ops. None depends on a symbol.
std::vector<dist::ExtentsAttr> varyingExtents(mlir::func::FuncOp function);

/// Devices by the values that they have of these extents, in order of their first device.
std::deque<DeviceClass> classifyDevices(llvm::ArrayRef<dist::ExtentsAttr> extents,
                                        Devices &devices);

class FunctionSpecializer {
public:
  /// All devices of a class agree on the varying extents.
  FunctionSpecializer(mlir::func::FuncOp function, const DeviceClass &devices, Devices &all)
      : function(function), devices(devices), all(all), folder(function.getContext()) {}

  /// Makes everything static that does not depend on a symbol. Where devices of the class turn out
  /// to differ in the shape of some result, the class must be split: `split()` then holds its
  /// parts, and the function is of no use.
  mlir::LogicalResult run();

  const std::vector<DeviceClass> &split() const { return parts; }
  int64_t getNumFolded() const { return numFolded; }

private:
  void specializeArguments();
  mlir::LogicalResult specialize(mlir::Operation *op);
  void foldExtent(dist::ExtentOp op);
  void setCrossing(mlir::Value result, mlir::Value input, dist::MeshAttr mesh);
  /// False where the class must be split.
  bool refine(dist::CollectiveOpInterface op);
  mlir::LogicalResult checkStatic();

  mlir::func::FuncOp function;
  const DeviceClass &devices;
  Devices &all;
  mlir::OperationFolder folder;
  std::vector<DeviceClass> parts;
  int64_t numFolded = 0;
};

} // namespace shardc

#endif // SHARDC_PASSES_SPECIALIZE_FUNCTIONSPECIALIZER_H
