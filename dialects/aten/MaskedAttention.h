// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Attention with a mask, as one op or written out: softmax(query key^T * scale + mask) value.
#ifndef SHARDC_DIALECTS_ATEN_MASKEDATTENTION_H
#define SHARDC_DIALECTS_ATEN_MASKEDATTENTION_H

#include "dialects/aten/MaskKeys.h"
#include "mlir/IR/Operation.h"

namespace shardc::aten {

struct MaskedAttention {
  mlir::Operation *op = nullptr; ///< its first result is the attention's
  mlir::Value query, key, value; ///< [..., positions, E]
  bool isKeyTransposed = false;  ///< the key is [..., E, positions]
  bool isGrouped = false;        ///< several heads of queries may share one of keys
  llvm::SmallVector<AttentionMask, 2> masks;
  /// What scores are multiplied with, in order: products and quotients whose operand `scalar` has
  /// one element; none for one op, which has its scale.
  struct Scale {
    mlir::Operation *op;
    unsigned scalar;
  };
  llvm::SmallVector<Scale, 2> scales;
  std::optional<double> scale;

  int64_t numPositions() const;
};

/// Nothing where `op` is none, where its mask is none of known sizes, or where something else reads
/// what lies between its parts.
std::optional<MaskedAttention> matchMaskedAttention(mlir::Operation *op);

} // namespace shardc::aten

#endif // SHARDC_DIALECTS_ATEN_MASKEDATTENTION_H
