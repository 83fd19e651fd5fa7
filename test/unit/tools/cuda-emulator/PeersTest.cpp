// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What orders work of host threads that have different devices.
#include "test/unit/tools/cuda-emulator/EmulatedDevice.h"

#include <thread>

namespace {

/// Two devices, each with a thread of its own, that reach each other.
class EmulatedPeers : public EmulatedDevice {
protected:
  void SetUp() override {
    EmulatedDevice::SetUp();
    mine = allocate(256);
    CHECK_CU(cuDevicePrimaryCtxRetain(&other, 1));
    CHECK_CU(cuCtxEnablePeerAccess(other, 0));
    on([&] {
      EXPECT_EQ(cuCtxEnablePeerAccess(context, 0), CUDA_SUCCESS);
      EXPECT_EQ(cuMemAlloc_v2(&theirs, 256), CUDA_SUCCESS);
      EXPECT_EQ(cuStreamCreate(&otherStream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    });
  }
  void TearDown() override {
    cuEmulatedClearReports();
    CHECK_CU(cuCtxDisablePeerAccess(other));
    on([&] {
      EXPECT_EQ(cuCtxDisablePeerAccess(context), CUDA_SUCCESS);
      EXPECT_EQ(cuStreamSynchronize(otherStream), CUDA_SUCCESS);
      EXPECT_EQ(cuStreamDestroy_v2(otherStream), CUDA_SUCCESS);
      EXPECT_EQ(cuMemFree_v2(theirs), CUDA_SUCCESS);
    });
    CHECK_CU(cuDevicePrimaryCtxRelease_v2(1));
    EmulatedDevice::TearDown();
  }
  /// Calls body in a new thread, in the context of the other device.
  template <typename Body> void on(Body body) {
    std::thread([&] {
      EXPECT_EQ(cuCtxSetCurrent(other), CUDA_SUCCESS);
      body();
    }).join();
  }
  /// The other device reads this one's memory.
  CUresult readMine() { return cuMemcpyAsync(theirs, mine, 256, otherStream); }

  CUcontext other = nullptr;
  CUdeviceptr mine = 0, theirs = 0;
  CUstream otherStream = nullptr;
};

TEST_F(EmulatedPeers, WhatAThreadWaitsForOrdersNothingOfAnotherOne) {
  CUstream writer = stream();
  CHECK_CU(cuMemsetD8Async(mine, 1, 256, writer));
  CHECK_CU(cuStreamSynchronize(writer));
  on([&] { readMine(); });
  EXPECT_NE(reports().find("unordered operations: reads 256 bytes that fill of 256 bytes writes"),
            std::string::npos)
      << reports();
}

TEST_F(EmulatedPeers, AnEventOrdersWorkOfAnotherThread) {
  CUstream writer = stream();
  CUevent written = event();
  CHECK_CU(cuMemsetD8Async(mine, 1, 256, writer));
  CHECK_CU(cuEventRecord(written, writer));
  on([&] {
    EXPECT_EQ(cuStreamWaitEvent(otherStream, written, 0), CUDA_SUCCESS);
    EXPECT_EQ(readMine(), CUDA_SUCCESS);
  });
  EXPECT_EQ(reports(), "");
}

TEST_F(EmulatedPeers, AThreadTakesAlongWhatItHasWaitedFor) {
  CUstream writer = stream();
  CHECK_CU(cuMemsetD8Async(mine, 1, 256, writer));
  CHECK_CU(cuStreamSynchronize(writer));
  CHECK_CU(cuCtxSetCurrent(other));
  CHECK_CU(readMine());
  CHECK_CU(cuStreamSynchronize(otherStream));
  CHECK_CU(cuCtxSetCurrent(context));
  EXPECT_EQ(reports(), "");
}

TEST_F(EmulatedPeers, ThreadsOfAContextTellEachOther) {
  on([&] {
    EXPECT_EQ(cuMemsetD8Async(mine, 1, 256, otherStream), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamSynchronize(otherStream), CUDA_SUCCESS);
  });
  on([&] {
    CUstream second = nullptr;
    EXPECT_EQ(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    EXPECT_EQ(cuMemsetD8Async(mine, 2, 256, second), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamSynchronize(second), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamDestroy_v2(second), CUDA_SUCCESS);
  });
  // This thread waits for an event of the other device itself.
  CUevent done = nullptr;
  on([&] {
    EXPECT_EQ(cuEventCreate(&done, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
    EXPECT_EQ(cuEventRecord(done, otherStream), CUDA_SUCCESS);
  });
  CHECK_CU(cuEventSynchronize(done));
  CHECK_CU(cuMemsetD8Async(mine, 3, 256, stream()));
  CHECK_CU(cuCtxSynchronize());
  on([&] { EXPECT_EQ(cuEventDestroy_v2(done), CUDA_SUCCESS); });
  EXPECT_EQ(reports(), "");
}

TEST_F(EmulatedPeers, MemoryIsReleasedAfterWhatAnotherDeviceDoesWithIt) {
  for (bool waits : {false, true}) {
    CUdeviceptr shared = allocate(256);
    CUstream writer = stream();
    CUevent written = event(), seen = nullptr;
    CHECK_CU(cuMemsetD8Async(shared, 1, 256, writer));
    CHECK_CU(cuEventRecord(written, writer));
    on([&] {
      EXPECT_EQ(cuEventCreate(&seen, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
      EXPECT_EQ(cuStreamWaitEvent(otherStream, written, 0), CUDA_SUCCESS);
      EXPECT_EQ(cuMemcpyAsync(theirs, shared, 256, otherStream), CUDA_SUCCESS);
      EXPECT_EQ(cuEventRecord(seen, otherStream), CUDA_SUCCESS);
      EXPECT_EQ(cuStreamSynchronize(otherStream), CUDA_SUCCESS);
    });
    if (waits) {
      CHECK_CU(cuStreamWaitEvent(writer, seen, 0));
      CHECK_CU(cuStreamSynchronize(writer));
      release(shared);
      EXPECT_EQ(reports(), "");
    } else {
      EXPECT_NE(cuMemFree_v2(shared), CUDA_SUCCESS);
      expectReport("release of 256 bytes: copy of 256 bytes from the device to the device reads "
                   "256 of them");
      cuEmulatedClearReports();
    }
    on([&] { EXPECT_EQ(cuEventDestroy_v2(seen), CUDA_SUCCESS); });
  }
}

} // namespace
