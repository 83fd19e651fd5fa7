// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What ops have in common that write where aten.gather and aten.index read.
#ifndef SHARDC_DIALECTS_ATEN_INDEXEDWRITES_H
#define SHARDC_DIALECTS_ATEN_INDEXEDWRITES_H

#include "dialects/aten/Inference.h"
#include "dialects/sharding/RuleBuilder.h"

namespace shardc::aten {

/// The shape that `indices` of dims `at` read from a table.
llvm::FailureOr<Shape> inferIndexed(Inference &inference, mlir::Value self,
                                    mlir::ValueRange indices, llvm::ArrayRef<int64_t> at);

/// self, with `values` written to what the indices name. InferIndexing.cpp
llvm::LogicalResult inferIndexedWrite(Inference &inference, mlir::Value self,
                                      mlir::ValueRange indices, mlir::Value values,
                                      llvm::ArrayRef<int64_t> at);
/// self, with `src` written along `dim`.
llvm::LogicalResult inferScatter(Inference &inference, mlir::Value self, int64_t dim,
                                 mlir::Value index, mlir::Value src);

/// Rules of ops with the operands self, indices, values, and self, index, src. Of the positions, ranks
/// may have a part each, where their results are partial by `reduction`. RulesIndexing.cpp
RuleBuilder indexedWriteRule(mlir::Operation *op, llvm::ArrayRef<int64_t> at,
                             std::optional<Reduction> reduction);
RuleBuilder scatterRule(mlir::Operation *op, int64_t dim, std::optional<Reduction> reduction);

} // namespace shardc::aten

#endif // SHARDC_DIALECTS_ATEN_INDEXEDWRITES_H
