// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A function of training while it is built: a copy of the forward that gets inputs, states and
// results, and ops whose values have layouts.
#ifndef SHARDC_PASSES_TRAINING_STEPBUILDER_H
#define SHARDC_PASSES_TRAINING_STEPBUILDER_H

#include "dialects/aten/Emitter.h"
#include "dialects/dist/Dist.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringSet.h"

namespace shardc::training {

class StepBuilder {
public:
  /// Builds before the return of `function`, whose results stay the first ones.
  StepBuilder(mlir::func::FuncOp function, dist::MeshAttr mesh);

  Emitter &emitter() { return emit; }
  mlir::func::FuncOp getFunction() { return function; }

  /// A 0-dim input. Its name must be free.
  mlir::Value addInput(llvm::StringRef name, mlir::Type elementType);
  /// A state, whose name must be free. `initial`: each element before the first run.
  mlir::Value addState(llvm::StringRef name, mlir::RankedTensorType type, double initial,
                       bool isSaved);
  void addOutput(llvm::StringRef name, mlir::Value value);
  /// The new value of an argument, which gets the argument's type.
  void addUpdate(mlir::Value argument, mlir::Value value);

  /// The same value in another layout, be it without one so far.
  mlir::Value redistribute(mlir::Value value, const Layout &layout);
  /// 0-dim and replicated.
  mlir::Value replicate(mlir::Value value) { return redistribute(value, Layout(mesh.getValue())); }
  /// The sum of all elements as f32 (f64 of f64), replicated over the mesh, with each element
  /// counted once. Values of one layout share a reduction.
  mlir::Value sumOfAll(llvm::ArrayRef<mlir::Value> tensors);

  /// What was built so far without a layout stays so: it is placed around the rest.
  void leaveOpen();
  /// Gives the results of all ops since the last call a layout: that of the first operand of their
  /// shape, or replicated where they are 0-dim.
  void layOut();
  /// Writes arguments and results into the function. Fails after an error for each name that is not
  /// free.
  llvm::LogicalResult finish();

private:
  void claim(llvm::StringSet<> &names, llvm::StringRef name, llvm::StringRef what);
  mlir::RankedTensorType typed(mlir::RankedTensorType type, const Layout &layout) const;
  mlir::Value addArgument(mlir::RankedTensorType type,
                          llvm::ArrayRef<mlir::NamedAttribute> attributes);
  void addResult(mlir::Value value, llvm::ArrayRef<mlir::NamedAttribute> attributes);

  mlir::func::FuncOp function;
  dist::MeshAttr mesh;
  mlir::Operation *end; ///< the return
  mlir::OpBuilder builder;
  Emitter emit;
  mlir::Operation *lastLaidOut; ///< null: none
  llvm::StringSet<> argumentNames, outputNames;
  llvm::SmallVector<mlir::Attribute> argumentAttributes, resultAttributes;
  llvm::SmallVector<mlir::Value> results;
  bool isWrong = false;
};

} // namespace shardc::training

#endif // SHARDC_PASSES_TRAINING_STEPBUILDER_H
