// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The host program while it is made: which memory each tensor of an entry has. Shared by the files
// of `exec-assign-buffers`, one for each kind of op.

#ifndef SHARDC_LOWERING_MEMORY_HOSTPROGRAM_H
#define SHARDC_LOWERING_MEMORY_HOSTPROGRAM_H

#include "dialects/dist/Dist.h"
#include "lowering/memory/SizeInference.h"
#include "lowering/memory/StridedView.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/SymbolTable.h"

namespace shardc::memory {

class HostProgram {
public:
  HostProgram(mlir::func::FuncOp source, mlir::SymbolTable &symbols)
      : source(source), symbols(symbols), builder(source.getContext()) {}

  mlir::func::FuncOp source;
  mlir::SymbolTable &symbols;
  mlir::OpBuilder builder;
  /// Where tensors are, and index values of the new function.
  llvm::DenseMap<mlir::Value, StridedView> views;
  mlir::IRMapping scalars;
  /// Tokens of futures.
  llvm::DenseMap<mlir::Value, mlir::Value> tokens;
  llvm::DenseSet<mlir::Value> waited;

  IndexMath math(mlir::Location loc) { return {builder, loc, indices}; }
  /// Index values of the new function.
  IndexValues indices;
  /// A copy: `views` grows while ops are lowered.
  StridedView view(mlir::Value tensor) { return views.find(tensor)->second; }
  Sizes sizesOf(mlir::Value tensor) { return views.find(tensor)->second.sizes; }
  /// A size that is never negative, one value for equal ones.
  mlir::Value extent(mlir::Location loc, dist::ExtentsAttr extents);
  /// Sizes of a result of `op`, whose operands have views.
  mlir::FailureOr<Sizes> resultSizes(mlir::Operation *op, unsigned result);

  /// Memory to compute `tensor` in, of these sizes: where it is wanted (an output, a part of a
  /// concatenation), else a new buffer, whose order of dims is the one its users want.
  StridedView destination(mlir::Value tensor, const Sizes &sizes, bool mustBeDense);
  StridedView allocate(mlir::Location loc, mlir::Type element, const Sizes &sizes);
  /// The same elements in other sizes, of as many elements: a view where strides can express it,
  /// else a copy.
  StridedView reshaped(mlir::Location loc, const StridedView &view, const Sizes &sizes);
  /// The same elements, dense: the view itself, or a copy.
  StridedView dense(mlir::Location loc, const StridedView &view);
  void copy(mlir::Location loc, const StridedView &from, const StridedView &to);
  /// Launches a kernel whose arguments have the types of `operands` (without offsets).
  void launch(mlir::Location loc, mlir::func::FuncOp kernel, llvm::ArrayRef<mlir::Value> operands,
              llvm::StringRef name);

  /// What a result should be computed in, known before its op is lowered.
  struct Wish {
    int output = -1;                   // of the function
    mlir::Operation *concat = nullptr; // or part of a concatenation
    unsigned part = 0;
  };
  llvm::DenseMap<mlir::Value, Wish> wishes;
  llvm::SmallVector<mlir::Value> outputs; // memref arguments
  /// Results of concatenations that have memory before they are reached.
  StridedView concatBuffer(mlir::Operation *concat);
  StridedView concatPart(mlir::Operation *concat, unsigned part);
};

/// Fills `wishes`.
void planDestinations(HostProgram &program);

// Each lowers one op, and gives its results views.
mlir::LogicalResult lowerView(HostProgram &program, mlir::Operation *op);
mlir::LogicalResult lowerProduct(HostProgram &program, mlir::Operation *op);
mlir::LogicalResult lowerAttention(HostProgram &program, mlir::Operation *op);
mlir::LogicalResult lowerScatter(HostProgram &program, mlir::Operation *op);
mlir::LogicalResult lowerCustomOp(HostProgram &program, mlir::Operation *op);
mlir::LogicalResult lowerConcat(HostProgram &program, mlir::Operation *op);
mlir::LogicalResult lowerCollective(HostProgram &program, mlir::Operation *op);
mlir::LogicalResult lowerKernelCall(HostProgram &program, mlir::func::CallOp call);

} // namespace shardc::memory

#endif // SHARDC_LOWERING_MEMORY_HOSTPROGRAM_H
