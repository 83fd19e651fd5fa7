// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The hand-written artifact (artifact/program.c), its weights, and running it on four ranks.
#ifndef SHARDC_TEST_UNIT_RUNTIME_ARTIFACT_H
#define SHARDC_TEST_UNIT_RUNTIME_ARTIFACT_H

#include "runtime/include/shardrt.hpp"
#include "test/unit/runtime/Files.h"

#include <functional>
#include <gtest/gtest.h>
#include <thread>

namespace test {

constexpr int64_t depth = 6, columns = 9;
constexpr int32_t world = 4;

inline std::vector<float> weights() {
  std::vector<float> w;
  for (int64_t i = 0; i < depth * columns; ++i)
    w.push_back(float(i % 7) - 3 + float(i % 5) / 4);
  return w;
}
inline std::vector<float> inputRows(int64_t rows) {
  std::vector<float> x;
  for (int64_t i = 0; i < rows * depth; ++i)
    x.push_back(float(i % 11) / 4 - 1);
  return x;
}
/// x @ w + (0, 1, ..., 8).
inline std::vector<double> expectedRows(int64_t rows) {
  std::vector<float> x = inputRows(rows), w = weights();
  std::vector<double> y;
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) {
      double sum = double(j);
      for (int64_t k = 0; k < depth; ++k)
        sum += double(x[size_t(i * depth + k)]) * double(w[size_t(k * columns + j)]);
      y.push_back(sum);
    }
  return y;
}

inline std::map<std::string, Stored> parameterFile() {
  return {{"fc.weight", stored<float>("F32", {depth, columns}, weights())},
          {"calls", stored<int64_t>("I64", {}, {41})}};
}

/// One model for each rank, on threads.
class Ranks {
public:
  Ranks() : Ranks(shardrt::localCommunicators(world)) {}
  explicit Ranks(std::vector<shardrt::Communicator> ends)
      : artifact(HAND_ARTIFACT), ends(std::move(ends)) {}

  shardrt_config config(int32_t rank) {
    shardrt_config c = shardrt::defaultConfig();
    c.world_size = world;
    c.rank = rank;
    c.communicator = ends[size_t(rank)].get();
    c.timeout_s = 20;
    c.threads = 2;
    c.log = [](void *, int32_t, int32_t, const char *) {};
    return c;
  }
  void create(const std::function<void(shardrt_config &)> &adjust = {}) {
    for (int32_t r = 0; r < world; ++r) {
      shardrt_config c = config(r);
      if (adjust)
        adjust(c);
      models.push_back(std::make_unique<shardrt::Model>(artifact.manifest(), c));
    }
  }
  void load(const std::string &path) {
    for (auto &model : models)
      model->loadParameters(path);
  }
  struct Result {
    shardrt_status status = SHARDRT_OK;
    std::string message;
  };
  /// Calls body(rank, model) on a thread for each rank.
  std::vector<Result> each(const std::function<void(int32_t, shardrt::Model &)> &body) {
    std::vector<Result> results(world);
    std::vector<std::thread> threads;
    for (int32_t r = 0; r < world; ++r)
      threads.emplace_back([&, r] {
        try {
          body(r, *models[size_t(r)]);
        } catch (const shardrt::Error &error) {
          results[size_t(r)] = {error.status, error.what()};
        }
      });
    for (std::thread &thread : threads)
      thread.join();
    return results;
  }
  void expectOk(const std::vector<Result> &results) {
    for (const Result &result : results)
      EXPECT_EQ(result.status, SHARDRT_OK) << result.message;
  }

  shardrt::Artifact artifact;
  std::vector<shardrt::Communicator> ends;
  std::vector<std::unique_ptr<shardrt::Model>> models;
};

/// The input of the entry `slow`, in which this rank sleeps for so long in each step behind the
/// first `before` of its process.
constexpr int64_t sleeper(int64_t rank, int64_t milliseconds, int64_t before = 0) {
  return rank + 10 * milliseconds + 1000000000 * before;
}

/// A manifest with one piece of its JSON replaced, over the same program.
class ChangedManifest {
public:
  ChangedManifest(const shardrt_manifest *original, const std::string &from, const std::string &to)
      : json(original->json, size_t(original->json_bytes)), manifest(*original) {
    size_t at = json.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    json.replace(at, from.size(), to);
    manifest.json = json.data();
    manifest.json_bytes = json.size();
  }
  std::string json;
  shardrt_manifest manifest;
};

} // namespace test

#endif // SHARDC_TEST_UNIT_RUNTIME_ARTIFACT_H
