// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Continues one sequence of tokens greedily, with all ranks as threads of this process. The program
// keeps the cache as a state (transformers' StaticCache): its inputs are `input_ids`, i64 of
// BATCH x LENGTH, and `cache_position`, i64 of LENGTH, and its first output are the logits in f32.
// Every row of the batch gets the same tokens.
//
//   c++ -std=c++20 decode.cpp -I include -lshardrt -o decode
//   ./decode model.so model.pt2 RANKS BATCH TOKENS 5 17 3 60
#include "shardrt.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <mutex>
#include <numeric>
#include <thread>

namespace {

/// Calls `body(rank)` on a thread for each rank, and throws what failed first.
template <typename Body> void onEachRank(size_t ranks, Body body) {
  std::exception_ptr first;
  std::mutex mutex;
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      try {
        body(rank);
      } catch (...) {
        std::lock_guard lock(mutex);
        if (!first)
          first = std::current_exception();
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  if (first)
    std::rethrow_exception(first);
}

class Decoder {
public:
  Decoder(const std::string &program, const std::string &weights, size_t ranks, int64_t batch)
      : artifact(program), ends(shardrt::localCommunicators(int32_t(ranks))), models(ranks),
        batch(batch) {
    onEachRank(ranks, [&](size_t rank) {
      shardrt_config config = shardrt::defaultConfig();
      config.world_size = int32_t(ranks);
      config.rank = int32_t(rank);
      config.communicator = ends[rank].get();
      models[rank] = std::make_unique<shardrt::Model>(artifact.manifest(), config);
      models[rank]->loadParameters(weights);
    });
  }

  /// Runs the model on further tokens and returns the one that follows in the first row.
  int64_t step(const std::vector<int64_t> &tokens) {
    const auto count = int64_t(tokens.size());
    std::vector<int64_t> ids, positions(tokens.size());
    for (int64_t row = 0; row < batch; ++row)
      ids.insert(ids.end(), tokens.begin(), tokens.end());
    std::iota(positions.begin(), positions.end(), length);
    const int64_t idExtents[] = {batch, count}, positionExtents[] = {count};
    const shardrt_tensor inputs[] = {
        shardrt::view(std::span<const int64_t>(ids), idExtents),
        shardrt::view(std::span<const int64_t>(positions), positionExtents)};
    const shardrt_shape shape = models[0]->outputShapes(nullptr, inputs, 1).front();
    const int64_t vocabulary = shape.extents[2];
    std::vector<float> logits(size_t(batch * count * vocabulary));
    const shardrt_tensor outputs[] = {shardrt::view(
        std::span(logits), std::span(shape.extents, size_t(shape.rank)), SHARDRT_SHARED)};
    onEachRank(models.size(), [&](size_t rank) { models[rank]->run(nullptr, inputs, outputs); });
    length += count;
    auto last = logits.begin() + (count - 1) * vocabulary;
    return std::max_element(last, last + vocabulary) - last;
  }

private:
  shardrt::Artifact artifact;
  std::vector<shardrt::Communicator> ends;
  std::vector<std::unique_ptr<shardrt::Model>> models;
  int64_t batch, length = 0;
};

void decode(int argc, char **argv) {
  if (argc < 7)
    throw std::runtime_error("usage: decode PROGRAM.so WEIGHTS RANKS BATCH TOKENS PROMPT...");
  Decoder decoder(argv[1], argv[2], size_t(std::atoll(argv[3])), std::atoll(argv[4]));
  std::vector<int64_t> next;
  for (int i = 6; i < argc; ++i)
    next.push_back(std::atoll(argv[i]));
  for (int64_t done = 0, count = std::atoll(argv[5]); done < count; ++done) {
    next = {decoder.step(next)};
    std::printf("%s%lld", done ? "," : "", static_cast<long long>(next.front()));
  }
  std::printf("\n");
}

} // namespace

int main(int argc, char **argv) {
  try {
    decode(argc, argv);
  } catch (const std::exception &error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
  return 0;
}
