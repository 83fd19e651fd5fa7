// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which operands of a concatenation count.

#ifndef SHARDC_DIALECTS_ATEN_CONCATENATION_H
#define SHARDC_DIALECTS_ATEN_CONCATENATION_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/ValueRange.h"
#include "llvm/ADT/STLExtras.h"

namespace shardc::aten {

/// The rank that operands of a `cat` have, apart from those that are skipped.
inline int64_t rankOfCat(mlir::ValueRange tensors) {
  for (mlir::Type type : tensors.getTypes())
    if (int64_t rank = mlir::cast<mlir::RankedTensorType>(type).getRank(); rank != 1)
      return rank;
  return 1;
}

/// PyTorch's `cat` skips vectors without elements among tensors of another rank. They count for the
/// element type only. A vector of dynamic size can only be one of them there.
inline bool isSkippedByCat(mlir::Value operand, int64_t rank) {
  auto type = mlir::cast<mlir::RankedTensorType>(operand.getType());
  return rank != 1 && type.getRank() == 1 && (type.isDynamicDim(0) || type.getDimSize(0) == 0);
}

/// The operands of a `cat` that are not skipped, in order.
inline llvm::SmallVector<mlir::Value> partsOfCat(mlir::ValueRange tensors) {
  int64_t rank = rankOfCat(tensors);
  return llvm::filter_to_vector(tensors,
                                [&](mlir::Value part) { return !isSkippedByCat(part, rank); });
}

} // namespace shardc::aten

#endif // SHARDC_DIALECTS_ATEN_CONCATENATION_H
