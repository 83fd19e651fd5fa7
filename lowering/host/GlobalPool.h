// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Constant data of generated code: equal constants are one global.

#ifndef SHARDC_LOWERING_HOST_GLOBALPOOL_H
#define SHARDC_LOWERING_HOST_GLOBALPOOL_H

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringSet.h"

namespace shardc::host {

class GlobalPool {
public:
  explicit GlobalPool(mlir::ModuleOp module);

  /// Address of a zero-terminated string.
  mlir::Value string(mlir::OpBuilder &builder, mlir::Location loc, llvm::StringRef text);
  /// Address of an array of integers of `bits` bits; null for an empty one.
  mlir::Value integers(mlir::OpBuilder &builder, mlir::Location loc, llvm::ArrayRef<int64_t> values,
                       unsigned bits = 64);
  /// Address of a struct of numbers, of which each has the alignment of its type.
  mlir::Value record(mlir::OpBuilder &builder, mlir::Location loc, llvm::StringRef prefix,
                     llvm::ArrayRef<mlir::TypedAttr> fields);

private:
  mlir::Value global(mlir::OpBuilder &builder, mlir::Location loc, const std::string &name,
                     llvm::function_ref<void(mlir::OpBuilder &)> create);

  mlir::ModuleOp module;
  llvm::StringSet<> known;
};

} // namespace shardc::host

#endif // SHARDC_LOWERING_HOST_GLOBALPOOL_H
