// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The random state of a program that is imported: seed and offset come in as states, each op that
// draws numbers takes an offset of its own, and what all of them have drawn is added to the state
// at the end. So the ops are functions of seed and offset, which may be computed twice or once.
#ifndef SHARDC_IMPORTERS_TORCH_EXPORT_IMPORT_RANDOMNUMBERS_H
#define SHARDC_IMPORTERS_TORCH_EXPORT_IMPORT_RANDOMNUMBERS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"

namespace shardc::torch_export {

class RandomNumbers {
public:
  explicit RandomNumbers(mlir::OpBuilder &builder) : builder(builder) {}

  /// A tensor of numbers (see `aten.random`). The first one adds arguments to the block.
  mlir::Value draw(mlir::Location loc, llvm::StringRef distribution, mlir::Type elementType,
                   llvm::ArrayRef<mlir::OpFoldResult> sizes);

  /// Gives the arguments that were added, which are the last ones, their attributes. Fails after an
  /// error where the model has a tensor of the name of one of them.
  mlir::LogicalResult describeArguments(mlir::func::FuncOp function);
  /// Adds the offset behind the program as a result, with its attributes, if anything was drawn.
  void writeBack(mlir::Location loc,
                 llvm::function_ref<void(mlir::Value, mlir::DictionaryAttr)> add);

private:
  bool areUsed() const { return seed != nullptr; }
  /// The offset of the next op.
  mlir::Value next(mlir::Location loc);

  mlir::OpBuilder &builder;
  mlir::Value seed, offset; // null before the first draw
  int64_t fixed = 0;        // what was drawn so far, where sizes are known
  mlir::Value symbolic;     // the rest, a 0-dim tensor; null where all are known
};

} // namespace shardc::torch_export

#endif // SHARDC_IMPORTERS_TORCH_EXPORT_IMPORT_RANDOMNUMBERS_H
