// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The emulated device for tests: modules from text of LLVM IR, launches, and what checks report.
#ifndef SHARDC_TEST_UNIT_TOOLS_CUDA_EMULATOR_EMULATEDDEVICE_H
#define SHARDC_TEST_UNIT_TOOLS_CUDA_EMULATOR_EMULATEDDEVICE_H

#include "tools/cuda-emulator/Driver.h"

#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

/// What every module of the tests begins with.
inline const std::string moduleHead = R"(
target datalayout = "e-p6:32:32-i64:64-i128:128-i256:256-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)
declare void @llvm.nvvm.bar.warp.sync(i32)
)";

#define CHECK_CU(call) ASSERT_EQ(call, CUDA_SUCCESS)

class EmulatedDevice : public testing::Test {
protected:
  void SetUp() override {
    CHECK_CU(cuInit(0));
    CHECK_CU(cuEmulatedSetOrder("eager"));
    CHECK_CU(cuEmulatedSetDrop(""));
    cuEmulatedClearReports();
    CHECK_CU(cuDevicePrimaryCtxRetain(&context, 0));
    CHECK_CU(cuCtxSetCurrent(context));
  }

  void TearDown() override {
    cuEmulatedClearReports();
    for (CUmodule module : modules)
      cuModuleUnload(module);
    for (CUdeviceptr memory : allocations)
      cuMemFree_v2(memory);
    for (CUstream stream : streams)
      cuStreamDestroy_v2(stream);
    for (CUevent event : events)
      cuEventDestroy_v2(event);
    cuDevicePrimaryCtxRelease_v2(0);
    EXPECT_EQ(reports(), "") << "of the end";
    cuEmulatedClearReports();
  }

  /// The function of this name in a module of this text (after moduleHead).
  CUfunction load(const std::string &text, const char *name = "k") {
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    EXPECT_EQ(cuModuleLoadData(&module, (moduleHead + text).c_str()), CUDA_SUCCESS);
    if (module)
      modules.push_back(module);
    EXPECT_EQ(cuModuleGetFunction(&function, module, name), CUDA_SUCCESS);
    return function;
  }

  CUdeviceptr allocate(size_t bytes) {
    CUdeviceptr memory = 0;
    EXPECT_EQ(cuMemAlloc_v2(&memory, bytes), CUDA_SUCCESS);
    allocations.push_back(memory);
    return memory;
  }

  void release(CUdeviceptr memory) {
    EXPECT_EQ(cuMemFree_v2(memory), CUDA_SUCCESS);
    std::erase(allocations, memory);
  }

  template <typename T> CUdeviceptr put(const std::vector<T> &values) {
    CUdeviceptr memory = allocate(values.size() * sizeof(T));
    EXPECT_EQ(cuMemcpyHtoD_v2(memory, values.data(), values.size() * sizeof(T)), CUDA_SUCCESS);
    return memory;
  }

  template <typename T> std::vector<T> get(CUdeviceptr memory, size_t n) {
    std::vector<T> values(n);
    EXPECT_EQ(cuMemcpyDtoH_v2(values.data(), memory, n * sizeof(T)), CUDA_SUCCESS);
    return values;
  }

  CUstream stream(unsigned flags = CU_STREAM_NON_BLOCKING) {
    CUstream made = nullptr;
    EXPECT_EQ(cuStreamCreate(&made, flags), CUDA_SUCCESS);
    streams.push_back(made);
    return made;
  }

  CUevent event() {
    CUevent made = nullptr;
    EXPECT_EQ(cuEventCreate(&made, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
    events.push_back(made);
    return made;
  }

  template <typename... Params>
  CUresult launchOn(CUstream on, CUfunction function, unsigned blocks, unsigned threads,
                    unsigned shared, Params... params) {
    std::tuple<Params...> values(params...);
    return std::apply(
        [&](auto &...value) {
          void *addresses[] = {(void *)&value..., nullptr};
          return cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, shared, on, addresses,
                                nullptr);
        },
        values);
  }

  /// Launches and waits; the result of the wait.
  template <typename... Params>
  CUresult run(CUfunction function, unsigned blocks, unsigned threads, Params... params) {
    CUresult result = launchOn(nullptr, function, blocks, threads, 0, params...);
    return result ? result : cuStreamSynchronize(nullptr);
  }

  static std::string reports() { return cuEmulatedReports(nullptr); }

  /// The device has failed, and says so.
  static void expectReport(const std::string &part) {
    EXPECT_NE(reports().find(part), std::string::npos) << "instead: " << reports();
    EXPECT_NE(cuCtxSynchronize(), CUDA_SUCCESS) << "the error is not sticky";
  }

  CUcontext context = nullptr;
  std::vector<CUmodule> modules;
  std::vector<CUdeviceptr> allocations;
  std::vector<CUstream> streams;
  std::vector<CUevent> events;
};

#endif // SHARDC_TEST_UNIT_TOOLS_CUDA_EMULATOR_EMULATEDDEVICE_H
