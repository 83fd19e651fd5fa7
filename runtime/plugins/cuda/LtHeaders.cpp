// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Built only where cuBLAS's own header is: the plugin's types and constants are those of
// cublasLt.h.
#include "runtime/plugins/cuda/LtLibrary.h"

#include <cstddef>
#include <cublasLt.h>

namespace real = shardc::plugin::cuda;

namespace {

static_assert(real::ltSuccess == CUBLAS_STATUS_SUCCESS &&
              real::ltNotSupported == CUBLAS_STATUS_NOT_SUPPORTED);
static_assert(real::ltF32 == int(CUDA_R_32F) && real::ltF64 == int(CUDA_R_64F) &&
              real::ltF16 == int(CUDA_R_16F) && real::ltBF16 == int(CUDA_R_16BF));
static_assert(real::ltCompute32 == int(CUBLAS_COMPUTE_32F) &&
              real::ltComputeTf32 == int(CUBLAS_COMPUTE_32F_FAST_TF32) &&
              real::ltCompute64 == int(CUBLAS_COMPUTE_64F));
static_assert(real::ltPlain == int(CUBLAS_OP_N) && real::ltTransposed == int(CUBLAS_OP_T));
static_assert(real::ltNoEpilogue == int(CUBLASLT_EPILOGUE_DEFAULT) &&
              real::ltBias == int(CUBLASLT_EPILOGUE_BIAS));
static_assert(real::ltProductTransposeA == int(CUBLASLT_MATMUL_DESC_TRANSA) &&
              real::ltProductTransposeB == int(CUBLASLT_MATMUL_DESC_TRANSB) &&
              real::ltProductEpilogue == int(CUBLASLT_MATMUL_DESC_EPILOGUE) &&
              real::ltProductBias == int(CUBLASLT_MATMUL_DESC_BIAS_POINTER));
static_assert(real::ltLayoutBatch == int(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT) &&
              real::ltLayoutStride == int(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET));
static_assert(real::ltPreferWorkspace == int(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES) &&
              real::ltPreferReductions == int(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK) &&
              real::ltPreferAlignmentA == int(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES) &&
              real::ltPreferAlignmentA + 3 == int(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES));
static_assert(real::ltReduceInComputeType == CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE &&
              real::ltTransformTransposeA == int(CUBLASLT_MATRIX_TRANSFORM_DESC_TRANSA));
static_assert(sizeof(real::LtAlgorithm) == sizeof(cublasLtMatmulAlgo_t) &&
              sizeof(real::LtCandidate) == sizeof(cublasLtMatmulHeuristicResult_t) &&
              offsetof(real::LtCandidate, workspace) ==
                  offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize) &&
              offsetof(real::LtCandidate, state) ==
                  offsetof(cublasLtMatmulHeuristicResult_t, state));

/// What two parameters have in common: pointers to anything, or values of one size.
template <typename Mine, typename Theirs>
constexpr bool passesAs =
    std::is_pointer_v<Mine> == std::is_pointer_v<Theirs> && sizeof(Mine) == sizeof(Theirs);
template <typename Mine, typename Theirs> struct SameCall;
template <typename Result, typename... Mine, typename Real, typename... Theirs>
struct SameCall<Result (*)(Mine...), Real (*)(Theirs...)> {
  static constexpr bool value = sizeof...(Mine) == sizeof...(Theirs) &&
                                sizeof(Result) == sizeof(Real) && (passesAs<Mine, Theirs> && ...);
};
#define SHARDC_CUBLASLT_SAME(member, symbol, parameters)                                           \
  static_assert(SameCall<decltype(real::LtLibrary::member), decltype(&symbol)>::value);
SHARDC_CUBLASLT(SHARDC_CUBLASLT_SAME)

} // namespace
