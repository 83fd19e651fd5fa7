// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The attention kernels: softmax(q k^T * scale + mask) v, tile by tile, with the online softmax of
// FlashAttention (Dao et al., 2022), and its backward, which computes the weights of a tile again
// from the logsumexp of their rows: the scores of a row never exist as a whole.
#ifndef SHARDC_LOWERING_CPU_ATTENTIONKERNEL_H
#define SHARDC_LOWERING_CPU_ATTENTIONKERNEL_H

#include "lowering/host/SharedKernels.h"
#include "lowering/target/Limits.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace shardc::cpu {

using host::AttentionOptions;

/// A kernel (`exec.kernel`) of these arguments, memrefs but for one: query [B, H, L, E], key [B, K,
/// S, E], value [B, K, S, F], with `hasMask` a mask [B, H, L, S], with `hasFirst` an index, the
/// result [B, H, L, F] and with `hasLogsumexp` that of each query [B, H, L], which it writes. Sizes
/// and strides may be dynamic; H is a multiple of K, and query head h uses key head h / (H / K).
/// The mask is bool (i8: not 0 takes part) or added to the scores. A query that sees no key gets
/// zeros, as in PyTorch, and a logsumexp of 0.
///
/// Arithmetic is in f32, in f64 for f64; results are rounded once.
/// `limits` are those of the target: its vectors, and the registers that the inner products fill.
mlir::func::FuncOp buildAttentionKernel(mlir::Location loc, llvm::ArrayRef<mlir::Type> arguments,
                                        const AttentionOptions &options,
                                        const target::Limits &limits);

/// Likewise of: the cotangent of the result, query, key, value, result, logsumexp, with `hasMask`
/// the mask, with `hasFirst` the index, and the cotangents of query, key and value, which it
/// writes. On several threads by heads of keys; each sum has one order.
mlir::func::FuncOp buildAttentionBackwardKernel(mlir::Location loc,
                                                llvm::ArrayRef<mlir::Type> arguments,
                                                const AttentionOptions &options,
                                                const target::Limits &limits);

} // namespace shardc::cpu

#endif // SHARDC_LOWERING_CPU_ATTENTIONKERNEL_H
