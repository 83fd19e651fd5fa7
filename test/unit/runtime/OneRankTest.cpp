// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A model of one rank: its collectives are copies, which run when they are waited for.
#include "runtime/model/Model.h"

#include <array>
#include <gtest/gtest.h>

using namespace shardc::rt;

namespace {

const uint32_t setBegin[] = {0, 1}, onlyRank[] = {0}, onlyVariant[] = {0};
const shardrt_group group{"tp", setBegin, onlyRank, 1, 0};
const shardrt_collective_operand operand{SHARDRT_F32, 1, -1, -1};
const shardrt_collective allReduce{
    "all_reduce.0", "", &operand, nullptr, SHARDRT_ALL_REDUCE, SHARDRT_SUM, 0, 1, 0, 0, 0};

/// y = x by a collective that is in flight when a negative x makes the program fail.
int32_t run(shardrt_frame *f) {
  int64_t extents[] = {2};
  shardrt_collective_tensor tensor{f->inputs[0], f->outputs[0], extents, nullptr, nullptr};
  uint64_t token = f->services->start(f->runtime, &allReduce, &tensor);
  if (*static_cast<const float *>(f->inputs[0]) < 0)
    return f->services->fail(f->runtime, "", "x is negative");
  return f->services->wait(f->runtime, token);
}

const shardrt_variant variant{run, nullptr, nullptr, 0, 0, 0};
const shardrt_entry entry{"forward", &variant, onlyVariant, nullptr, 1, 0, nullptr, 0};
const shardrt_program program{
    sizeof(shardrt_program), &entry, &group, nullptr, &allReduce, 1, 1, 0, 1};

} // namespace

TEST(OneRank, NothingOfARunThatFailedIsLeftForTheNext) {
  std::string json =
      R"({"format": 1, "tool": "by hand", "name": "one", "artifact_hash": "h", "sequence_hash": "q",
          "world_size": 1, "target": {"kind": "cpu", "triple": ")" RUNTIME_ARCHITECTURE
      R"(-linux-gnu", "cpu": "generic", "features": []},
          "mesh": {"name": "mesh", "axes": [{"name": "tp", "size": 1}]},
          "symbols": [], "parameters": [],
          "entries": [{"name": "forward", "arena_bytes": [0],
            "inputs": [{"name": "x", "type": "f32", "shape": [2], "layout": "[R]"}],
            "outputs": [{"name": "y", "type": "f32", "shape": [2], "layout": "[R]",
                         "kind": "user"}]}]})";
  shardrt_manifest manifest{SHARDRT_PROGRAM_ABI, sizeof(shardrt_manifest), json.data(), json.size(),
                            &program};
  shardrt_config config{};
  config.struct_bytes = sizeof config;
  config.world_size = 1;
  config.timeout_s = 20;
  config.threads = 1;
  config.log = [](void *, int32_t, int32_t, const char *) {};
  Model model(manifest, config, ExecutorRegistry::builtIn());

  const int64_t extents[] = {2};
  auto runOn = [&](std::array<float, 2> &x, std::array<float, 2> &y) {
    shardrt_tensor in{x.data(), SHARDRT_F32, 1, extents, nullptr, SHARDRT_LOCAL, 0, nullptr};
    shardrt_tensor out{y.data(), SHARDRT_F32, 1, extents, nullptr, SHARDRT_LOCAL, 0, nullptr};
    model.run("forward", {&in, 1}, {&out, 1});
  };
  std::array<float, 2> bad{-1, 5}, good{1, 2}, first{}, second{};
  EXPECT_THROW(runOn(bad, first), Failure);
  first = {7, 7}; // the caller's again
  runOn(good, second);
  EXPECT_EQ(second, good);
  EXPECT_EQ(first, (std::array<float, 2>{7, 7}));
}
