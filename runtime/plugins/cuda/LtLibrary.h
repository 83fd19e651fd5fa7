// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The functions of cuBLASLt that the plugin calls, from the library of the machine or the emulated
// device. Types and constants are our own, so that it builds where cuBLAS is not installed
// (LtHeaders.cpp compares them with cublasLt.h where there is one).
#ifndef SHARDC_RUNTIME_PLUGINS_CUDA_LTLIBRARY_H
#define SHARDC_RUNTIME_PLUGINS_CUDA_LTLIBRARY_H

#include "runtime/plugins/cuda/Device.h"

namespace shardc::plugin::cuda {

using LtStatus = int;
using LtHandle = struct LtTag *;
using LtProductHandle = struct LtProductTag *; ///< cublasLtMatmulDesc_t
using LtLayoutHandle = struct LtLayoutTag *;   ///< cublasLtMatrixLayout_t
using LtPreferenceHandle = struct LtPreferenceTag *;
using LtTransformHandle = struct LtTransformTag *; ///< cublasLtMatrixTransformDesc_t

constexpr LtStatus ltSuccess = 0;
constexpr LtStatus ltNotSupported = 15;

/// The oldest that is known to do all this (12.0).
constexpr size_t oldestLt = 120000;

enum LtType : int { ltF32 = 0, ltF64 = 1, ltF16 = 2, ltBF16 = 14 };
enum LtCompute : int { ltCompute32 = 68, ltComputeTf32 = 77, ltCompute64 = 70 };
enum LtTranspose : int { ltPlain = 0, ltTransposed = 1 };
enum LtEpilogue : int { ltNoEpilogue = 1, ltBias = 4 };
enum LtProductAttribute : int {
  ltProductTransposeA = 3,
  ltProductTransposeB = 4,
  ltProductEpilogue = 7,
  ltProductBias = 8
};
enum LtLayoutAttribute : int { ltLayoutBatch = 5, ltLayoutStride = 6 };
enum LtPreferenceAttribute : int {
  ltPreferWorkspace = 1,
  ltPreferReductions = 3,
  ltPreferAlignmentA = 5, ///< and B, C, D behind it
};
/// Parts of a sum are kept in the type of the computation: one rounding, and the same in every run.
constexpr uint32_t ltReduceInComputeType = 2;
constexpr int ltTransformTransposeA = 2;

struct LtAlgorithm {
  uint64_t data[8];
};
struct LtCandidate {
  LtAlgorithm algorithm;
  size_t workspace;
  LtStatus state;
  float waves;
  int reserved[4];
};

/// The table (EntryPoints.h); all return an LtStatus, but for the version.
#define SHARDC_CUBLASLT(X)                                                                         \
  X(create, cublasLtCreate, (LtHandle *))                                                          \
  X(destroy, cublasLtDestroy, (LtHandle))                                                          \
  X(productCreate, cublasLtMatmulDescCreate, (LtProductHandle *, int, int))                        \
  X(productDestroy, cublasLtMatmulDescDestroy, (LtProductHandle))                                  \
  X(productSet, cublasLtMatmulDescSetAttribute, (LtProductHandle, int, const void *, size_t))      \
  X(layoutCreate, cublasLtMatrixLayoutCreate,                                                      \
    (LtLayoutHandle *, int, uint64_t, uint64_t, int64_t))                                          \
  X(layoutDestroy, cublasLtMatrixLayoutDestroy, (LtLayoutHandle))                                  \
  X(layoutSet, cublasLtMatrixLayoutSetAttribute, (LtLayoutHandle, int, const void *, size_t))      \
  X(preferenceCreate, cublasLtMatmulPreferenceCreate, (LtPreferenceHandle *))                      \
  X(preferenceDestroy, cublasLtMatmulPreferenceDestroy, (LtPreferenceHandle))                      \
  X(preferenceSet, cublasLtMatmulPreferenceSetAttribute,                                           \
    (LtPreferenceHandle, int, const void *, size_t))                                               \
  X(heuristics, cublasLtMatmulAlgoGetHeuristic,                                                    \
    (LtHandle, LtProductHandle, LtLayoutHandle, LtLayoutHandle, LtLayoutHandle, LtLayoutHandle,    \
     LtPreferenceHandle, int, LtCandidate *, int *))                                               \
  X(checkAlgorithm, cublasLtMatmulAlgoCheck,                                                       \
    (LtHandle, LtProductHandle, LtLayoutHandle, LtLayoutHandle, LtLayoutHandle, LtLayoutHandle,    \
     const LtAlgorithm *, LtCandidate *))                                                          \
  X(multiply, cublasLtMatmul,                                                                      \
    (LtHandle, LtProductHandle, const void *, const void *, LtLayoutHandle, const void *,          \
     LtLayoutHandle, const void *, const void *, LtLayoutHandle, void *, LtLayoutHandle,           \
     const LtAlgorithm *, void *, size_t, StreamHandle))                                           \
  X(transformCreate, cublasLtMatrixTransformDescCreate, (LtTransformHandle *, int))                \
  X(transformDestroy, cublasLtMatrixTransformDescDestroy, (LtTransformHandle))                     \
  X(transformSet, cublasLtMatrixTransformDescSetAttribute,                                         \
    (LtTransformHandle, int, const void *, size_t))                                                \
  X(transform, cublasLtMatrixTransform,                                                            \
    (LtHandle, LtTransformHandle, const void *, const void *, LtLayoutHandle, const void *,        \
     const void *, LtLayoutHandle, void *, LtLayoutHandle, StreamHandle))

struct LtLibrary {
  /// Throws Failure: SHARDRT_NOT_FOUND, or SHARDRT_INCOMPATIBLE with all that it lacks.
  explicit LtLibrary(Device &device);

  using EntryResult = LtStatus;
  SHARDC_CUBLASLT(SHARDC_ENTRY)
  size_t (*getVersion)() = nullptr;

  /// Throws Failure unless it is a success.
  void check(const char *function, LtStatus status) const;

  size_t version = 0; ///< 120401 for 12.4.1
};

} // namespace shardc::plugin::cuda

#endif // SHARDC_RUNTIME_PLUGINS_CUDA_LTLIBRARY_H
