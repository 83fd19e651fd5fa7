// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The attention kernel: softmax(q k^T * scale + mask) v, tile by tile, with the online softmax of
// FlashAttention (Dao et al., 2022): the scores of a row never exist as a whole.
#ifndef SHARDC_LOWERING_CPU_ATTENTIONKERNEL_H
#define SHARDC_LOWERING_CPU_ATTENTIONKERNEL_H

#include "lowering/target/Limits.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace shardc::cpu {

struct AttentionOptions {
  double scale = 1;
  bool isCausal = false; ///< query i sees keys j <= i
  bool hasMask = false;
};

/// A kernel (`exec.kernel`) of these memref arguments: query [B, H, L, E], key [B, K, S, E], value
/// [B, K, S, F], with `hasMask` a mask [B, H, L, S], and the result [B, H, L, F], which it writes.
/// Sizes and strides may be dynamic; H is a multiple of K, and query head h uses key head h / (H /
/// K). The mask is bool (i8: not 0 takes part) or added to the scores. A query that sees no key
/// gets zeros, as in PyTorch.
///
/// Arithmetic is in f32, in f64 for f64; results are rounded once.
/// `limits` are those of the target: its vectors, and the registers that the inner products fill.
mlir::func::FuncOp buildAttentionKernel(mlir::Location loc, llvm::ArrayRef<mlir::Type> arguments,
                                        const AttentionOptions &options,
                                        const target::Limits &limits);

} // namespace shardc::cpu

#endif // SHARDC_LOWERING_CPU_ATTENTIONKERNEL_H
