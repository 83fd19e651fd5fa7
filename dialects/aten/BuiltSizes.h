// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sizes as constants and index values of a program, built where they are needed.
#ifndef SHARDC_DIALECTS_ATEN_BUILTSIZES_H
#define SHARDC_DIALECTS_ATEN_BUILTSIZES_H

#include "dialects/interfaces/SizeAlgebra.h"
#include "mlir/IR/Builders.h"

namespace shardc::aten {

/// Arithmetic is built at the builder; sizes of tensors that types leave open are `aten.sym_size`,
/// built when they are used.
class BuiltSizes : public SizeAlgebra {
public:
  BuiltSizes(mlir::OpBuilder &builder, mlir::Location loc) : builder(builder), loc(loc) {}

  llvm::SmallVector<Dim> sizesOf(mlir::Value tensor) override;
  Dim valueOf(mlir::Value index) override;

  Dim of(mlir::OpFoldResult size);
  Dim of(mlir::Value tensor, int64_t dim) { return sizesOf(tensor)[dim]; }
  /// An attribute or a value of type index; null for what is not known.
  mlir::OpFoldResult get(Dim dim);
  /// A value, of what is known.
  mlir::Value value(Dim dim);

protected:
  Dim compute(Operation operation, Dim a, Dim b) override;

private:
  struct Entry {
    mlir::Value value;  ///< an index; null until the size is used
    mlir::Value tensor; ///< whose dim `dim` it is otherwise
    int64_t dim = 0;
  };

  mlir::OpBuilder &builder;
  mlir::Location loc;
  llvm::SmallVector<Entry> entries;
};

} // namespace shardc::aten

#endif // SHARDC_DIALECTS_ATEN_BUILTSIZES_H
