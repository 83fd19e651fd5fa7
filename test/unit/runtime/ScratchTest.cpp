// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Temporaries of kernels: kept from run to run, grown when needed, and an error where there is no
// memory. The hand-written program asks for 4 bytes a row (slot 0) and, on each thread that sums
// rows, for one row (slot 1).
#include "test/unit/runtime/Artifact.h"

#include <atomic>

using namespace test;
using shardrt::view;

namespace {

/// What 64 rows need: 32 on each rank, and one row of a thread.
constexpr size_t sumsBytes = 32 * 4, rowBytes = columns * 4;

/// An allocator that counts requests for scratch memory, and has none for `refused` bytes.
struct Counting {
  std::atomic<int> calls{0};
  std::atomic<size_t> refused{0};

  static void *alloc(void *context, size_t bytes, size_t alignment) {
    auto &self = *static_cast<Counting *>(context);
    self.calls += bytes == sumsBytes || bytes == rowBytes;
    if (bytes == self.refused)
      return nullptr;
    return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  }
  static void free(void *, void *memory, size_t) { std::free(memory); }
};

class Scratch : public ::testing::Test {
protected:
  Counting counting;
  Folder folder;
  Ranks ranks;

  Scratch() {
    writeSafetensors(folder.file("w.safetensors"), parameterFile());
    ranks.create([&](shardrt_config &config) {
      config.alloc = Counting::alloc;
      config.free = Counting::free;
      config.alloc_context = &counting;
    });
    ranks.load(folder.file("w.safetensors"));
  }

  std::vector<Ranks::Result> forward(int64_t rows) {
    std::vector<float> x = inputRows(rows);
    std::vector<std::vector<float>> y(world, std::vector<float>(size_t(rows * columns)));
    return ranks.each([&](int32_t rank, shardrt::Model &model) {
      int64_t in[] = {rows, depth}, out[] = {rows, columns};
      float total = 0;
      shardrt_tensor input = view<const float>(x, in);
      shardrt_tensor outputs[] = {view<float>(y[size_t(rank)], out), view<float>({&total, 1}, {})};
      model.run("forward", {&input, 1}, outputs);
    });
  }

  uint64_t scratchBytes() {
    shardrt_memory used;
    shardrt_memory_used(ranks.models[0]->get(), &used);
    return used.scratch_bytes;
  }
};

} // namespace

TEST_F(Scratch, IsKeptFromRunToRun) {
  // Which of the threads takes part is chance: after enough runs each has had its row.
  for (int run = 0; run < 20; ++run)
    ranks.expectOk(forward(64));
  uint64_t kept = scratchBytes();
  EXPECT_GE(kept, sumsBytes + rowBytes);
  EXPECT_LE(kept, sumsBytes + 2 * rowBytes);
  int before = counting.calls;
  for (int64_t rows : {64, 3, 64})
    ranks.expectOk(forward(rows));
  EXPECT_LE(counting.calls - before, int(world)) << "at most a first row of a second thread";
}

TEST_F(Scratch, GrowsWithWhatIsAskedFor) {
  ranks.expectOk(forward(2));
  uint64_t small = scratchBytes();
  ranks.expectOk(forward(64));
  EXPECT_GE(scratchBytes(), small + 31 * 4);
}

TEST_F(Scratch, NoMemoryIsAnError) {
  counting.refused = sumsBytes;
  int first = 0;
  for (const Ranks::Result &result : forward(64)) {
    // A rank may learn from another one first that the run is over.
    EXPECT_TRUE(result.status == SHARDRT_OUT_OF_MEMORY || result.status == SHARDRT_ABORTED);
    first += result.status == SHARDRT_OUT_OF_MEMORY;
    EXPECT_NE(result.message.find("no memory for 128 bytes of temporaries of a kernel"),
              std::string::npos)
        << result.message;
  }
  EXPECT_GE(first, 1);
}
