// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The backward of a function, op by op from the last to the first.
#ifndef SHARDC_PASSES_GRADIENT_BACKWARD_H
#define SHARDC_PASSES_GRADIENT_BACKWARD_H

#include "dialects/dist/Dist.h"
#include "dialects/interfaces/DifferentiableOpInterface.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseSet.h"

namespace shardc {

class Backward final : private GradientContext {
public:
  /// `wrt`: arguments whose gradients are asked for. `outputs`: results of the function that have a
  /// cotangent. `mesh`: of the program, on which the backward computes; none where nothing is
  /// placed.
  Backward(mlir::func::FuncOp function, dist::MeshAttr mesh, llvm::ArrayRef<unsigned> wrt,
           llvm::ArrayRef<unsigned> outputs);

  /// Whether a value depends on what is differentiated, and the outputs depend on it, with a
  /// derivative that is not zero everywhere.
  bool isOnPath(mlir::Value value) const { return path.contains(value); }
  /// The same with derivatives that are zero everywhere: what has a gradient, be it zeros.
  bool isReached(mlir::Value value) const { return pathThroughZeros.contains(value); }
  /// An error at each op on the way that has no derivative.
  llvm::LogicalResult checkOps();

  /// Sets the cotangent of an output, ones unless given; several of one value are added.
  void seed(unsigned output, mlir::Value cotangent = {});
  /// Appends the backward to the function, before its return. Fails after all diagnostics; an op
  /// without a derivative does not keep those before it from saying what they refuse.
  llvm::LogicalResult build();

  /// Null where the outputs do not depend on the argument; zeros where they do through zero
  /// derivatives alone, as autograd has it.
  mlir::Value gradientOf(unsigned argument);
  int64_t getNumDifferentiated() const { return numDifferentiated; }

private:
  // Of the op that is being differentiated.
  mlir::Value cotangent(unsigned result) override;
  bool isNeeded(unsigned operand) const override;
  void add(unsigned operand, mlir::Value cotangent) override;
  void replace(mlir::Operation *other) override;
  mlir::Location getLoc() const override;
  mlir::InFlightDiagnostic refuse() override;

  void accumulate(mlir::Value value, mlir::Value cotangent);
  /// Whether a value has a layout on another mesh than the program's.
  bool isElsewhere(mlir::Value value) const;
  mlir::Value addCotangents(mlir::Value value, mlir::Value first, mlir::Value second);
  mlir::Value addElsewhere(mlir::RankedTensorType type, mlir::Value first, mlir::Value second);
  mlir::Value fitTo(mlir::Value value, mlir::Value cotangent);
  void wish(mlir::Value value, mlir::Value cotangent);
  mlir::Value filledLike(mlir::Value value, double number);

  /// What depends on the arguments that are differentiated, and what the outputs depend on.
  struct Path {
    Path(mlir::func::FuncOp function, llvm::ArrayRef<unsigned> wrt,
         llvm::ArrayRef<unsigned> outputs, bool throughZeros);

    bool contains(mlir::Value value) const {
      return active.contains(value) && useful.contains(value);
    }
    llvm::DenseSet<mlir::Value> active, useful;
  };

  mlir::func::FuncOp function;
  dist::MeshAttr mesh;
  mlir::OpBuilder builder;
  llvm::SmallPtrSet<mlir::Operation *, 32> forward;
  Path path, pathThroughZeros;
  llvm::DenseMap<mlir::Value, mlir::Value> cotangents;
  mlir::Operation *op = nullptr;
  bool refused = false;
  int64_t numDifferentiated = 0;
};

} // namespace shardc

#endif // SHARDC_PASSES_GRADIENT_BACKWARD_H
