// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What files of the dialect share: parts of the text form that assembly formats cannot say, and
// checks of several ops.

#ifndef SHARDC_DIALECTS_EXEC_INTERNAL_H
#define SHARDC_DIALECTS_EXEC_INTERNAL_H

#include "dialects/exec/Exec.h"

namespace shardc::exec {

/// `all_reduce sum`: kinds that combine values are followed by how.
mlir::ParseResult parseCollectiveKind(mlir::OpAsmParser &parser, CollectiveKindAttr &kind,
                                      dist::ReductionAttr &reduction);
void printCollectiveKind(mlir::OpAsmPrinter &printer, mlir::Operation *op, CollectiveKindAttr kind,
                         dist::ReductionAttr reduction);

mlir::ParseResult parseKind(mlir::OpAsmParser &parser, ArgumentKindAttr &kind);
void printKind(mlir::OpAsmPrinter &printer, mlir::Operation *op, ArgumentKindAttr kind);

/// Whether a collective of this kind combines values.
bool reduces(CollectiveKind kind);

/// Whether two sizes may be equal when the program runs.
inline bool agree(int64_t x, int64_t y) {
  return mlir::ShapedType::isDynamic(x) || mlir::ShapedType::isDynamic(y) || x == y;
}

/// Row-major without gaps, as far as the type says it.
bool mayBeDense(mlir::MemRefType type);

/// Of an op that makes a dense buffer of its type with these sizes.
mlir::LogicalResult verifyDenseBuffer(mlir::Operation *op, mlir::MemRefType type,
                                      mlir::OperandRange sizes);

} // namespace shardc::exec

#endif // SHARDC_DIALECTS_EXEC_INTERNAL_H
