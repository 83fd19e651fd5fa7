// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The matrix products of generated code (shardrt_gemm), split over a rank's threads.
#ifndef SHARDC_RUNTIME_GEMM_GEMM_H
#define SHARDC_RUNTIME_GEMM_GEMM_H

#include "runtime/abi/shardrt_program.h"
#include "runtime/gemm/Blas.h"
#include "runtime/threads/ThreadPool.h"

namespace shardc::rt {

/// Throws Failure if the description is not valid.
void runGemm(const Blas &blas, ThreadPool &pool, const shardrt_gemm &gemm);

} // namespace shardc::rt

#endif // SHARDC_RUNTIME_GEMM_GEMM_H
