// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Orders of streams, events, graphs, and operations that nothing orders.
#include "test/unit/tools/cuda-emulator/EmulatedDevice.h"

#include <functional>

namespace {

/// word[t] += add, for the threads of one block.
const char *addWords = R"(
define ptx_kernel void @k(ptr %words, i32 %add) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %i = zext i32 %t to i64
  %at = getelementptr i32, ptr %words, i64 %i
  %x = load i32, ptr %at, align 4
  %y = add i32 %x, %add
  store i32 %y, ptr %at, align 4
  ret void
}
)";

class EmulatedStreams : public EmulatedDevice {
protected:
  void SetUp() override {
    EmulatedDevice::SetUp();
    function = load(addWords);
    words = put(std::vector<int>(128));
  }

  void add(CUstream on, int value, size_t offset = 0) {
    EXPECT_EQ(launchOn(on, function, 1, 32, 0, words + offset, value), CUDA_SUCCESS);
  }

  CUfunction function = nullptr;
  CUdeviceptr words = 0;
};

TEST_F(EmulatedStreams, EagerWorkRunsAtOnce) {
  CUstream a = stream();
  add(a, 1);
  EXPECT_EQ(cuStreamQuery(a), CUDA_SUCCESS);
}

TEST_F(EmulatedStreams, LazyWorkRunsWhenItIsWaitedFor) {
  CHECK_CU(cuEmulatedSetOrder("lazy"));
  CUstream a = stream(), b = stream();
  CUevent done = event(), other = event();
  add(a, 1);
  CHECK_CU(cuEventRecord(done, a));
  add(b, 1, 128);
  CHECK_CU(cuEventRecord(other, b));
  CHECK_CU(cuEventSynchronize(done));
  EXPECT_EQ(cuEventQuery(done), CUDA_SUCCESS);
  EXPECT_EQ(cuEventQuery(other), CUDA_ERROR_NOT_READY);
  // Whoever asks again and again gets an answer in the end.
  EXPECT_EQ(cuEventQuery(other), CUDA_SUCCESS);
}

TEST_F(EmulatedStreams, EveryOrderOfStreamsGivesTheSame) {
  for (const char *order : {"eager", "lazy", "random:1", "random:2", "random:3"}) {
    CHECK_CU(cuEmulatedSetOrder(order));
    CHECK_CU(cuMemsetD32Async(words, 0, 128, nullptr));
    CHECK_CU(cuStreamSynchronize(nullptr));
    CUstream a = stream(), b = stream();
    for (int i = 0; i < 5; ++i) {
      CUevent forth = event(), back = event();
      add(a, 1);
      CHECK_CU(cuEventRecord(forth, a));
      CHECK_CU(cuStreamWaitEvent(b, forth, 0));
      add(b, 10);
      CHECK_CU(cuEventRecord(back, b));
      CHECK_CU(cuStreamWaitEvent(a, back, 0));
    }
    CHECK_CU(cuCtxSynchronize());
    EXPECT_EQ(get<int>(words, 32), std::vector<int>(32, 55)) << order;
  }
  EXPECT_EQ(reports(), "");
}

TEST_F(EmulatedStreams, OperationsThatNothingOrdersAreReported) {
  for (const char *order : {"eager", "lazy", "random:7"}) {
    cuEmulatedClearReports();
    CHECK_CU(cuEmulatedSetOrder(order));
    CUstream a = stream(), b = stream();
    add(a, 1);
    add(b, 1);
    EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_LAUNCH_FAILED) << order;
    expectReport("unordered operations: writes 128 bytes that kernel k writes");
  }
}

TEST_F(EmulatedStreams, OperationsOnDifferentBytesNeedNoOrder) {
  CUstream a = stream(), b = stream();
  add(a, 1);
  add(b, 1, 128);
  CHECK_CU(cuCtxSynchronize());
  EXPECT_EQ(reports(), "");
}

TEST_F(EmulatedStreams, TheHostOrdersWhatItWaitsFor) {
  CUstream a = stream(), b = stream();
  add(a, 1);
  CHECK_CU(cuStreamSynchronize(a));
  add(b, 1);
  CHECK_CU(cuCtxSynchronize());
  EXPECT_EQ(reports(), "");
}

TEST_F(EmulatedStreams, ACopyIsComparedWithKernels) {
  CUstream a = stream(), b = stream();
  CUdeviceptr to = allocate(512);
  add(a, 1);
  CHECK_CU(cuMemcpyDtoDAsync_v2(to, words, 64, b));
  expectReport("copy of 64 bytes from the device to the device: unordered operations: reads 64 "
               "bytes that kernel k writes");
}

TEST_F(EmulatedStreams, ADroppedWaitIsReported) {
  for (int dropped = 0; dropped < 3; ++dropped) {
    cuEmulatedClearReports();
    CHECK_CU(cuEmulatedSetDrop(("wait:" + std::to_string(dropped)).c_str()));
    CUstream a = stream(), b = stream();
    for (int i = 0; i < 3; ++i) {
      CUevent forth = event();
      add(i % 2 ? b : a, 1);
      CHECK_CU(cuEventRecord(forth, i % 2 ? b : a));
      CHECK_CU(cuStreamWaitEvent(i % 2 ? a : b, forth, 0));
      // What is in order already is nothing to drop, and what was dropped stays so.
      CHECK_CU(cuStreamWaitEvent(i % 2 ? a : b, forth, 0));
      if (i == dropped)
        break;
    }
    EXPECT_EQ(cuEmulatedCount("wait"), uint64_t(dropped) + 1);
    launchOn(dropped % 2 ? a : b, function, 1, 32, 0, words, 1);
    EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_LAUNCH_FAILED) << dropped;
    expectReport("unordered operations");
  }
}

TEST_F(EmulatedStreams, StreamZeroIsOrderedWithBlockingStreams) {
  CUstream blocking = stream(CU_STREAM_DEFAULT);
  add(blocking, 1);
  add(nullptr, 1);
  add(blocking, 1);
  CHECK_CU(cuCtxSynchronize());
  EXPECT_EQ(reports(), "");
  add(stream(), 1);
  add(nullptr, 1);
  expectReport("unordered operations");
}

TEST_F(EmulatedStreams, AGraphRunsWhatWasCaptured) {
  CUstream a = stream(), b = stream();
  CUevent forth = event(), back = event();
  CHECK_CU(cuStreamBeginCapture_v2(a, CU_STREAM_CAPTURE_MODE_GLOBAL));
  add(a, 1);
  CHECK_CU(cuEventRecord(forth, a));
  CHECK_CU(cuStreamWaitEvent(b, forth, 0));
  add(b, 10);
  add(a, 100, 128);
  CHECK_CU(cuEventRecord(back, b));
  CHECK_CU(cuStreamWaitEvent(a, back, 0));
  add(a, 1000);
  CUgraph graph = nullptr;
  CHECK_CU(cuStreamEndCapture(a, &graph));
  EXPECT_EQ(get<int>(words, 1)[0], 0) << "capture has run something";
  size_t nodes = 0;
  CHECK_CU(cuGraphGetNodes(graph, nullptr, &nodes));
  EXPECT_EQ(nodes, 4u);
  CUgraphExec executable = nullptr;
  CHECK_CU(cuGraphInstantiateWithFlags(&executable, graph, 0));
  CHECK_CU(cuGraphDestroy(graph));
  for (const char *order : {"eager", "lazy", "random:5"}) {
    CHECK_CU(cuEmulatedSetOrder(order));
    CHECK_CU(cuMemsetD32Async(words, 0, 128, a));
    for (int i = 0; i < 3; ++i)
      CHECK_CU(cuGraphLaunch(executable, a));
    CHECK_CU(cuStreamSynchronize(a));
    EXPECT_EQ(get<int>(words, 1)[0], 3 * 1011) << order;
    EXPECT_EQ(get<int>(words + 128, 1)[0], 300) << order;
  }
  EXPECT_EQ(reports(), "");
  CHECK_CU(cuGraphExecDestroy(executable));
}

TEST_F(EmulatedStreams, AGraphWithoutAWaitIsReported) {
  CUstream a = stream(), b = stream();
  CUevent fork = event(), back = event();
  CHECK_CU(cuStreamBeginCapture_v2(a, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CHECK_CU(cuEventRecord(fork, a));
  CHECK_CU(cuStreamWaitEvent(b, fork, 0));
  add(a, 1);
  add(b, 10); // of the same words
  CHECK_CU(cuEventRecord(back, b));
  CHECK_CU(cuStreamWaitEvent(a, back, 0));
  CUgraph graph = nullptr;
  CHECK_CU(cuStreamEndCapture(a, &graph));
  CUgraphExec executable = nullptr;
  CHECK_CU(cuGraphInstantiateWithFlags(&executable, graph, 0));
  EXPECT_EQ(reports(), "");
  cuGraphLaunch(executable, a);
  EXPECT_EQ(cuStreamSynchronize(a), CUDA_ERROR_LAUNCH_FAILED);
  expectReport("unordered operations");
  cuGraphExecDestroy(executable);
  cuGraphDestroy(graph);
}

TEST_F(EmulatedStreams, IllegalCallsDuringCaptureInvalidateIt) {
  CUstream a = stream();
  CUdeviceptr memory = 0;
  CUevent before = event();
  CHECK_CU(cuEventRecord(before, a));
  CUgraph graph = nullptr;
  struct Case {
    const char *name;
    std::function<CUresult()> call;
    CUresult expected;
  };
  for (const Case &c :
       std::vector<Case>{{"cuMemAlloc", [&] { return cuMemAlloc_v2(&memory, 64); },
                          CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED},
                         {"cuStreamSynchronize", [&] { return cuStreamSynchronize(a); },
                          CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED},
                         {"cuCtxSynchronize", [&] { return cuCtxSynchronize(); },
                          CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED},
                         {"cuEventQuery", [&] { return cuEventQuery(before); },
                          CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED},
                         {"cuStreamWaitEvent", [&] { return cuStreamWaitEvent(a, before, 0); },
                          CUDA_ERROR_STREAM_CAPTURE_ISOLATION}}) {
    cuEmulatedClearReports();
    CHECK_CU(cuStreamBeginCapture_v2(a, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    add(a, 1);
    EXPECT_EQ(c.call(), c.expected) << c.name;
    EXPECT_NE(reports().find(std::string("illegal during capture: ") + c.name), std::string::npos)
        << reports();
    EXPECT_EQ(launchOn(a, function, 1, 32, 0, words, 1), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    EXPECT_EQ(cuStreamEndCapture(a, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED) << c.name;
    EXPECT_EQ(graph, nullptr);
  }
}

TEST_F(EmulatedStreams, WorkThatACaptureDoesNotJoinIsAnError) {
  CUstream a = stream(), b = stream();
  CUevent fork = event();
  CHECK_CU(cuStreamBeginCapture_v2(a, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CHECK_CU(cuEventRecord(fork, a));
  CHECK_CU(cuStreamWaitEvent(b, fork, 0));
  add(b, 1);
  CUgraph graph = nullptr;
  EXPECT_EQ(cuStreamEndCapture(b, &graph), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
  EXPECT_EQ(cuStreamEndCapture(a, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  CHECK_CU(cuStreamBeginCapture_v2(a, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CHECK_CU(cuEventRecord(fork, a));
  CHECK_CU(cuStreamWaitEvent(b, fork, 0));
  add(b, 1);
  EXPECT_EQ(cuStreamEndCapture(a, &graph), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
  EXPECT_EQ(cuEventQuery(fork), CUDA_ERROR_CAPTURED_EVENT);
}

TEST_F(EmulatedStreams, MemoryOfTheHostThatIsNotPinnedIsTakenAtOnce) {
  CHECK_CU(cuEmulatedSetOrder("lazy"));
  CUstream a = stream();
  std::vector<int> values(4, 7);
  CHECK_CU(cuMemcpyHtoDAsync_v2(words, values.data(), 16, a));
  values.assign(4, 0);
  std::vector<int> result(4);
  CHECK_CU(cuMemcpyDtoHAsync_v2(result.data(), words, 16, a));
  EXPECT_EQ(result, std::vector<int>(4, 7));
}

TEST_F(EmulatedStreams, RowsAreCopied) {
  CUDA_MEMCPY2D copy{};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
  std::vector<int> from(64);
  for (int i = 0; i < 64; ++i)
    from[i] = i;
  CUdeviceptr source = put(from);
  copy.srcDevice = source;
  copy.srcPitch = 32;
  copy.dstDevice = words;
  copy.dstPitch = 16;
  copy.WidthInBytes = 8;
  copy.Height = 3;
  CHECK_CU(cuMemcpy2DAsync_v2(&copy, nullptr));
  std::vector<int> result = get<int>(words, 12);
  EXPECT_EQ(result, (std::vector<int>{0, 1, 0, 0, 8, 9, 0, 0, 16, 17, 0, 0}));
}

} // namespace
