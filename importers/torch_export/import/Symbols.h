// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Symbolic sizes of an exported program as index values. Every expression becomes arithmetic on
// sizes of the function's arguments, at the start of the function and only once, so that equal
// sizes are one value.
#ifndef SHARDC_IMPORTERS_TORCH_EXPORT_IMPORT_SYMBOLS_H
#define SHARDC_IMPORTERS_TORCH_EXPORT_IMPORT_SYMBOLS_H

#include "importers/torch_export/program/Program.h"
#include "importers/torch_export/program/SymExpr.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringMap.h"

namespace shardc::torch_export {

class Symbols {
public:
  /// `entry` is the entry block of the function that is being built.
  explicit Symbols(mlir::Block *entry) : entry(entry) {}

  /// Says that dim `dim` of `argument` has the size `size`. Symbols are found in arguments of which
  /// a size is the symbol itself, or the symbol times or plus a constant.
  void bind(mlir::Value argument, unsigned dim, const SymInt &size);

  /// The size as a constant or an index value. Fails with a diagnostic at `loc` for expressions
  /// that are not integer arithmetic and for symbols that no argument determines.
  mlir::FailureOr<mlir::OpFoldResult> get(const SymInt &size, mlir::Location loc);
  /// Whether it does not.
  bool canGet(const SymInt &size) const;

private:
  mlir::Value build(mlir::OpBuilder &builder, const SymExpr &expr, mlir::Location loc);
  mlir::Value buildSymbol(mlir::OpBuilder &builder, llvm::StringRef name, mlir::Location loc);

  struct Source {
    mlir::Value argument;
    unsigned dim = 0;
    int64_t factor = 1, summand = 0; // size = factor * symbol + summand
  };

  mlir::Block *entry;
  mlir::Operation *last = nullptr; // of what has been built at the start of the function
  llvm::StringMap<Source> sources;
  llvm::StringMap<mlir::Value> symbols, expressions;
};

} // namespace shardc::torch_export

#endif // SHARDC_IMPORTERS_TORCH_EXPORT_IMPORT_SYMBOLS_H
