// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Trains a model of characters on a text, with all ranks as threads of this process. The program is
// one that `shardc compile` has made for a plan with a section `train`; its inputs are `ids` and
// `targets`, i64 of BATCH x LENGTH, and its outputs are the loss and
// the logits, f32 of BATCH x LENGTH x CHARACTERS.
//
//   c++ -std=c++20 train.cpp -I include -lshardrt -o train
//   ./train step.so model.pt2 text.txt --ranks 4 --steps 300 --lr 1e-3 --save c.safetensors
#include "shardrt.hpp"

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <thread>

namespace {

/// Words of the command line: three files, then `--name value`.
struct Options {
  std::string program, weights, text;
  std::map<std::string, std::string> named = {
      {"ranks", "1"},   {"steps", "10"},       {"lr", "1e-3"}, {"batch", "16"},
      {"length", "64"}, {"characters", "128"}, {"save", ""},   {"resume", ""}};

  Options(int argc, char **argv) {
    if (argc < 4 || argc % 2 != 0)
      throw std::runtime_error(
          "usage: train PROGRAM.so WEIGHTS TEXT [--ranks N] [--steps N] [--lr X] [--batch N] "
          "[--length N] [--characters N] [--save FILE] [--resume FILE]");
    program = argv[1];
    weights = argv[2];
    text = argv[3];
    for (int i = 4; i < argc; i += 2) {
      std::string word = argv[i];
      if (word.rfind("--", 0) != 0 || !named.count(word.substr(2)))
        throw std::runtime_error("unknown option " + word);
      named[word.substr(2)] = argv[i + 1];
    }
  }
  int64_t number(const std::string &name) const { return std::atoll(named.at(name).c_str()); }
};

/// Pieces of a text, at places that depend on the step alone.
struct Batches {
  std::string text;
  int64_t batch, length;
  std::vector<int64_t> ids, targets;

  void take(int64_t step) {
    ids.clear();
    targets.clear();
    for (int64_t row = 0; row < batch; ++row) {
      uint64_t place = uint64_t(step * batch + row) * 7919u % (text.size() - size_t(length));
      for (int64_t i = 0; i < length; ++i) {
        ids.push_back(static_cast<unsigned char>(text[place + uint64_t(i)]));
        targets.push_back(static_cast<unsigned char>(text[place + uint64_t(i) + 1]));
      }
    }
  }
};

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

void train(const Options &options) {
  const size_t ranks = size_t(options.number("ranks"));
  const int64_t batch = options.number("batch"), length = options.number("length");
  std::ifstream file(options.text, std::ios::binary);
  Batches batches{{std::istreambuf_iterator<char>(file), {}}, batch, length, {}, {}};
  if (int64_t(batches.text.size()) <= length)
    throw std::runtime_error(options.text + ": it cannot be read, or is too short");

  shardrt::Artifact artifact(options.program);
  std::vector<shardrt::Communicator> ends = shardrt::localCommunicators(int32_t(ranks));
  std::vector<std::unique_ptr<shardrt::Model>> models(ranks);
  onEachRank(ranks, [&](size_t rank) {
    shardrt_config config = shardrt::defaultConfig();
    config.world_size = int32_t(ranks);
    config.rank = int32_t(rank);
    config.communicator = ends[rank].get();
    models[rank] = std::make_unique<shardrt::Model>(artifact.manifest(), config);
    if (options.named.at("resume").empty())
      models[rank]->loadParameters(options.weights);
    else
      models[rank]->resume(options.named.at("resume"));
  });

  // The number of steps is a state of the program.
  int64_t step = 0;
  models[0]->getState("train.step", shardrt::view(std::span(&step, 1), {}, SHARDRT_LOCAL));
  double rate = std::atof(options.named.at("lr").c_str());
  const int64_t characters = options.number("characters");
  const int64_t extents[] = {batch, length}, logitExtents[] = {batch, length, characters};
  std::vector<float> logits(size_t(batch * length * characters));
  for (; step < options.number("steps"); ++step) {
    batches.take(step);
    const shardrt_tensor inputs[] = {
        shardrt::view(std::span<const int64_t>(batches.ids), extents),
        shardrt::view(std::span<const int64_t>(batches.targets), extents),
        shardrt::view(std::span<const double>(&rate, 1), {})};
    float loss = 0;
    const shardrt_tensor outputs[] = {
        shardrt::view(std::span(&loss, 1), {}, SHARDRT_SHARED),
        shardrt::view(std::span(logits), logitExtents, SHARDRT_SHARED)};
    onEachRank(ranks, [&](size_t rank) { models[rank]->run("train_step", inputs, outputs); });
    std::printf("step %lld: loss %.6f\n", static_cast<long long>(step + 1), double(loss));
  }
  if (const std::string &path = options.named.at("save"); !path.empty())
    onEachRank(ranks, [&](size_t rank) { models[rank]->save(path); });
}

} // namespace

int main(int argc, char **argv) {
  try {
    train(Options(argc, argv));
  } catch (const std::exception &error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
  return 0;
}
