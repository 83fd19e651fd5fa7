// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The binary interface of kernels: how values, memory among them, are arguments of functions.

#ifndef SHARDC_LOWERING_HOST_KERNELARGUMENTS_H
#define SHARDC_LOWERING_HOST_KERNELARGUMENTS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

namespace shardc::host {

/// How a value is passed to a function: itself, or a memref as pointer to its first element
/// (`memref<T>`) and, as numbers, what its type does not say: offset, sizes and strides.
class PassedValue {
public:
  explicit PassedValue(mlir::Type valueType);

  /// The offset is part of the pointer: whoever calls has added it.
  void foldOffset() { offset = 0; }
  /// Appends the types of the arguments.
  void types(mlir::Type original, llvm::SmallVectorImpl<mlir::Type> &result) const;
  /// Appends the arguments for `value`.
  void take(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value,
            llvm::SmallVectorImpl<mlir::Value> &result) const;
  /// The value again, from arguments, which are taken off the front of the list.
  mlir::Value rebuild(mlir::OpBuilder &builder, mlir::Location loc, mlir::ValueRange &parts) const;

private:
  mlir::MemRefType type; // null: passed as it is
  llvm::SmallVector<int64_t> strides;
  int64_t offset = 0;
};

/// Gives a kernel over memory its binary interface: the frame of the run, the location of the
/// launch, and what its arguments are passed as, with offsets of 0. Its memory is marked as not
/// aliasing, and the kernel as outlined.
void flattenKernelSignature(mlir::func::FuncOp kernel);

/// Marks arguments that are memory as not aliasing.
void markPointers(mlir::func::FuncOp function);

/// The frame, as a value of a kernel that has or will have its binary interface.
mlir::Value frameIn(mlir::func::FuncOp kernel);

} // namespace shardc::host

#endif // SHARDC_LOWERING_HOST_KERNELARGUMENTS_H
