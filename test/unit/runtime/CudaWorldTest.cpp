// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Collectives between emulated devices by emulated NCCL: the suites of all communicators, between
// threads and between processes, and what only streams can meet with.
#include "test/unit/runtime/CudaRanks.h"
#include "test/unit/runtime/PluginWorlds.h"
#include "test/unit/runtime/ToyPlugin.h"

using namespace shardc::rt;
using test::CudaEnd;
using test::onDevices;
using test::Outcome;
using test::processes;
using test::ranks;
using test::threads;

namespace {

/// Ranks over a control plane and a plugin, as those on several hosts.
test::WorldKind plugins() {
  static const shardrt_transport_plugin table = test::ToyPlugin<true>::table();
  return test::pluginWorlds("plugins", {"toy", &table, nullptr});
}

} // namespace

SHARDRT_HOST_CONFORMANCE(Cuda, test::cudaWorlds("threads", threads()),
                         test::cudaWorlds("plugins", plugins()),
                         test::cudaWorlds("threadsLazy", threads(), "lazy"),
                         test::cudaWorlds("threadsRandom", threads(), "random:7"),
                         test::cudaWorlds("processes", processes(), "eager", "device", 8, true),
                         test::cudaWorlds("processesLazy", processes(), "lazy"),
                         test::cudaWorlds("processesRandom", processes(), "random:11"));

namespace {

using CudaWorld = test::OnEmulatedDevice;
/// Ranks that are processes, which may share a real device.
using CudaProcesses = test::OnDevice;

/// An all-reduce of ones over the world; every call is the same collective.
struct AllReduce {
  void run(Communicator &end, double timeout, uint64_t number = 1) {
    std::vector<float> data(64, 1.0f);
    shardrt_collective_tensor tensor{data.data(), data.data(), extents, nullptr, nullptr};
    CollectiveCall call;
    ASSERT_EQ(call.assign(collective.desc, end.group(ranks(end.worldSize())), number, &tensor), "");
    test::runCollective(end, call, timeout);
    EXPECT_EQ(data[63], float(end.worldSize()));
  }
  test::Collective collective{SHARDRT_ALL_REDUCE,
                              SHARDRT_SUM,
                              {{SHARDRT_F32, 1, -1, -1}},
                              "all_reduce.7",
                              "encoder.layer.3 (bert.py:42)"};
  int64_t extents[1] = {64};
};

void expectParts(const Outcome &outcome, std::initializer_list<const char *> parts) {
  for (const char *part : parts)
    EXPECT_NE(outcome.message.find(part), std::string::npos)
        << "no '" << part << "' in: " << outcome.message;
}

} // namespace

TEST_F(CudaWorld, CollectivesAreOnTheDevice) {
  AllReduce reduce;
  for (const Outcome &outcome : onDevices(threads(), 4, [&](CudaEnd &end) {
         for (int i = 0; i < 5; ++i)
           reduce.run(end, 60);
         EXPECT_EQ(end.enqueued, 5u);
         EXPECT_EQ(end.transport->device(), "cuda");
       }))
    EXPECT_EQ(outcome.status, SHARDRT_OK) << outcome.message;
}

// NCCL has nobody to talk to, and is asked all the same.
TEST_F(CudaProcesses, AWorldOfOne) {
  for (const Outcome &outcome :
       test::cudaWorlds("", processes(), "eager", "device", 8, true).run(1, [](auto &end) {
         test::connectGroups(end, {ranks(1)});
         AllReduce reduce;
         for (int i = 0; i < 3; ++i)
           reduce.run(end, 60);
         EXPECT_EQ(dynamic_cast<CudaEnd &>(end).enqueued, 3u);
       }))
    EXPECT_EQ(outcome.status, SHARDRT_OK) << outcome.message;
}

// All ranks know the collective, so that they do not meet on the host any more.
TEST_F(CudaWorld, ARankThatLeavesBetweenTwoCollectives) {
  AllReduce reduce;
  for (const test::WorldKind &kind : {threads(), processes(), plugins()}) {
    auto outcomes = onDevices(kind, 3, [&](CudaEnd &end) {
      reduce.run(end, 60);
      if (end.rank() != 1)
        reduce.run(end, 600);
    });
    for (uint32_t rank : {0u, 2u}) {
      EXPECT_EQ(outcomes[rank].status, SHARDRT_ABORTED);
      expectParts(outcomes[rank], {"all_reduce.7 (encoder.layer.3 (bert.py:42))", "rank 1"});
    }
  }
}

TEST_F(CudaWorld, ARankThatIsLateIsNamedAtTheDeadline) {
  AllReduce reduce;
  for (const test::WorldKind &kind : {threads(), processes(), plugins()}) {
    const shardrt_op op{"linear", "encoder.layer.3.output (bert.py:40)"};
    auto outcomes = onDevices(kind, 3, [&](CudaEnd &end) {
      reduce.run(end, 60);
      if (end.rank() == 2)
        end.notePosition(&op);
      end.barrier(deadlineAfter(60)); // deadlines begin when everybody is there
      if (end.rank() == 2)
        test::awaitFailure(end, 60);
      reduce.run(end, 2);
    });
    for (uint32_t rank : {0u, 1u}) {
      EXPECT_EQ(outcomes[rank].status, SHARDRT_TIMEOUT);
      expectParts(outcomes[rank], {"all_reduce.7", "bert.py:42", "missing rank 2",
                                   "rank 2 was last seen in linear"});
    }
    EXPECT_EQ(outcomes[2].status, SHARDRT_TIMEOUT) << "a late rank must not run on alone";
  }
}

TEST_F(CudaProcesses, AProcessThatIsKilled) {
  AllReduce reduce;
  test::EnvironmentVariable wish("SHARDRT_DEVICE_COLLECTIVES", "device");
  test::Processes world(3, [&](Communicator &inner) {
    CudaEnd end(inner, int(inner.rank()));
    test::connectGroups(end, {ranks(3)});
    reduce.run(end, 60);
    if (end.rank() == 1)
      raise(SIGKILL);
    reduce.run(end, 600);
  });
  auto outcomes = world.waitAll();
  for (uint32_t rank : {0u, 2u}) {
    EXPECT_EQ(outcomes[rank].status, SHARDRT_ABORTED);
    expectParts(outcomes[rank], {"all_reduce.7", "rank 1"});
  }
}

// The second operation of rank 1 fails some time after it was enqueued.
TEST_F(CudaWorld, AnAsynchronousError) {
  AllReduce reduce;
  for (const test::WorldKind &kind : {threads(), processes(), plugins()}) {
    test::EnvironmentVariable error("CUDA_EMULATED_NCCL_ERROR", "2:1");
    auto outcomes = onDevices(kind, 3, [&](CudaEnd &end) {
      for (int i = 0; i < 4; ++i)
        reduce.run(end, 600);
    });
    for (uint32_t rank = 0; rank < 3; ++rank) {
      EXPECT_EQ(outcomes[rank].status, SHARDRT_ABORTED) << rank;
      expectParts(outcomes[rank],
                  {"all_reduce.7", "CUDA_EMULATED_NCCL_ERROR", "remote process exited"});
    }
  }
}

// Counts of exchanges are compared in every call, and what fits goes on.
TEST_F(CudaWorld, CountsThatChangeFromCallToCall) {
  test::Collective exchange(SHARDRT_ALL_TO_ALL, SHARDRT_REDUCE_NONE, {{SHARDRT_I32, 1, 0, 0}},
                            "all_to_all.3", "experts (moe.py:7)");
  auto outcomes = onDevices(threads(), 2, [&](CudaEnd &end) {
    for (int64_t round = 0; round < 6; ++round) {
      // Rank r gives round + r to itself and 2 * round to the other; at last they disagree.
      int64_t own = round + end.rank(), other = 2 * round;
      std::vector<int64_t> gives(2, other), gets(2, other);
      gives[end.rank()] = gets[end.rank()] = own;
      if (round == 5 && end.rank() == 1)
        gets[0] += 1;
      std::vector<int32_t> in(size_t(own + other), int32_t(end.rank())), out(64, -1);
      int64_t extent = own + other;
      shardrt_collective_tensor tensor{in.data(), out.data(), &extent, gets.data(), gives.data()};
      CollectiveCall call;
      ASSERT_EQ(call.assign(exchange.desc, end.group(ranks(2)), 1, &tensor), "");
      test::runCollective(end, call, 60);
      for (int64_t i = 0; i < own + other; ++i)
        EXPECT_EQ(out[size_t(i)], i < gets[0] ? 0 : 1) << round;
    }
  });
  for (const Outcome &outcome : outcomes) {
    EXPECT_EQ(outcome.status, SHARDRT_MISMATCH);
    expectParts(outcome, {"all_to_all.3", "rank 0 gives rank 1 10 elements", "expects 11"});
  }
}

// A graph of all kinds of calls, with blocks that are packed, runs again and again.
TEST_F(CudaWorld, GraphsOfCollectives) {
  test::Collective sum(SHARDRT_ALL_REDUCE, SHARDRT_SUM, {{SHARDRT_I32, 1, -1, -1}}),
      gather(SHARDRT_ALL_GATHER, SHARDRT_REDUCE_NONE, {{SHARDRT_I32, 2, 1, -1}});
  auto outcomes = onDevices(threads(), 3, [&](CudaEnd &end) {
    const int32_t rank = int32_t(end.rank());
    test::CudaDevice &device = end.device;
    void *stream = device.stream.get();
    Group &group = end.group(ranks(3));
    const int64_t two[] = {2}, full[] = {2, 5}; // columns are 2, 2 and 1
    const int64_t columns = rank == 2 ? 1 : 2;
    std::vector<int32_t> own(size_t(2 * columns), rank), start = { 1, rank };
    char *part = device.put(own.data(), 4 * own.size());
    char *whole = device.put(nullptr, 40);
    char *value = device.put(start.data(), 8);
    shardrt_collective_tensor sums{value, value, two, nullptr, nullptr},
        gathers{part, whole, full, nullptr, nullptr};
    CollectiveCall reduce, concatenate;
    ASSERT_EQ(reduce.assign(sum.desc, group, 1, &sums), "");
    ASSERT_EQ(concatenate.assign(gather.desc, group, 1, &gathers), "");
    auto enqueue = [&] {
      end.transport->enqueue(reduce, stream, deadlineAfter(60));
      end.transport->enqueue(concatenate, stream, deadlineAfter(60));
    };
    enqueue(); // memory for blocks is allocated
    void *graph = nullptr;
    device.device.on([&](const shardrt_device_plugin &table, void *handle, char *message) {
      return table.capture_begin(handle, stream, message);
    });
    enqueue();
    device.device.on([&](const shardrt_device_plugin &table, void *handle, char *message) {
      return table.capture_end(handle, stream, &graph, message);
    });
    DeviceObject owner = device.device.ownGraph(graph);
    for (int i = 0; i < 3; ++i)
      device.device.on([&](const shardrt_device_plugin &table, void *handle, char *message) {
        return table.graph_launch(handle, graph, stream, message);
      });
    std::vector<int32_t> values(2), all(10);
    device.get(values.data(), value, 8);
    device.get(all.data(), whole, 40);
    EXPECT_EQ(values, (std::vector<int32_t>{81, 81})); // 3^4; the sum of ranks is 3
    EXPECT_EQ(all, (std::vector<int32_t>{0, 0, 1, 1, 2, 0, 0, 1, 1, 2}));
    device.releaseAll();
  });
  for (const Outcome &outcome : outcomes)
    EXPECT_EQ(outcome.status, SHARDRT_OK) << outcome.message;
}

namespace {

/// Why collectives go through the host, on each rank; they work all the same.
std::vector<std::string> reasons(const test::WorldKind &kind, uint32_t world,
                                 const std::function<int(uint32_t)> &ordinalOf) {
  std::vector<std::string> texts;
  auto outcomes = kind.run(world, [&](Communicator &inner) {
    CudaEnd end(inner, ordinalOf(inner.rank()));
    test::connectGroups(end, {ranks(world)});
    AllReduce().run(end, 60);
    EXPECT_EQ(end.transport, nullptr);
    // A rank may be a process: what it says goes through its outcome.
    throw Failure(SHARDRT_PROGRAM_ERROR, end.whyNot);
  });
  for (const Outcome &outcome : outcomes) {
    EXPECT_EQ(outcome.status, SHARDRT_PROGRAM_ERROR) << outcome.message;
    texts.push_back(outcome.message);
  }
  return texts;
}

} // namespace

TEST_F(CudaWorld, WhyCollectivesGoThroughTheHost) {
  auto own = [](uint32_t rank) { return int(rank); };
  test::EnvironmentVariable host("SHARDRT_DEVICE_COLLECTIVES", "host");
  for (const test::WorldKind &kind : {threads(), processes()})
    for (const std::string &text : reasons(kind, 2, own))
      EXPECT_NE(text.find("SHARDRT_DEVICE_COLLECTIVES asks for it"), std::string::npos) << text;
}

// Asked for, and not possible: two ranks have one device.
TEST_F(CudaWorld, OneDeviceForTwoRanks) {
  test::EnvironmentVariable wish("SHARDRT_DEVICE_COLLECTIVES", "device");
  auto outcomes = threads().run(3, [&](Communicator &inner) {
    CudaEnd end(inner, inner.rank() == 2 ? 0 : int(inner.rank()));
    test::connectGroups(end, {ranks(3)});
  });
  for (const Outcome &outcome : outcomes) {
    EXPECT_EQ(outcome.status, SHARDRT_NOT_FOUND);
    expectParts(outcome, {"SHARDRT_DEVICE_COLLECTIVES", "Duplicate GPU"});
  }
}

TEST_F(CudaProcesses, WishesThatDiffer) {
  auto outcomes = processes().run(2, [&](Communicator &inner) {
    test::EnvironmentVariable wish("SHARDRT_DEVICE_COLLECTIVES",
                                   inner.rank() == 0 ? "device" : "host");
    CudaEnd end(inner, 0);
    test::connectGroups(end, {ranks(2)});
  });
  for (const Outcome &outcome : outcomes) {
    EXPECT_EQ(outcome.status, SHARDRT_MISMATCH);
    expectParts(outcome, {"SHARDRT_DEVICE_COLLECTIVES", "'device'", "'host'"});
  }
}

TEST_F(CudaProcesses, ReductionsThatDiffer) {
  auto outcomes = processes().run(2, [&](Communicator &inner) {
    test::EnvironmentVariable wish("SHARDRT_DEVICE_COLLECTIVES", "device"),
        reduce("SHARDRT_NCCL_REDUCE", inner.rank() == 0 ? "nccl" : "auto");
    CudaEnd end(inner, 0);
    test::connectGroups(end, {ranks(2)});
  });
  for (const Outcome &outcome : outcomes) {
    EXPECT_EQ(outcome.status, SHARDRT_NOT_FOUND);
    expectParts(outcome, {"rank 0 has NCCL", "(SHARDRT_NCCL_REDUCE=nccl)", "rank 1 has NCCL"});
  }
}

// Ranks that end, whatever way, leave nothing in shared memory.
TEST_F(CudaWorld, NothingIsLeftBehind) {
  AllReduce reduce;
  auto count = [] {
    size_t folders = 0;
    for (const auto &entry : std::filesystem::directory_iterator("/dev/shm"))
      folders += entry.path().filename().string().find("shardc-nccl-" + std::to_string(getpid())) !=
                 std::string::npos;
    return folders;
  };
  onDevices(threads(), 2, [&](CudaEnd &end) { reduce.run(end, 60); });
  onDevices(threads(), 2, [&](CudaEnd &end) {
    reduce.run(end, 60);
    if (end.rank() == 0)
      reduce.run(end, 60);
  });
  EXPECT_EQ(count(), 0u);
}
