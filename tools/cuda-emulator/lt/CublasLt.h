// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The part of cuBLASLt (12.0 and later) that the emulated device has. These are declarations of our
// own, binary compatible with the library's. Enumerations are passed as int.
#ifndef SHARDC_TOOLS_CUDA_EMULATOR_LT_CUBLASLT_H
#define SHARDC_TOOLS_CUDA_EMULATOR_LT_CUBLASLT_H

#include "tools/cuda-emulator/Driver.h"

extern "C" {

typedef int cublasStatus_t;
typedef struct cublasLtContext *cublasLtHandle_t;
typedef struct cublasLtMatmulDescEmulated *cublasLtMatmulDesc_t;
typedef struct cublasLtMatrixLayoutEmulated *cublasLtMatrixLayout_t;
typedef struct cublasLtMatmulPreferenceEmulated *cublasLtMatmulPreference_t;
typedef struct cublasLtMatrixTransformDescEmulated *cublasLtMatrixTransformDesc_t;

enum : int {
  CUBLAS_STATUS_SUCCESS = 0,
  CUBLAS_STATUS_NOT_INITIALIZED = 1,
  CUBLAS_STATUS_INVALID_VALUE = 7,
  CUBLAS_STATUS_EXECUTION_FAILED = 13,
  CUBLAS_STATUS_NOT_SUPPORTED = 15
};
enum : int { CUDA_R_32F = 0, CUDA_R_64F = 1, CUDA_R_16F = 2, CUDA_R_16BF = 14 };
enum : int { CUBLAS_COMPUTE_32F = 68, CUBLAS_COMPUTE_64F = 70, CUBLAS_COMPUTE_32F_FAST_TF32 = 77 };
enum : int { CUBLAS_OP_N = 0, CUBLAS_OP_T = 1 };
enum : int { CUBLASLT_EPILOGUE_DEFAULT = 1, CUBLASLT_EPILOGUE_BIAS = 4 };
enum : int {
  CUBLASLT_MATMUL_DESC_TRANSA = 3,
  CUBLASLT_MATMUL_DESC_TRANSB = 4,
  CUBLASLT_MATMUL_DESC_EPILOGUE = 7,
  CUBLASLT_MATMUL_DESC_BIAS_POINTER = 8,
  CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT = 5,
  CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET = 6,
  CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES = 1,
  CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK = 3,
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES = 5,
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES = 8,
  CUBLASLT_MATRIX_TRANSFORM_DESC_TRANSA = 2
};

typedef struct {
  uint64_t data[8];
} cublasLtMatmulAlgo_t;
typedef struct {
  cublasLtMatmulAlgo_t algo;
  size_t workspaceSize;
  cublasStatus_t state;
  float wavesCount;
  int reserved[4];
} cublasLtMatmulHeuristicResult_t;

#define EMULATED __attribute__((visibility("default")))

EMULATED size_t cublasLtGetVersion(void);
EMULATED cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle);
EMULATED cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle);
EMULATED cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *desc, int compute,
                                                 int scale);
EMULATED cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc);
EMULATED cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc, int attribute,
                                                       const void *value, size_t bytes);
EMULATED cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout, int type,
                                                   uint64_t rows, uint64_t columns, int64_t ld);
EMULATED cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout);
EMULATED cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                         int attribute, const void *value,
                                                         size_t bytes);
EMULATED cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *preference);
EMULATED cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference);
EMULATED cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                             int attribute, const void *value,
                                                             size_t bytes);
EMULATED cublasStatus_t cublasLtMatmulAlgoGetHeuristic(
    cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a,
    cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
    cublasLtMatmulPreference_t preference, int wanted, cublasLtMatmulHeuristicResult_t *results,
    int *count);
EMULATED cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                                                cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                                cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                                const cublasLtMatmulAlgo_t *algo,
                                                cublasLtMatmulHeuristicResult_t *result);
EMULATED cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                                       const void *alpha, const void *a, cublasLtMatrixLayout_t aOf,
                                       const void *b, cublasLtMatrixLayout_t bOf, const void *beta,
                                       const void *c, cublasLtMatrixLayout_t cOf, void *d,
                                       cublasLtMatrixLayout_t dOf, const cublasLtMatmulAlgo_t *algo,
                                       void *workspace, size_t workspaceBytes, CUstream stream);
EMULATED cublasStatus_t cublasLtMatrixTransformDescCreate(cublasLtMatrixTransformDesc_t *desc,
                                                          int scale);
EMULATED cublasStatus_t cublasLtMatrixTransformDescDestroy(cublasLtMatrixTransformDesc_t desc);
EMULATED cublasStatus_t cublasLtMatrixTransformDescSetAttribute(cublasLtMatrixTransformDesc_t desc,
                                                                int attribute, const void *value,
                                                                size_t bytes);
EMULATED cublasStatus_t cublasLtMatrixTransform(cublasLtHandle_t handle,
                                                cublasLtMatrixTransformDesc_t desc,
                                                const void *alpha, const void *a,
                                                cublasLtMatrixLayout_t aOf, const void *beta,
                                                const void *b, cublasLtMatrixLayout_t bOf, void *c,
                                                cublasLtMatrixLayout_t cOf, CUstream stream);

#undef EMULATED
} // extern "C"

#endif // SHARDC_TOOLS_CUDA_EMULATOR_LT_CUBLASLT_H
