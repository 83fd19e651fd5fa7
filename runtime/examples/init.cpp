// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Makes the parameters of a program, and writes them into a file that PyTorch reads and with which
// a training begins. The program is one that `shardc compile` has made for a plan whose section
// `train` has a list `init`; no weights are loaded. All ranks are threads of this process, and the
// values are the same for any number of them.
//
//   c++ -std=c++20 init.cpp -I include -lshardrt -o init
//   ./init step.so weights.safetensors --ranks 4 --seed 7
//   shard-run step.so --resume weights.safetensors --batches text.safetensors --steps 300 --lr 1e-3
#include "shardrt.hpp"

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <thread>

namespace {

void initialise(const std::string &program, const std::string &file, size_t ranks, int64_t seed) {
  shardrt::Artifact artifact(program);
  std::vector<shardrt::Communicator> ends = shardrt::localCommunicators(int32_t(ranks));
  std::exception_ptr first;
  std::mutex mutex;
  auto work = [&](size_t rank) {
    try {
      shardrt_config config = shardrt::defaultConfig();
      config.world_size = int32_t(ranks);
      config.rank = int32_t(rank);
      config.communicator = ends[rank].get();
      shardrt::Model model(artifact.manifest(), config);
      // What the numbers are a function of; it comes before the entry. All ranks give the same.
      model.setState("random.seed", shardrt::view(std::span<const int64_t>(&seed, 1), {}));
      model.run("init", {}, {});
      model.save(file); // rank 0 writes
    } catch (...) {
      std::lock_guard lock(mutex);
      if (!first)
        first = std::current_exception();
    }
  };
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < ranks; ++rank)
    threads.emplace_back(work, rank);
  for (std::thread &thread : threads)
    thread.join();
  if (first)
    std::rethrow_exception(first);
}

} // namespace

int main(int argc, char **argv) {
  try {
    size_t ranks = 1;
    int64_t seed = 0;
    bool isRight = argc >= 3 && argc % 2 == 1;
    for (int i = 3; isRight && i < argc; i += 2)
      if (std::string word = argv[i]; word == "--ranks")
        ranks = size_t(std::atoll(argv[i + 1]));
      else if (word == "--seed")
        seed = std::atoll(argv[i + 1]);
      else
        isRight = false;
    if (!isRight)
      throw std::runtime_error("usage: init PROGRAM.so FILE [--ranks N] [--seed N]");
    initialise(argv[1], argv[2], ranks, seed);
  } catch (const std::exception &error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
  return 0;
}
