// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each check of accesses to memory reports what is wrong, and correct programs are silent.
#include "test/unit/tools/cuda-emulator/EmulatedDevice.h"

#include <numeric>

namespace {

/// out[i] = in[i] + 1 for i < n, where i is the number of the thread in the grid.
const char *addOne = R"(
define ptx_kernel void @k(ptr %in, ptr %out, i64 %n) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %b = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %s = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %o = mul i32 %b, %s
  %i32 = add i32 %o, %t
  %i = zext i32 %i32 to i64
  %inside = icmp ult i64 %i, %n
  br i1 %inside, label %do, label %end
do:
  %from = getelementptr float, ptr %in, i64 %i
  %x = load float, ptr %from, align 4
  %y = fadd float %x, 1.0
  %to = getelementptr float, ptr %out, i64 %i
  store float %y, ptr %to, align 4
  br label %end
end:
  ret void
}
)";

/// Copies 16 bytes a thread.
const char *copyVectors = R"(
define ptx_kernel void @k(ptr %in, ptr %out) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %i = zext i32 %t to i64
  %from = getelementptr <4 x float>, ptr %in, i64 %i
  %x = load <4 x float>, ptr %from, align 16
  %to = getelementptr <4 x float>, ptr %out, i64 %i
  store <4 x float> %x, ptr %to, align 16
  ret void
}
)";

class EmulatedMemory : public EmulatedDevice {};

TEST_F(EmulatedMemory, ACorrectKernelIsSilent) {
  std::vector<float> values(1000);
  std::iota(values.begin(), values.end(), 0.f);
  CUdeviceptr in = put(values), out = allocate(4000);
  EXPECT_EQ(run(load(addOne), 8, 128, in, out, uint64_t(1000)), CUDA_SUCCESS);
  std::vector<float> result = get<float>(out, 1000);
  for (int i = 0; i < 1000; ++i)
    ASSERT_EQ(result[i], float(i) + 1);
  EXPECT_EQ(reports(), "");
}

TEST_F(EmulatedMemory, AReadBeyondAnAllocationIsReported) {
  CUdeviceptr in = put(std::vector<float>(999)), out = allocate(4000);
  EXPECT_EQ(run(load(addOne), 8, 128, in, out, uint64_t(1000)), CUDA_ERROR_ILLEGAL_ADDRESS);
  expectReport("kernel k: thread (103, 0, 0) of block (7, 0, 0), load float");
  expectReport("reads 4 bytes outside of live allocations");
  expectReport("0 bytes after the end of the allocation of 3996 bytes");
}

TEST_F(EmulatedMemory, AWriteBeyondAnAllocationIsReported) {
  CUdeviceptr in = put(std::vector<float>(1000)), out = allocate(3992);
  EXPECT_EQ(run(load(addOne), 8, 128, in, out, uint64_t(1000)), CUDA_ERROR_ILLEGAL_ADDRESS);
  expectReport("writes 4 bytes outside of live allocations");
}

TEST_F(EmulatedMemory, ANullPointerIsReported) {
  CUdeviceptr out = allocate(4000);
  EXPECT_EQ(run(load(addOne), 1, 1, uint64_t(0), out, uint64_t(1)), CUDA_ERROR_ILLEGAL_ADDRESS);
  expectReport("0x0 is no memory of a device");
}

TEST_F(EmulatedMemory, AFreedAllocationIsReported) {
  CUdeviceptr in = put(std::vector<float>(1000)), out = allocate(4000);
  release(in);
  EXPECT_EQ(run(load(addOne), 8, 128, in, out, uint64_t(1000)), CUDA_ERROR_ILLEGAL_ADDRESS);
  expectReport("freed)");
}

TEST_F(EmulatedMemory, ABytesThatNothingHasWrittenAreReported) {
  CUdeviceptr in = allocate(4000), out = allocate(4000);
  ASSERT_EQ(cuMemsetD32Async(in, 0, 500, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(run(load(addOne), 8, 128, in, out, uint64_t(1000)), CUDA_ERROR_ILLEGAL_ADDRESS);
  expectReport("thread (116, 0, 0) of block (3, 0, 0)"); // element 500
  expectReport("that nothing has written");
}

TEST_F(EmulatedMemory, ACopyOfBytesThatNothingHasWrittenIsReported) {
  CUdeviceptr from = allocate(64);
  std::vector<char> to(64);
  EXPECT_EQ(cuMemcpyDtoH_v2(to.data(), from, 64), CUDA_ERROR_ILLEGAL_ADDRESS);
  expectReport(
      "copy of 64 bytes from the device to the host: reads bytes that nothing has written");
}

TEST_F(EmulatedMemory, VectorAccessesMustBeAligned) {
  CUdeviceptr in = put(std::vector<float>(132)), out = allocate(512);
  CUfunction function = load(copyVectors);
  EXPECT_EQ(run(function, 1, 32, in + 16, out), CUDA_SUCCESS);
  EXPECT_EQ(reports(), "");
  EXPECT_EQ(run(function, 1, 32, in + 4, out), CUDA_ERROR_MISALIGNED_ADDRESS);
  expectReport("not a multiple of 16");
}

TEST_F(EmulatedMemory, TheErrorStays) {
  CUdeviceptr out = allocate(4000);
  EXPECT_NE(run(load(addOne), 1, 1, uint64_t(8), out, uint64_t(1)), CUDA_SUCCESS);
  CUdeviceptr more = 0;
  EXPECT_EQ(cuMemAlloc_v2(&more, 16), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(cuStreamSynchronize(nullptr), CUDA_ERROR_ILLEGAL_ADDRESS);
}

/// Every thread of the grid writes the word at %out[its number / %share].
const char *shareWords = R"(
define ptx_kernel void @k(ptr %out, i32 %share) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %b = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %s = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %o = mul i32 %b, %s
  %i32 = add i32 %o, %t
  %w = udiv i32 %i32, %share
  %i = zext i32 %w to i64
  %to = getelementptr i32, ptr %out, i64 %i
  store i32 %t, ptr %to, align 4
  ret void
}
)";

TEST_F(EmulatedMemory, TwoThreadsThatWriteAWordRace) {
  CUdeviceptr out = allocate(4096);
  CUfunction function = load(shareWords);
  EXPECT_EQ(run(function, 4, 64, out, 1), CUDA_SUCCESS);
  EXPECT_EQ(reports(), "");
  EXPECT_EQ(run(function, 4, 64, out, 2), CUDA_ERROR_LAUNCH_FAILED);
  expectReport("race in global memory: writes what thread 0 of the block");
}

TEST_F(EmulatedMemory, TwoBlocksThatWriteAWordRace) {
  EXPECT_EQ(run(load(shareWords), 8, 1, allocate(4096), 4), CUDA_ERROR_LAUNCH_FAILED);
  expectReport("race in global memory: writes what thread 0 of another block wrote");
}

/// Thread t writes word t; after a barrier it reads that of its neighbour, and writes it to %out.
std::string neighbours(bool barrier) {
  return std::string(R"(
define ptx_kernel void @k(ptr %words, ptr %out) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %i = zext i32 %t to i64
  %own = getelementptr i32, ptr %words, i64 %i
  store i32 %t, ptr %own, align 4
)") + (barrier ? "  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)\n" : "") +
         R"(
  %n = xor i64 %i, 1
  %other = getelementptr i32, ptr %words, i64 %n
  %x = load i32, ptr %other, align 4
  %to = getelementptr i32, ptr %out, i64 %i
  store i32 %x, ptr %to, align 4
  ret void
}
)";
}

TEST_F(EmulatedMemory, ABarrierOrdersThreadsOfABlock) {
  CUdeviceptr words = put(std::vector<int>(64)), out = allocate(256);
  EXPECT_EQ(run(load(neighbours(true)), 1, 64, words, out), CUDA_SUCCESS);
  std::vector<int> result = get<int>(out, 64);
  for (int i = 0; i < 64; ++i)
    ASSERT_EQ(result[i], i ^ 1);
  EXPECT_EQ(reports(), "");
  EXPECT_EQ(run(load(neighbours(false)), 1, 64, words, out), CUDA_ERROR_LAUNCH_FAILED);
  expectReport("race in global memory");
}

TEST_F(EmulatedMemory, ADroppedBarrierIsReported) {
  CUdeviceptr words = put(std::vector<int>(64)), out = allocate(256);
  CHECK_CU(cuEmulatedSetDrop("barrier:0"));
  EXPECT_EQ(run(load(neighbours(true)), 1, 64, words, out), CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_EQ(cuEmulatedCount("barrier"), 1u);
  expectReport("race in global memory");
}

TEST_F(EmulatedMemory, LeaksAreReported) {
  CUdeviceptr lost = 0;
  CHECK_CU(cuMemAlloc_v2(&lost, 100));
  CHECK_CU(cuDevicePrimaryCtxRelease_v2(0));
  EXPECT_NE(reports().find("leak on device 0: never freed 1 allocations (100 bytes as number"),
            std::string::npos)
      << reports();
  CHECK_CU(cuDevicePrimaryCtxRetain(&context, 0));
}

TEST_F(EmulatedMemory, AnotherDevicesMemoryNeedsPeerAccess) {
  CUcontext other = nullptr;
  CHECK_CU(cuDevicePrimaryCtxRetain(&other, 1));
  CHECK_CU(cuCtxSetCurrent(other));
  CUdeviceptr in = 0;
  CHECK_CU(cuMemAlloc_v2(&in, 256));
  CHECK_CU(cuMemsetD32Async(in, 0, 64, nullptr));
  CHECK_CU(cuCtxSynchronize());
  CHECK_CU(cuCtxSetCurrent(context));
  CUdeviceptr out = allocate(256);
  CUfunction function = load(addOne);
  EXPECT_EQ(run(function, 1, 64, in, out, uint64_t(64)), CUDA_ERROR_ILLEGAL_ADDRESS);
  expectReport("cuCtxEnablePeerAccess");
  cuEmulatedClearReports();
  CHECK_CU(cuCtxEnablePeerAccess(other, 0));
  EXPECT_EQ(run(function, 1, 64, in, out, uint64_t(64)), CUDA_SUCCESS);
  CHECK_CU(cuCtxDisablePeerAccess(other));
  CHECK_CU(cuMemFree_v2(in));
  CHECK_CU(cuDevicePrimaryCtxRelease_v2(1));
}

} // namespace
