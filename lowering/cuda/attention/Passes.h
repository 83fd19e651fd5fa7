// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Attention on CUDA devices.

#ifndef SHARDC_LOWERING_CUDA_ATTENTION_PASSES_H
#define SHARDC_LOWERING_CUDA_ATTENTION_PASSES_H

#include "dialects/interfaces/PassStatistic.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace shardc::cuda {

#define GEN_PASS_DECL
#include "lowering/cuda/attention/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "lowering/cuda/attention/Passes.h.inc"

} // namespace shardc::cuda

#endif // SHARDC_LOWERING_CUDA_ATTENTION_PASSES_H
