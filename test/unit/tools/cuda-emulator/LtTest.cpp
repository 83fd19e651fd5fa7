// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Emulated cuBLASLt by itself: which mistakes of its users it finds. What it computes is tested
// through the plugin of CUDA (test/unit/runtime/CudaGemmTest.cpp).
#include "test/unit/tools/cuda-emulator/EmulatedDevice.h"
#include "tools/cuda-emulator/lt/CublasLt.h"

namespace {

class EmulatedLt : public EmulatedDevice {
protected:
  void SetUp() override {
    EmulatedDevice::SetUp();
    CHECK_CU(cublasLtCreate(&handle));
    CHECK_CU(cublasLtMatmulDescCreate(&product, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    CHECK_CU(cublasLtMatrixLayoutCreate(&a, CUDA_R_32F, 4, 3, 4));
    CHECK_CU(cublasLtMatrixLayoutCreate(&b, CUDA_R_32F, 3, 2, 3));
    CHECK_CU(cublasLtMatrixLayoutCreate(&c, CUDA_R_32F, 4, 2, 4));
    CHECK_CU(cublasLtMatmulPreferenceCreate(&preference));
    const uint64_t workspace = 1 << 16;
    CHECK_CU(cublasLtMatmulPreferenceSetAttribute(
        preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace));
    dataA = put(std::vector<float>(13, 1));
    dataB = put(std::vector<float>(6, 2));
    dataC = put(std::vector<float>(8, 0));
  }
  void TearDown() override {
    cublasLtMatmulPreferenceDestroy(preference);
    for (cublasLtMatrixLayout_t layout : {a, b, c})
      cublasLtMatrixLayoutDestroy(layout);
    cublasLtMatmulDescDestroy(product);
    cublasLtDestroy(handle);
    EmulatedDevice::TearDown();
  }

  int heuristics() {
    int count = 0;
    EXPECT_EQ(
        cublasLtMatmulAlgoGetHeuristic(handle, product, a, b, c, c, preference, 2, results, &count),
        CUBLAS_STATUS_SUCCESS);
    return count;
  }
  cublasStatus_t multiply(const cublasLtMatmulAlgo_t &algo, uint64_t shift = 0,
                          CUdeviceptr workspace = 0, size_t bytes = 0, CUstream on = nullptr) {
    const float one = 1, zero = 0;
    auto at = [](CUdeviceptr address) { return reinterpret_cast<void *>(address); };
    return cublasLtMatmul(handle, product, &one, at(dataA + shift), a, at(dataB), b, &zero,
                          at(dataC), c, at(dataC), c, &algo, at(workspace), bytes, on);
  }

  cublasLtHandle_t handle = nullptr;
  cublasLtMatmulDesc_t product = nullptr;
  cublasLtMatrixLayout_t a = nullptr, b = nullptr, c = nullptr;
  cublasLtMatmulPreference_t preference = nullptr;
  CUdeviceptr dataA = 0, dataB = 0, dataC = 0;
  cublasLtMatmulHeuristicResult_t results[2] = {};
};

} // namespace

TEST_F(EmulatedLt, AProduct) {
  ASSERT_EQ(heuristics(), 2);
  EXPECT_EQ(multiply(results[0].algo), CUBLAS_STATUS_SUCCESS);
  CHECK_CU(cuStreamSynchronize(nullptr));
  EXPECT_EQ(get<float>(dataC, 8), std::vector<float>(8, 6));
}

TEST_F(EmulatedLt, AnAlgorithmForAnotherAlignment) {
  ASSERT_EQ(heuristics(), 2);
  EXPECT_EQ(multiply(results[0].algo, sizeof(float)), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_NE(reports().find("alignment of 256"), std::string::npos) << reports();
}

TEST_F(EmulatedLt, AWorkspaceThatIsTooSmall) {
  ASSERT_EQ(heuristics(), 2);
  ASSERT_GT(results[1].workspaceSize, 0u);
  CUdeviceptr memory = allocate(results[1].workspaceSize);
  EXPECT_EQ(multiply(results[1].algo, 0, memory, results[1].workspaceSize - 1),
            CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_NE(reports().find("bytes to work in"), std::string::npos) << reports();
  EXPECT_EQ(multiply(results[1].algo, 0, memory, results[1].workspaceSize), CUBLAS_STATUS_SUCCESS);
}

TEST_F(EmulatedLt, AnAlgorithmOfNobody) {
  cublasLtMatmulAlgo_t nonsense = {{1, 2, 3, 4, 5, 6, 7, 8}};
  EXPECT_EQ(cublasLtMatmulAlgoCheck(handle, product, a, b, c, c, &nonsense, results),
            CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(multiply(nonsense), CUBLAS_STATUS_INVALID_VALUE);
}

TEST_F(EmulatedLt, SizesThatDoNotFit) {
  const int32_t transposed = CUBLAS_OP_T;
  CHECK_CU(cublasLtMatmulDescSetAttribute(product, CUBLASLT_MATMUL_DESC_TRANSA, &transposed,
                                          sizeof transposed));
  int count = 0;
  EXPECT_EQ(
      cublasLtMatmulAlgoGetHeuristic(handle, product, a, b, c, c, preference, 2, results, &count),
      CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(count, 0);
  EXPECT_NE(reports().find("sizes of the matrices"), std::string::npos) << reports();
}

TEST_F(EmulatedLt, AnAttributeOfAnotherSize) {
  const int64_t wide = 1;
  EXPECT_EQ(
      cublasLtMatmulDescSetAttribute(product, CUBLASLT_MATMUL_DESC_TRANSA, &wide, sizeof wide),
      CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(cublasLtMatmulDescSetAttribute(product, 999, &wide, sizeof wide),
            CUBLAS_STATUS_INVALID_VALUE);
}

// As the library: it adds no bias to doubles.
TEST_F(EmulatedLt, ABiasOfDoubles) {
  cublasLtMatmulDesc_t wide = nullptr;
  cublasLtMatrixLayout_t layout = nullptr;
  CHECK_CU(cublasLtMatmulDescCreate(&wide, CUBLAS_COMPUTE_64F, CUDA_R_64F));
  CHECK_CU(cublasLtMatrixLayoutCreate(&layout, CUDA_R_64F, 2, 2, 2));
  const uint32_t bias = CUBLASLT_EPILOGUE_BIAS;
  CHECK_CU(cublasLtMatmulDescSetAttribute(wide, CUBLASLT_MATMUL_DESC_EPILOGUE, &bias, sizeof bias));
  int count = 0;
  EXPECT_EQ(cublasLtMatmulAlgoGetHeuristic(handle, wide, layout, layout, layout, layout, preference,
                                           2, results, &count),
            CUBLAS_STATUS_NOT_SUPPORTED);
  cublasLtMatrixLayoutDestroy(layout);
  cublasLtMatmulDescDestroy(wide);
}

// The happens-before checker sees what products touch.
TEST_F(EmulatedLt, ProductsThatAreNotOrdered) {
  ASSERT_EQ(heuristics(), 2);
  CUstream one = stream(), two = stream();
  EXPECT_EQ(multiply(results[0].algo, 0, 0, 0, one), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(multiply(results[0].algo, 0, 0, 0, two), CUBLAS_STATUS_SUCCESS);
  cuStreamSynchronize(one);
  cuStreamSynchronize(two);
  EXPECT_NE(reports().find("cublasLtMatmul"), std::string::npos) << reports();
}
