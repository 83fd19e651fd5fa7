// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Collectives by emulated NCCL in runs that are captured, and in those that are not: who is late,
// what has failed, and what is left. The tests run again in each order of streams.
#include "test/unit/runtime/Command.h"
#include "test/unit/runtime/device/EmulatedRanks.h"

#include <sstream>

using test::EmulatedRanks, test::EmulatedResult;
using Variable = test::EnvironmentVariable;

namespace {

class EmulatedGraph : public ::testing::Test {
protected:
  void SetUp() override { ASSERT_TRUE(test::emulatedDriver()) << dlerror(); }
  Variable device{"SHARDRT_DEVICE_COLLECTIVES", "device"};
};

void expectParts(const std::string &text, std::initializer_list<const char *> parts) {
  for (const char *part : parts)
    EXPECT_NE(text.find(part), std::string::npos) << "no '" << part << "' in: " << text;
}

/// Memory of device 1, as a caller has it, with these elements.
class OnDeviceOne {
public:
  using Address = unsigned long long;
  OnDeviceOne() {
    test::driverCall("cuInit", 0u);
    test::driverCall("cuDeviceGet", &device, 1);
    test::driverCall("cuDevicePrimaryCtxRetain", &context, device);
  }
  ~OnDeviceOne() {
    test::driverCall("cuCtxSetCurrent", context);
    for (Address block : blocks)
      test::driverCall("cuMemFree_v2", block);
    test::driverCall("cuDevicePrimaryCtxRelease_v2", device);
  }
  OnDeviceOne(const OnDeviceOne &) = delete;

  const void *put(const std::vector<float> &x) {
    Address block = 0;
    test::driverCall("cuCtxSetCurrent", context);
    test::driverCall("cuMemAlloc_v2", &block, 4 * x.size());
    test::driverCall("cuMemcpyHtoD_v2", block, static_cast<const void *>(x.data()), 4 * x.size());
    blocks.push_back(block);
    return reinterpret_cast<const void *>(block);
  }

private:
  int device = 0;
  void *context = nullptr;
  std::vector<Address> blocks;
};

} // namespace

// A graph belongs to the addresses of one rank: another rank may have others in every run. What
// they mean is compared for each size once, in the same run on both.
TEST_F(EmulatedGraph, OneRankReplaysAndTheOtherDoesNot) {
  OnDeviceOne memory;
  EmulatedRanks ranks(2);
  const uint64_t before = test::emulatedCount("graphs");
  for (size_t n : {9, 7, 9, 5})
    for (int step = 0; step < 6; ++step) {
      std::vector<float> x(n, float(step) + 1);
      const void *there = memory.put(x); // a new place each time
      EmulatedResult other;
      std::thread second([&] { other = ranks.runRank(1, there, n); });
      EmulatedResult first = ranks.runRank(0, x.data(), n);
      second.join();
      for (const EmulatedResult &result : {first, other}) {
        ASSERT_EQ(result.message, "");
        for (float y : result.y)
          EXPECT_EQ(y, 4 * x[0] + 1 + 28);
      }
    }
  // Of six runs of a size all but the first are graphs, on rank 0, and all of the size that was
  // there before.
  EXPECT_EQ(test::emulatedCount("graphs") - before, 5u + 5u + 6u + 5u);
}

TEST_F(EmulatedGraph, ARankThatIsMissingAtTheDeadline) {
  for (int steps : {1, 6}) { // the next one is eager, or a graph
    EmulatedRanks ranks(2, 0, nullptr, 6);
    for (int step = 0; step < steps; ++step)
      ranks.expectRight(4, 1);
    const std::vector<float> x(steps > 1 ? 4 : 5, 1); // a size that is new, or not
    const uint64_t before = test::emulatedCount("graphs");
    EmulatedResult alone = ranks.runRank(0, x.data(), x.size());
    EXPECT_EQ(test::emulatedCount("graphs") - before, steps > 1 ? 1u : 0u);
    EXPECT_EQ(alone.status, SHARDRT_TIMEOUT);
    expectParts(alone.message, {"all_reduce.0 (y (model.py:5))", "missing rank 1"});
  }
}

// The second collective of a step fails: in a graph, it is told apart from the first. NCCL says so
// when the host asks for the second time after the start of the one that fails: by then the host
// has seen that the one before is done.
TEST_F(EmulatedGraph, TheCollectiveThatHasFailedIsNamed) {
  for (auto [number, failing] : {std::pair("4:1", 1), {"10:1", 4}}) {
    Variable error("CUDA_EMULATED_NCCL_ERROR", number);
    EmulatedRanks ranks(2);
    for (int step = 0; step < failing; ++step)
      ranks.expectRight(4, 1);
    const uint64_t before = test::emulatedCount("graphs");
    const std::vector<float> x(failing > 1 ? 4 : 5, 1); // a size that is new, or not
    std::vector<EmulatedResult> results = ranks.run({x, x});
    EXPECT_EQ(test::emulatedCount("graphs") - before, failing == 4 ? 2u : 0u);
    for (const EmulatedResult &result : results) {
      EXPECT_EQ(result.status, SHARDRT_ABORTED);
      expectParts(result.message,
                  {"all_reduce.1 (total (model.py:6))", "CUDA_EMULATED_NCCL_ERROR"});
    }
  }
}

TEST_F(EmulatedGraph, ArenasAreRegistered) {
  const uint64_t communicators = test::emulatedCount("communicators");
  {
    EmulatedRanks ranks(2);
    ranks.expectRight(1000, 1);
    uint64_t arenas = 0;
    for (const auto &model : ranks.models) {
      shardrt_memory memory{};
      shardrt_memory_used(model->get(), &memory);
      arenas += memory.arena_bytes;
    }
    EXPECT_EQ(test::emulatedCount("registered"), arenas);
    EXPECT_EQ(test::emulatedCount("communicators"), communicators + 2);
  }
  EXPECT_EQ(test::emulatedCount("registered"), 0u);
  EXPECT_EQ(test::emulatedCount("communicators"), communicators);
}

TEST_F(EmulatedGraph, AnOldNccl) {
  Variable version("CUDA_EMULATED_NCCL_VERSION", "21705");
  EmulatedRanks ranks(2);
  for (const EmulatedResult &result : ranks.run({{1, 2}, {1, 2}})) {
    EXPECT_EQ(result.status, SHARDRT_NOT_FOUND);
    expectParts(result.message, {"is NCCL 2.17.5, and the plugin needs 2.18.0 at least"});
  }
}

// As launchers say which of its host's ranks a process is.
TEST_F(EmulatedGraph, TheDeviceOfALocalRank) {
  // Both models are of this one process, so that they have its device.
  Variable host("SHARDRT_DEVICE_COLLECTIVES", "host"), address("MASTER_ADDR", "127.0.0.1"),
      port("MASTER_PORT", "29512"), rank("RANK", "1"), world("WORLD_SIZE", "2");
  for (bool isFirst : {true, false}) {
    Variable localRank("LOCAL_RANK", isFirst ? "0" : "1"),
        localSize("LOCAL_WORLD_SIZE", isFirst ? "1" : "2");
    EmulatedRanks ranks(2);
    EXPECT_EQ(ranks.said.find("(device 0, sm_80)") != std::string::npos, isFirst) << ranks.said;
    EXPECT_EQ(ranks.said.find("(device 1, sm_80)") != std::string::npos, !isFirst) << ranks.said;
    ranks.expectRight(3, 1);
  }
}

// Programs that end in any way while models are there. Memory that is freed gets other contents at
// once, so that whoever uses it at the end is found.
TEST_F(EmulatedGraph, ExitsWithModels) {
  Variable malloc("GLIBC_TUNABLES", "glibc.malloc.tcache_count=0:glibc.malloc.perturb=90");
  test::Folder folder;
  for (const char *way : {"static", "leaked", "exit", "thread"}) {
    test::Finished done = test::runCommand(folder, std::string("'") + ARTIFACTS +
                                                       "/device_exit' '" + ARTIFACTS + "' " + way);
    EXPECT_EQ(done.status, 7) << way << ": " << done.err;
    EXPECT_EQ(done.out, "ran\n") << way;
    // What is left then is left to the driver: nothing but that is said.
    std::istringstream lines(done.err);
    for (std::string line; std::getline(lines, line);)
      EXPECT_TRUE(line.empty() || line.find("cuda-emulated: leak on device") == 0) << line;
  }
}
