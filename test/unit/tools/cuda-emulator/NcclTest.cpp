// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Emulated NCCL by itself: what it moves and reduces, and which mistakes of its users it finds.
// Ranks are threads with a device each.
#include "tools/cuda-emulator/nccl/Nccl.h"

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <gtest/gtest.h>
#include <thread>
#include <vector>

namespace {

/// One rank: a device with a stream, and a communicator of all ranks.
struct Rank {
  int rank, ranks;
  CUcontext context = nullptr;
  CUstream stream = nullptr;
  ncclComm_t comm = nullptr;
  std::vector<CUdeviceptr> memory;

  Rank(int rank, int ranks, int device, const ncclUniqueId &id) : rank(rank), ranks(ranks) {
    EXPECT_EQ(cuInit(0), CUDA_SUCCESS);
    EXPECT_EQ(cuDevicePrimaryCtxRetain(&context, device), CUDA_SUCCESS);
    EXPECT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    EXPECT_EQ(ncclCommInitRank(&comm, ranks, id, rank), ncclSuccess);
  }
  ~Rank() {
    if (comm)
      ncclCommDestroy(comm);
    for (CUdeviceptr one : memory)
      cuMemFree_v2(one);
    cuStreamDestroy_v2(stream);
  }

  template <typename T> T *put(const std::vector<T> &values) {
    CUdeviceptr made = 0;
    EXPECT_EQ(cuMemAlloc_v2(&made, values.size() * sizeof(T)), CUDA_SUCCESS);
    EXPECT_EQ(cuMemcpyHtoD_v2(made, values.data(), values.size() * sizeof(T)), CUDA_SUCCESS);
    memory.push_back(made);
    return reinterpret_cast<T *>(made);
  }
  template <typename T> std::vector<T> get(const T *from, size_t count) {
    std::vector<T> values(count);
    EXPECT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
    EXPECT_EQ(
        cuMemcpyDtoH_v2(values.data(), reinterpret_cast<CUdeviceptr>(from), count * sizeof(T)),
        CUDA_SUCCESS);
    return values;
  }
  /// Until the stream is done, which may be with an error.
  CUresult wait() { return cuStreamSynchronize(stream); }
};

void onRanks(int ranks, const std::function<void(Rank &)> &body) {
  ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
  ncclUniqueId id;
  ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      Rank own(rank, ranks, rank, id);
      body(own);
    });
  for (std::thread &thread : threads)
    thread.join();
  for (int device = 0; device < ranks; ++device)
    cuDevicePrimaryCtxRelease_v2(device);
}

class EmulatedNccl : public testing::Test {
protected:
  void SetUp() override { cuEmulatedClearReports(); }
  void TearDown() override {
    std::string found = cuEmulatedReports(nullptr);
    if (expected.empty())
      EXPECT_EQ(found, "");
    for (const std::string &part : expected)
      EXPECT_NE(found.find(part), std::string::npos) << "no '" << part << "' in: " << found;
    cuEmulatedClearReports();
  }
  std::vector<std::string> expected;
};

void expectLastError(const char *part) {
  EXPECT_NE(std::string(ncclGetLastError(nullptr)).find(part), std::string::npos)
      << ncclGetLastError(nullptr);
}

} // namespace

TEST_F(EmulatedNccl, EveryCollective) {
  onRanks(3, [](Rank &r) {
    std::vector<int32_t> own;
    for (int32_t i = 0; i < 6; ++i)
      own.push_back(100 * r.rank + i);
    const int32_t *in = r.put(own);
    int32_t *out = r.put(std::vector<int32_t>(18, -1));
    EXPECT_EQ(ncclAllReduce(in, out, 6, ncclInt32, ncclSum, r.comm, r.stream), ncclSuccess);
    EXPECT_EQ(r.get(out, 6), (std::vector<int32_t>{300, 303, 306, 309, 312, 315}));
    EXPECT_EQ(ncclAllReduce(in, out, 6, ncclInt32, ncclMax, r.comm, r.stream), ncclSuccess);
    EXPECT_EQ(r.get(out, 2), (std::vector<int32_t>{200, 201}));
    EXPECT_EQ(ncclReduceScatter(in, out, 2, ncclInt32, ncclSum, r.comm, r.stream), ncclSuccess);
    EXPECT_EQ(r.get(out, 2), (std::vector<int32_t>{300 + 6 * r.rank, 303 + 6 * r.rank}));
    EXPECT_EQ(ncclAllGather(in, out, 2, ncclInt32, r.comm, r.stream), ncclSuccess);
    EXPECT_EQ(r.get(out, 6), (std::vector<int32_t>{0, 1, 100, 101, 200, 201}));
    EXPECT_EQ(ncclBroadcast(in, out, 3, ncclInt32, 1, r.comm, r.stream), ncclSuccess);
    EXPECT_EQ(r.get(out, 3), (std::vector<int32_t>{100, 101, 102}));
    EXPECT_EQ(
        ncclReduce(in, r.rank == 2 ? out : nullptr, 2, ncclInt32, ncclProd, 2, r.comm, r.stream),
        ncclSuccess);
    if (r.rank == 2)
      EXPECT_EQ(r.get(out, 2), (std::vector<int32_t>{0, 1 * 101 * 201}));
    r.wait();
    // Everybody sends to the next, and to itself.
    EXPECT_EQ(ncclGroupStart(), ncclSuccess);
    ncclSend(in, 2, ncclInt32, (r.rank + 1) % 3, r.comm, r.stream);
    ncclRecv(out, 2, ncclInt32, (r.rank + 2) % 3, r.comm, r.stream);
    ncclSend(in + 4, 1, ncclInt32, r.rank, r.comm, r.stream);
    ncclRecv(out + 2, 1, ncclInt32, r.rank, r.comm, r.stream);
    EXPECT_EQ(ncclGroupEnd(), ncclSuccess);
    int32_t before = 100 * ((r.rank + 2) % 3);
    EXPECT_EQ(r.get(out, 3), (std::vector<int32_t>{before, before + 1, 100 * r.rank + 4}));
  });
}

// As between NCCL's ranks: rounded after each addition, and a NaN loses.
TEST_F(EmulatedNccl, RoundingAndNaNs) {
  onRanks(3, [](Rank &r) {
    // bf16 has 8 bits: 256 + 1 is 256 again, twice; the exact sum would be 258.
    const uint16_t values[] = {0x4380, 0x3f80, 0x3f80}; // 256, 1, 1
    const uint16_t *in = r.put(std::vector<uint16_t>{values[r.rank]});
    uint16_t *out = r.put(std::vector<uint16_t>{0});
    EXPECT_EQ(ncclAllReduce(in, out, 1, ncclBfloat16, ncclSum, r.comm, r.stream), ncclSuccess);
    EXPECT_EQ(r.get(out, 1)[0], 0x4380);
    const float *x = r.put(std::vector<float>{r.rank == 1 ? NAN : float(r.rank)});
    float *y = r.put(std::vector<float>{-1});
    EXPECT_EQ(ncclAllReduce(x, y, 1, ncclFloat32, ncclMax, r.comm, r.stream), ncclSuccess);
    EXPECT_EQ(r.get(y, 1)[0], 2.0f);
    const int8_t *small = r.put(std::vector<int8_t>{100});
    int8_t *sum = r.put(std::vector<int8_t>{0});
    EXPECT_EQ(ncclAllReduce(small, sum, 1, ncclInt8, ncclSum, r.comm, r.stream), ncclSuccess);
    EXPECT_EQ(r.get(sum, 1)[0], int8_t(300 - 256)) << "integers wrap around";
  });
}

TEST_F(EmulatedNccl, SplitsByColorAndKey) {
  onRanks(4, [](Rank &r) {
    ncclComm_t half = nullptr, none = nullptr;
    EXPECT_EQ(ncclCommSplit(r.comm, r.rank % 2, -r.rank, &half, nullptr), ncclSuccess);
    int rank = -1, count = 0;
    ncclCommUserRank(half, &rank);
    ncclCommCount(half, &count);
    EXPECT_EQ(count, 2);
    EXPECT_EQ(rank, r.rank < 2 ? 1 : 0) << "keys fall with the rank";
    EXPECT_EQ(ncclCommSplit(r.comm, r.rank == 3 ? 0 : -1, 0, &none, nullptr), ncclSuccess);
    EXPECT_EQ(none != nullptr, r.rank == 3);
    const int32_t *in = r.put(std::vector<int32_t>{r.rank});
    int32_t *out = r.put(std::vector<int32_t>{-1, -1});
    EXPECT_EQ(ncclAllGather(in, out, 1, ncclInt32, half, r.stream), ncclSuccess);
    int32_t odd = r.rank % 2;
    EXPECT_EQ(r.get(out, 2), (std::vector<int32_t>{2 + odd, odd}));
    for (ncclComm_t made : {half, none})
      if (made)
        ncclCommDestroy(made);
  });
}

TEST_F(EmulatedNccl, RanksInDifferentCollectives) {
  expected = {"ranks disagree in operation 1", "ncclAllReduce of 4 elements",
              "ncclAllGather of 4 elements"};
  onRanks(2, [](Rank &r) {
    const float *in = r.put(std::vector<float>(4, 1));
    float *out = r.put(std::vector<float>(8, 0));
    if (r.rank == 0)
      ncclAllReduce(in, out, 4, ncclFloat32, ncclSum, r.comm, r.stream);
    else
      ncclAllGather(in, out, 4, ncclFloat32, r.comm, r.stream);
    EXPECT_NE(r.wait(), CUDA_SUCCESS);
    ncclCommAbort(std::exchange(r.comm, nullptr));
  });
}

TEST_F(EmulatedNccl, ArgumentsThatDiffer) {
  expected = {"ranks disagree", "of 4 elements", "of 3 elements"};
  onRanks(2, [](Rank &r) {
    float *data = r.put(std::vector<float>(4, 1));
    ncclAllReduce(data, data, r.rank == 0 ? 4 : 3, ncclFloat32, ncclSum, r.comm, r.stream);
    EXPECT_NE(r.wait(), CUDA_SUCCESS);
    ncclCommAbort(std::exchange(r.comm, nullptr));
  });
}

TEST_F(EmulatedNccl, MoreSentThanExpected) {
  expected = {"rank 0 sends 4 elements", "which expects 2"};
  onRanks(2, [](Rank &r) {
    float *data = r.put(std::vector<float>(4, 1));
    if (r.rank == 0)
      ncclSend(data, 4, ncclFloat32, 1, r.comm, r.stream);
    else
      ncclRecv(data, 2, ncclFloat32, 0, r.comm, r.stream);
    r.wait();
    ncclCommAbort(std::exchange(r.comm, nullptr));
  });
}

TEST_F(EmulatedNccl, AGroupThatIsNotEnded) {
  expected = {"ncclGroupStart without ncclGroupEnd", "ncclCommDestroy"};
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
  onRanks(1, [](Rank &r) {
    float *data = r.put(std::vector<float>(4, 1));
    ncclGroupStart();
    EXPECT_EQ(ncclAllReduce(data, data, 4, ncclFloat32, ncclSum, r.comm, r.stream), ncclSuccess);
    EXPECT_EQ(ncclCommDestroy(std::exchange(r.comm, nullptr)), ncclSuccess);
    EXPECT_EQ(ncclGroupEnd(), ncclInvalidArgument) << "its communicator is gone";
  });
}

TEST_F(EmulatedNccl, WrongArguments) {
  onRanks(2, [](Rank &r) {
    float *data = r.put(std::vector<float>(8, 1));
    auto reduce = [&](const void *in, void *out, int type, int op, ncclComm_t comm,
                      CUstream stream) {
      return ncclAllReduce(in, out, 4, type, op, comm, stream);
    };
    EXPECT_EQ(reduce(nullptr, data, ncclFloat32, ncclSum, r.comm, r.stream), ncclInvalidArgument);
    EXPECT_EQ(reduce(data, nullptr, ncclFloat32, ncclSum, r.comm, r.stream), ncclInvalidArgument);
    EXPECT_EQ(reduce(data, data, 99, ncclSum, r.comm, r.stream), ncclInvalidArgument);
    EXPECT_EQ(reduce(data, data, ncclFloat32, 17, r.comm, r.stream), ncclInvalidArgument);
    EXPECT_EQ(reduce(data, data, ncclFloat32, ncclSum, nullptr, r.stream), ncclInvalidArgument);
    EXPECT_EQ(reduce(data, data + 1, ncclFloat32, ncclSum, r.comm, r.stream), ncclInvalidArgument)
        << "they overlap";
    EXPECT_EQ(ncclBroadcast(data, data, 4, ncclFloat32, 2, r.comm, r.stream), ncclInvalidArgument);
    EXPECT_EQ(ncclSend(data, 4, ncclFloat32, -1, r.comm, r.stream), ncclInvalidArgument);
    ncclUniqueId id{};
    ncclComm_t none = nullptr;
    EXPECT_EQ(ncclCommInitRank(&none, 2, id, 5), ncclInvalidArgument);
    ncclConfig_t raw{};
    EXPECT_EQ(ncclCommInitRankConfig(&none, 2, id, 0, &raw), ncclInvalidArgument);
  });
}

TEST_F(EmulatedNccl, OneThatDoesNotBlockMustBeAsked) {
  ncclUniqueId id;
  ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  onRanks(1, [&](Rank &r) {
    float *data = r.put(std::vector<float>(4, 1));
    ncclConfig_t config{sizeof(ncclConfig_t), 0xcafebeef, 21800, 0};
    ncclComm_t comm = nullptr;
    EXPECT_EQ(ncclCommInitRankConfig(&comm, 1, id, 0, &config), ncclInProgress);
    EXPECT_EQ(ncclAllReduce(data, data, 4, ncclFloat32, ncclSum, comm, r.stream), ncclInvalidUsage);
    expectLastError("in progress");
    auto settle = [&] {
      ncclResult_t state = ncclInProgress;
      while (state == ncclInProgress)
        EXPECT_EQ(ncclCommGetAsyncError(comm, &state), ncclSuccess);
      EXPECT_EQ(state, ncclSuccess);
    };
    settle();
    EXPECT_EQ(ncclAllReduce(data, data, 4, ncclFloat32, ncclSum, comm, r.stream), ncclSuccess);
    EXPECT_EQ(ncclAllReduce(data, data, 4, ncclFloat32, ncclSum, comm, r.stream), ncclInvalidUsage);
    settle();
    EXPECT_EQ(r.wait(), CUDA_SUCCESS);
    EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
    EXPECT_EQ(ncclCommDestroy(comm), ncclInvalidArgument) << "twice";
    EXPECT_EQ(ncclAllReduce(data, data, 4, ncclFloat32, ncclSum, comm, r.stream),
              ncclInvalidArgument);
  });
}

TEST_F(EmulatedNccl, AnErrorThatIsAskedFor) {
  setenv("CUDA_EMULATED_NCCL_ERROR", "2", 1);
  onRanks(1, [](Rank &r) {
    float *data = r.put(std::vector<float>(4, 1));
    EXPECT_EQ(ncclAllReduce(data, data, 4, ncclFloat32, ncclSum, r.comm, r.stream), ncclSuccess);
    EXPECT_EQ(r.wait(), CUDA_SUCCESS);
    EXPECT_EQ(ncclAllReduce(data, data, 4, ncclFloat32, ncclSum, r.comm, r.stream), ncclSuccess);
    // The second question is told.
    for (ncclResult_t wanted : {ncclSuccess, ncclRemoteError, ncclRemoteError}) {
      ncclResult_t state = ncclInProgress;
      EXPECT_EQ(ncclCommGetAsyncError(r.comm, &state), ncclSuccess);
      EXPECT_EQ(state, wanted);
    }
    expectLastError("CUDA_EMULATED_NCCL_ERROR");
    EXPECT_EQ(cuStreamQuery(r.stream), CUDA_ERROR_NOT_READY);
    ncclCommAbort(std::exchange(r.comm, nullptr));
    EXPECT_EQ(r.wait(), CUDA_SUCCESS) << "the stream goes on";
  });
  unsetenv("CUDA_EMULATED_NCCL_ERROR");
}

// A graph's collectives run in each of its launches.
TEST_F(EmulatedNccl, Graphs) {
  onRanks(2, [](Rank &r) {
    int32_t *data = r.put(std::vector<int32_t>{r.rank + 1});
    CUgraph graph = nullptr;
    CUgraphExec executable = nullptr;
    EXPECT_EQ(cuStreamBeginCapture_v2(r.stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), CUDA_SUCCESS);
    EXPECT_EQ(ncclAllReduce(data, data, 1, ncclInt32, ncclSum, r.comm, r.stream), ncclSuccess);
    EXPECT_EQ(cuStreamEndCapture(r.stream, &graph), CUDA_SUCCESS);
    EXPECT_EQ(cuGraphInstantiateWithFlags(&executable, graph, 0), CUDA_SUCCESS);
    EXPECT_EQ(cuGraphDestroy(graph), CUDA_SUCCESS);
    EXPECT_EQ(r.get(data, 1)[0], r.rank + 1) << "nothing has run";
    for (int i = 0; i < 3; ++i)
      EXPECT_EQ(cuGraphLaunch(executable, r.stream), CUDA_SUCCESS);
    EXPECT_EQ(r.get(data, 1)[0], 12); // 3, 6, 12
    EXPECT_EQ(cuGraphExecDestroy(executable), CUDA_SUCCESS);
  });
}
