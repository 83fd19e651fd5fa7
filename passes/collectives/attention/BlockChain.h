// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Views between a collective that moves blocks of rows and an op that reads them: the same views of
// one block.

#ifndef SHARDC_PASSES_COLLECTIVES_ATTENTION_BLOCKCHAIN_H
#define SHARDC_PASSES_COLLECTIVES_ATTENTION_BLOCKCHAIN_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/Operation.h"

namespace shardc {

/// A number for each device.
using DeviceTable = llvm::SmallVector<int64_t>;

/// The dim of an op's operand 0 that is dim `dim` of its result, if every index along it has the
/// elements that it had before: views, repetitions of other dims, copies, casts.
std::optional<int64_t> dimBefore(mlir::Operation *op, int64_t dim);

/// A tensor and what is made of it by such ops.
struct BlockChain {
  mlir::Value source;
  int64_t sourceDim = 0; ///< along which there are blocks
  struct View {
    mlir::Operation *op;
    int64_t dim; ///< of the result
  };
  llvm::SmallVector<View> views; ///< the first one is that of `source`

  /// Back from a value as far as there are such ops.
  static BlockChain to(mlir::Value value, int64_t dim);

  /// The same of a block, which has `length` rows; `fixed`: their number, or kDynamic.
  mlir::Value apply(mlir::OpBuilder &builder, mlir::Value block, mlir::OpFoldResult length,
                    int64_t fixed) const;
};

} // namespace shardc

#endif // SHARDC_PASSES_COLLECTIVES_ATTENTION_BLOCKCHAIN_H
