// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/training/PrecisionPolicy.h"

#include "dialects/aten/Fourier.h"
#include "dialects/aten/Grouped.h"
#include "dialects/aten/Pairs.h"
#include "dialects/aten/Scans.h"
#include "dialects/aten/Spatial.h"

using namespace mlir;
using namespace shardc::aten;

namespace shardc::training {

PrecisionClass precisionOf(Operation *op) {
  // Autocast leaves complex tensors alone.
  if (op->hasAttr(kOfComplexAttr))
    return PrecisionClass::Wide;
  // Products, as in AT_FORALL_LOWER_PRECISION_FP of PyTorch. Those with matrices that are looked up
  // for each row were products of matrices.
  if (isa<LinearOp, MatmulOp, MmOp, BmmOp, AddmmOp, BaddbmmOp, TensordotOp, ConvolutionOp,
          ScaledDotProductAttentionOp, ScaledDotProductFlashAttentionOp, IndexedMmOp,
          IndexedOuterOp>(op))
    return PrecisionClass::Short;
  // As in AT_FORALL_FP32 and AT_FORALL_FP32_SET_OPT_DTYPE.
  if (isa<AcosOp, AsinOp, CoshOp, ErfinvOp, ExpOp, Expm1Op, LogOp, Log10Op, Log2Op, Log1pOp,
          ReciprocalOp, RsqrtOp, SinhOp, TanOp, PowOp, SoftplusOp, LayerNormOp, RmsNormOp,
          GroupNormOp, LogsumexpOp, SoftmaxOp, LogSoftmaxOp, SumOp, ProdOp, CumsumOp, CumprodOp,
          VectorNormOp>(op))
    return PrecisionClass::Wide;
  // PyTorch rounds these; they are the statistics of norms and losses that an export has taken
  // apart, which PyTorch computes in f32 where they are whole.
  if (isa<MeanOp, VarOp, BatchNormOp>(op))
    return PrecisionClass::Wide;
  // Complex numbers have parts of f32 or f64.
  if (isa<FftC2cOp, FftR2cOp, FftC2rOp>(op))
    return PrecisionClass::Wide;
  return PrecisionClass::Promote;
}

} // namespace shardc::training
