// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Building aten ops from the arguments of an ATen call, by name.
#ifndef SHARDC_DIALECTS_ATEN_SCHEMA_H
#define SHARDC_DIALECTS_ATEN_SCHEMA_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpDefinition.h"

namespace shardc::aten {

/// One argument of an op. An argument of ATen type SymInt or SymInt[] named N appears twice: as the
/// attribute `static_N` and as the optional or variadic operand N.
struct SchemaArgument {
  enum Kind { Required, Optional, Variadic, Attribute, OptionalAttribute };
  llvm::StringLiteral name;
  Kind kind;
  llvm::StringLiteral storage; ///< attributes: C++ class, such as "::mlir::DenseI64ArrayAttr"
  bool isOperand() const { return kind <= Variadic; }
};

} // namespace shardc::aten

#include "dialects/aten/SchemaInterface.h.inc"

namespace shardc::aten {

/// The values of one operand: none (optional and absent), one, or a list.
struct NamedOperand {
  llvm::StringRef name;
  llvm::SmallVector<mlir::Value> values;
};

/// Builds `aten.NAME` with inferred result types. Operands and attributes are found by name; absent
/// attributes take their defaults. Fails with a diagnostic at `loc` for an op or a name that does
/// not exist, a missing operand or attribute, and whatever inference or the verifier rejects.
/// `name` is the full name with the dialect's prefix.
mlir::FailureOr<mlir::Operation *> buildOp(mlir::OpBuilder &builder, mlir::Location loc,
                                           llvm::StringRef name,
                                           llvm::ArrayRef<NamedOperand> operands,
                                           llvm::ArrayRef<mlir::NamedAttribute> attributes);

/// A 0-dim constant. A float is rounded to the element type, an integer or bool must fit in it.
mlir::Value buildScalar(mlir::OpBuilder &builder, mlir::Location loc, mlir::Type elementType,
                        double value);
mlir::Value buildScalar(mlir::OpBuilder &builder, mlir::Location loc, mlir::Type elementType,
                        int64_t value);
/// A tensor filled with a 0-dim tensor's element: a constant where all is known, else an expand.
mlir::Value buildFull(mlir::OpBuilder &builder, mlir::Value scalar,
                      llvm::ArrayRef<mlir::OpFoldResult> size);

} // namespace shardc::aten

#endif // SHARDC_DIALECTS_ATEN_SCHEMA_H
