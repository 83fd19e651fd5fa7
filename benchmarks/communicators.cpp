// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Time of collectives between threads of one process, and between processes that share memory.
#include "test/unit/runtime/Processes.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>

using namespace shardc::rt;

namespace {

/// One kind and size: median seconds of a collective on rank 0, with operands in the memory of the
/// communicator.
struct Measurement {
  uint32_t kind;
  int64_t count;
  int repeats;
  double *seconds; ///< in memory that the benchmark shares with its processes

  void operator()(Communicator &end) const {
    const bool reduces = kind == SHARDRT_ALL_REDUCE;
    test::Collective collective(kind, reduces ? SHARDRT_SUM : SHARDRT_REDUCE_NONE,
                                {{SHARDRT_F32, 1, reduces ? -1 : 0, -1}});
    std::vector<uint32_t> all(end.worldSize());
    for (uint32_t rank = 0; rank < all.size(); ++rank)
      all[rank] = rank;
    const Allocator *shared = end.memory();
    Allocator allocator = shared ? *shared : Allocator{};
    size_t bytes = size_t(count) * sizeof(float);
    Buffer in(allocator, bytes, 64, "input"), out(allocator, bytes, 64, "output");
    std::memset(in.data(), 0, bytes);
    std::memset(out.data(), 0, bytes);
    shardrt_collective_tensor tensor{in.data(), out.data(), &count, nullptr, nullptr};
    CollectiveCall call;
    call.assign(collective.desc, end.group(all), 1, &tensor);
    std::vector<double> times;
    for (int i = -repeats / 4 - 2; i < repeats; ++i) {
      Clock::time_point begin = Clock::now();
      test::runCollective(end, call, 60);
      if (end.rank() == 0 && i >= 0)
        times.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
    }
    if (end.rank() != 0)
      return;
    std::nth_element(times.begin(), times.begin() + ptrdiff_t(times.size() / 2), times.end());
    *seconds = times[times.size() / 2];
  }
};

} // namespace

int main(int argc, char **argv) {
  uint32_t world = argc > 1 ? uint32_t(std::atoi(argv[1])) : 4;
  auto *seconds = static_cast<double *>(
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  if (seconds == MAP_FAILED)
    return 1;
  std::printf("%u ranks: median microseconds between threads, between processes, ratio\n", world);
  for (auto [name, kind] :
       {std::pair("all_reduce", SHARDRT_ALL_REDUCE), std::pair("all_gather", SHARDRT_ALL_GATHER)})
    for (int shift : {10, 15, 20, 26}) {
      int repeats = shift <= 15 ? 20000 : shift <= 20 ? 500 : 10;
      Measurement measure{uint32_t(kind), (int64_t(1) << shift) / 4, repeats, seconds};
      test::runRanks(makeLocalWorld(world), measure);
      double threads = 1e6 * *seconds;
      for (const test::Outcome &outcome : test::Processes(world, measure).waitAll())
        if (outcome.status != SHARDRT_OK) {
          std::fprintf(stderr, "%s\n", outcome.message.c_str());
          return 1;
        }
      double processes = 1e6 * *seconds;
      std::printf("%s %8d KiB: %10.1f %10.1f %6.3f\n", name, 1 << (shift - 10), threads, processes,
                  processes / threads);
    }
  return 0;
}
