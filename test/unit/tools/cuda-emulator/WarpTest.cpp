// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Barriers, shuffles, votes, matrix fragments and asynchronous copies.
#include "test/unit/tools/cuda-emulator/EmulatedDevice.h"

#include <bit>
#include <cmath>
#include <random>

namespace {

class EmulatedWarp : public EmulatedDevice {
protected:
  /// A kernel @k(ptr %out, ptr %in) whose thread t has its number as %t and %i, and stores %r (i32)
  /// to out[t].
  CUfunction each(const std::string &declarations, const std::string &body) {
    return load(declarations + R"(
define ptx_kernel void @k(ptr %out, ptr %in) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %i = zext i32 %t to i64
  %to = getelementptr i32, ptr %out, i64 %i
)" + body + R"(
  store i32 %r, ptr %to, align 4
  ret void
}
)");
  }

  std::vector<int> runEach(const std::string &declarations, const std::string &body,
                           unsigned threads = 32) {
    CUdeviceptr out = allocate(threads * 4);
    EXPECT_EQ(run(each(declarations, body), 1, threads, out, out), CUDA_SUCCESS) << reports();
    return get<int>(out, threads);
  }
};

std::string shuffle(const std::string &mode) {
  return "declare i32 @llvm.nvvm.shfl.sync." + mode + ".i32(i32, i32, i32, i32)\n";
}

TEST_F(EmulatedWarp, ShufflesGoWhereThePtxIsaSays) {
  auto value = [](int lane) { return lane * 3; };
  std::string head = "  %v = mul i32 %t, 3\n";
  std::vector<int> r = runEach(
      shuffle("bfly"),
      head + "  %r = call i32 @llvm.nvvm.shfl.sync.bfly.i32(i32 -1, i32 %v, i32 5, i32 31)\n");
  for (int i = 0; i < 32; ++i)
    EXPECT_EQ(r[i], value(i ^ 5));
  r = runEach(shuffle("down"),
              head +
                  "  %r = call i32 @llvm.nvvm.shfl.sync.down.i32(i32 -1, i32 %v, i32 4, i32 31)\n");
  for (int i = 0; i < 32; ++i)
    EXPECT_EQ(r[i], value(i + 4 < 32 ? i + 4 : i));
  r = runEach(shuffle("up"),
              head + "  %r = call i32 @llvm.nvvm.shfl.sync.up.i32(i32 -1, i32 %v, i32 4, i32 0)\n");
  for (int i = 0; i < 32; ++i)
    EXPECT_EQ(r[i], value(i >= 4 ? i - 4 : i));
  // Segments of 8 lanes: __shfl_sync(v, 3, 8) has the clamp 0x181f.
  r = runEach(
      shuffle("idx"),
      head + "  %r = call i32 @llvm.nvvm.shfl.sync.idx.i32(i32 -1, i32 %v, i32 3, i32 6175)\n");
  for (int i = 0; i < 32; ++i)
    EXPECT_EQ(r[i], value(i / 8 * 8 + 3));
  EXPECT_EQ(reports(), "");
}

TEST_F(EmulatedWarp, AShuffleFromALaneOutsideOfTheMaskIsReported) {
  CUdeviceptr out = allocate(128);
  std::string body = R"(
  %low = icmp ult i32 %t, 16
  br i1 %low, label %do, label %end
do:
  %s = call i32 @llvm.nvvm.shfl.sync.bfly.i32(i32 65535, i32 %t, i32 16, i32 31)
  br label %end
end:
  %r = phi i32 [ 0, %0 ], [ %s, %do ]
)";
  EXPECT_EQ(run(each(shuffle("bfly"), body), 1, 32, out, out), CUDA_ERROR_LAUNCH_FAILED);
  expectReport("shfl.sync.bfly reads from lane 16, which is not in the mask");
}

TEST_F(EmulatedWarp, AShuffleThatALaneOfTheMaskDoesNotDoIsReported) {
  CUdeviceptr out = allocate(128);
  std::string body = R"(
  %low = icmp ult i32 %t, 16
  br i1 %low, label %do, label %end
do:
  %s = call i32 @llvm.nvvm.shfl.sync.bfly.i32(i32 -1, i32 %t, i32 1, i32 31)
  br label %end
end:
  %r = phi i32 [ 0, %0 ], [ %s, %do ]
)";
  EXPECT_EQ(run(each(shuffle("bfly"), body), 1, 32, out, out), CUDA_ERROR_LAUNCH_FAILED);
  expectReport("divergent warp: shfl.sync.bfly waits for lane 16, which has ended");
}

TEST_F(EmulatedWarp, VotesCountLanes) {
  std::vector<int> r = runEach("declare i32 @llvm.nvvm.vote.ballot.sync(i32, i1)\n",
                               "  %odd = trunc i32 %t to i1\n"
                               "  %r = call i32 @llvm.nvvm.vote.ballot.sync(i32 -1, i1 %odd)\n");
  EXPECT_EQ(r, std::vector<int>(32, int(0xaaaaaaaa)));
}

TEST_F(EmulatedWarp, ABarrierThatSomeThreadsDoNotReachIsReported) {
  CUdeviceptr out = allocate(256);
  std::string body = R"(
  %low = icmp ult i32 %t, 40
  br i1 %low, label %do, label %end
do:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  br label %end
end:
  %r = add i32 %t, 0
)";
  EXPECT_EQ(run(each("", body), 1, 64, out, out), CUDA_ERROR_LAUNCH_FAILED);
  expectReport("divergent barrier: 40 of 64 threads are at a barrier, 24 have ended");
}

TEST_F(EmulatedWarp, TwoBarriersAtOnceAreReported) {
  CUdeviceptr out = allocate(256);
  std::string body = R"(
  %low = icmp ult i32 %t, 32
  br i1 %low, label %one, label %two
one:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  br label %end
two:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  br label %end
end:
  %r = add i32 %t, 0
)";
  EXPECT_EQ(run(each("", body), 1, 64, out, out), CUDA_ERROR_LAUNCH_FAILED);
  expectReport("64 of 64 threads are at a barrier, but not all at the same one");
}

/// Reverses the numbers of 64 threads through shared memory.
std::string reverse(const std::string &between) {
  return R"(
  %own = getelementptr i32, ptr addrspace(3) @tile, i64 %i
  store i32 %t, ptr addrspace(3) %own, align 4
)" + between +
         R"(
  %j = sub i64 63, %i
  %other = getelementptr i32, ptr addrspace(3) @tile, i64 %j
  %r = load i32, ptr addrspace(3) %other, align 4
)";
}
const char *tile = "@tile = internal addrspace(3) global [64 x i32] undef, align 16\n";

TEST_F(EmulatedWarp, ThreadsMeetInSharedMemory) {
  std::vector<int> r =
      runEach(tile, reverse("call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)\n"), 64);
  for (int i = 0; i < 64; ++i)
    EXPECT_EQ(r[i], 63 - i);
  EXPECT_EQ(reports(), "");
}

TEST_F(EmulatedWarp, SharedMemoryWithoutABarrierIsReported) {
  // The first half would read what nobody has written yet, the second half what races.
  CUdeviceptr out = allocate(256);
  EXPECT_EQ(run(each(tile, reverse("")), 1, 64, out, out), CUDA_ERROR_ILLEGAL_ADDRESS);
  expectReport("shared memory that no thread of the block has written");
  cuEmulatedClearReports();
  // With the order of threads that runs here, thread 32 and later find what was written.
  std::string twice = R"(
  %zero = getelementptr i32, ptr addrspace(3) @tile, i64 0
  store i32 %t, ptr addrspace(3) %zero, align 4
  %r = load i32, ptr addrspace(3) %zero, align 4
)";
  EXPECT_EQ(run(each(tile, twice), 1, 64, out, out), CUDA_ERROR_LAUNCH_FAILED);
  expectReport("race in shared memory: writes byte 0 that thread 0 wrote");
}

TEST_F(EmulatedWarp, ABarrierOfAWarpOrdersItsLanes) {
  std::string between = "call void @llvm.nvvm.bar.warp.sync(i32 -1)\n";
  std::string body = R"(
  %own = getelementptr i32, ptr addrspace(3) @tile, i64 %i
  store i32 %t, ptr addrspace(3) %own, align 4
  call void @llvm.nvvm.bar.warp.sync(i32 -1)
  %j = xor i64 %i, 7
  %other = getelementptr i32, ptr addrspace(3) @tile, i64 %j
  %r = load i32, ptr addrspace(3) %other, align 4
  call void @llvm.nvvm.bar.warp.sync(i32 -1)
  store i32 0, ptr addrspace(3) %own, align 4
)";
  std::vector<int> r = runEach(tile, body, 64);
  for (int i = 0; i < 64; ++i)
    EXPECT_EQ(r[i], i ^ 7);
  EXPECT_EQ(reports(), "");
  // Lanes of another warp are not ordered by it.
  CUdeviceptr out = allocate(256);
  EXPECT_NE(run(each(tile, reverse(between)), 1, 64, out, out), CUDA_SUCCESS);
}

TEST_F(EmulatedWarp, AWriteAfterAReadNeedsABarrierOfItsOwn) {
  // The last lane writes, all read after a barrier of the warp, it writes again: that its first
  // write is ordered says nothing of the reads.
  std::string body = R"(
  %isLast = icmp eq i32 %t, 31
  %zero = getelementptr i32, ptr addrspace(3) @tile, i64 0
  br i1 %isLast, label %once, label %met
once:
  store i32 5, ptr addrspace(3) %zero, align 4
  br label %met
met:
  call void @llvm.nvvm.bar.warp.sync(i32 -1)
  %r = load i32, ptr addrspace(3) %zero, align 4
  BETWEEN
  br i1 %isLast, label %again, label %done
again:
  store i32 6, ptr addrspace(3) %zero, align 4
  br label %done
done:
)";
  auto with = [&](const std::string &between) {
    std::string text = body;
    return text.replace(text.find("BETWEEN"), 7, between);
  };
  CUdeviceptr out = allocate(128);
  EXPECT_EQ(run(each(tile, with("call void @llvm.nvvm.bar.warp.sync(i32 -1)")), 1, 32, out, out),
            CUDA_SUCCESS);
  EXPECT_EQ(reports(), "");
  EXPECT_EQ(run(each(tile, with("")), 1, 32, out, out), CUDA_ERROR_LAUNCH_FAILED);
  expectReport("race in shared memory: writes byte 0 that other threads read");
}

TEST_F(EmulatedWarp, AnAccessBeyondAVariableInSharedMemoryIsReported) {
  CUdeviceptr out = allocate(256);
  std::string body = R"(
  %j = add i64 %i, 1
  %own = getelementptr i32, ptr addrspace(3) @tile, i64 %j
  store i32 %t, ptr addrspace(3) %own, align 4
  %r = add i32 %t, 0
)";
  EXPECT_EQ(run(each(tile, body), 1, 64, out, out), CUDA_ERROR_ILLEGAL_ADDRESS);
  expectReport("thread (63, 0, 0)");
  expectReport("writes 4 bytes outside of the variables in shared memory");
}

TEST_F(EmulatedWarp, DynamicSharedMemoryIsAsBigAsTheLaunchSays) {
  std::string head = "@shared = external addrspace(3) global [0 x i32], align 16\n";
  CUfunction function = each(head, R"(
  %own = getelementptr i32, ptr addrspace(3) @shared, i64 %i
  store i32 %t, ptr addrspace(3) %own, align 4
  %r = load i32, ptr addrspace(3) %own, align 4
)");
  CUdeviceptr out = allocate(256);
  CHECK_CU(launchOn(nullptr, function, 1, 64, 256, out, out));
  CHECK_CU(cuStreamSynchronize(nullptr));
  EXPECT_EQ(launchOn(nullptr, function, 1, 64, 100000, out, out), CUDA_ERROR_INVALID_VALUE);
  CHECK_CU(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100000));
  CHECK_CU(launchOn(nullptr, function, 1, 64, 100000, out, out));
  CHECK_CU(launchOn(nullptr, function, 1, 64, 252, out, out));
  expectReport("outside of the variables in shared memory");
}

/// Thread t copies 16 bytes to shared memory and reads word 3 of them.
std::string asyncCopy(const std::string &wait) {
  return R"(
  %from = getelementptr [4 x i32], ptr %in, i64 %i
  %global = addrspacecast ptr %from to ptr addrspace(1)
  %own = getelementptr [4 x i32], ptr addrspace(3) @tile, i64 %i
  call void @llvm.nvvm.cp.async.cg.shared.global.16(ptr addrspace(3) %own, ptr addrspace(1) %global)
  call void @llvm.nvvm.cp.async.commit.group()
)" + wait +
         R"(
  %at = getelementptr [4 x i32], ptr addrspace(3) %own, i64 0, i64 3
  %r = load i32, ptr addrspace(3) %at, align 4
)";
}
const std::string asyncHead = std::string(tile) + R"(
declare void @llvm.nvvm.cp.async.cg.shared.global.16(ptr addrspace(3), ptr addrspace(1))
declare void @llvm.nvvm.cp.async.commit.group()
declare void @llvm.nvvm.cp.async.wait.group(i32 immarg)
)";

TEST_F(EmulatedWarp, AnAsynchronousCopyIsThereAfterTheWait) {
  std::vector<int> values(64);
  for (int i = 0; i < 64; ++i)
    values[i] = 100 + i;
  CUdeviceptr in = put(values), out = allocate(256);
  EXPECT_EQ(run(each(asyncHead, asyncCopy("call void @llvm.nvvm.cp.async.wait.group(i32 0)\n")), 1,
                16, out, in),
            CUDA_SUCCESS);
  std::vector<int> r = get<int>(out, 16);
  for (int i = 0; i < 16; ++i)
    EXPECT_EQ(r[i], 100 + 4 * i + 3);
  EXPECT_EQ(reports(), "");
  for (const char *wait : {"", "call void @llvm.nvvm.cp.async.wait.group(i32 1)\n"}) {
    cuEmulatedClearReports();
    EXPECT_EQ(run(each(asyncHead, asyncCopy(wait)), 1, 16, out, in), CUDA_ERROR_LAUNCH_FAILED);
    expectReport("that a cp.async copies to, for which nothing has waited");
  }
}

TEST_F(EmulatedWarp, WhatIsNotSupportedIsNamedAllAtOnce) {
  CUdeviceptr out = allocate(256);
  CUfunction function = each(R"(
declare void @llvm.nvvm.mbarrier.inval(ptr)
declare i32 @other(i32)
)",
                             R"(
  call void @llvm.nvvm.mbarrier.inval(ptr %in)
  %r = call i32 @other(i32 %t)
)");
  testing::internal::CaptureStderr();
  EXPECT_EQ(run(function, 1, 32, out, out), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "cuda-emulated: kernel k uses what the emulated device does not have: "
            "llvm.nvvm.mbarrier.inval, the function other\n");
}

} // namespace
