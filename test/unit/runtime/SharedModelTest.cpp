// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An artifact over memory that ranks share: the bits of threads, and no copy of what is in the
// arena.
#include "runtime/comm/Endpoint.h"
#include "runtime/model/Model.h"
#include "test/unit/runtime/Artifact.h"
#include "test/unit/runtime/SharedEnds.h"

using namespace shardc::rt;
using test::columns, test::depth;

namespace {

struct Results {
  std::vector<std::vector<float>> y{size_t(test::world)};
  std::vector<std::string> messages{size_t(test::world)}, accounts{size_t(test::world)};
};

/// `forward` on every rank of a world, twice with different numbers of rows.
Results forward(test::Ends ends, const std::string &weights, bool ownAllocator) {
  Results result;
  shardrt::Artifact artifact(HAND_ARTIFACT);
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < ends.size(); ++rank)
    threads.emplace_back([&, rank] {
      shardrt_communicator end{std::make_shared<Endpoint>(std::move(ends[rank]))};
      shardrt_config config = shardrt::defaultConfig();
      config.world_size = test::world;
      config.rank = int32_t(rank);
      config.communicator = &end;
      config.timeout_s = 20;
      config.threads = 1;
      if (ownAllocator) {
        config.alloc = [](void *, size_t bytes, size_t alignment) {
          return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
        };
        config.free = [](void *, void *memory, size_t) { std::free(memory); };
      }
      try {
        Model model(*artifact.manifest(), config);
        model.loadFile(weights);
        for (int64_t rows : {5, 8}) {
          std::vector<float> x = test::inputRows(rows);
          result.y[rank].assign(size_t(rows * columns), 0);
          int64_t in[] = {rows, depth}, out[] = {rows, columns};
          float total = 0;
          shardrt_tensor input = shardrt::view<const float>(x, in);
          shardrt_tensor outputs[] = {shardrt::view<float>(result.y[rank], out),
                                      shardrt::view<float>({&total, 1}, {}, SHARDRT_LOCAL)};
          model.run("forward", {&input, 1}, outputs);
        }
        result.accounts[rank] = end.endpoint->communicator->summary();
      } catch (const Failure &failure) {
        result.messages[rank] = failure.message;
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  return result;
}

} // namespace

TEST(SharedModel, RunsToTheBitsOfThreads) {
  test::Folder folder;
  test::writeSafetensors(folder.file("w"), test::parameterFile());
  Results threads = forward(makeLocalWorld(test::world), folder.file("w"), false);
  for (bool ownAllocator : {false, true}) {
    Results shared = forward(test::makeSharedEnds(test::world), folder.file("w"), ownAllocator);
    EXPECT_EQ(shared.y, threads.y);
    for (size_t rank = 0; rank < shared.messages.size(); ++rank) {
      EXPECT_EQ(shared.messages[rank], "");
      // Of each run the sum, which the program reduces in the caller's memory.
      bool onlySums = shared.accounts[rank].find(" 8 bytes copied") != std::string::npos;
      EXPECT_EQ(onlySums, !ownAllocator) << shared.accounts[rank];
    }
  }
}
