// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reductions between emulated devices: what NCCL does, and what the plugin does instead of it.
#include "test/unit/runtime/CudaRanks.h"

#include <cmath>
#include <cstring>

using namespace shardc::rt;
using test::CudaEnd;
using test::onDevices;
using test::Outcome;
using test::ranks;
using test::threads;

namespace {

/// The plugin reduces everything.
test::WorldKind inOrder() {
  test::WorldKind kind = test::cudaWorlds("inOrder", threads(), "random:5");
  kind.runs = [inner = kind.runs](uint32_t world, const test::WorldKind::Body &body) {
    test::EnvironmentVariable order("SHARDRT_NCCL_REDUCE", "runtime");
    return inner(world, body);
  };
  return kind;
}

using test::Collectives;

} // namespace

INSTANTIATE_TEST_SUITE_P(CudaInOrder, Collectives, ::testing::Values(inOrder()), test::kindOf);

using CudaWorld = test::OnEmulatedDevice;

namespace {

/// What an all-reduce of these elements of each rank gives on the first.
template <typename T>
std::vector<T> reduced(shardrt_type type, uint32_t reduction, std::vector<std::vector<T>> parts) {
  test::Collective collective(SHARDRT_ALL_REDUCE, reduction, {{type, 1, -1, -1}});
  const auto world = uint32_t(parts.size());
  auto outcomes = onDevices(threads(), world, [&](CudaEnd &end) {
    std::vector<T> &own = parts[end.rank()];
    int64_t count = int64_t(own.size());
    shardrt_collective_tensor tensor{own.data(), own.data(), &count, nullptr, nullptr};
    CollectiveCall call;
    ASSERT_EQ(call.assign(collective.desc, end.group(ranks(world)), 1, &tensor), "");
    test::runCollective(end, call, 60);
    EXPECT_EQ(end.enqueued, 1u) << "it went through the host";
  });
  for (const Outcome &outcome : outcomes)
    EXPECT_EQ(outcome.status, SHARDRT_OK) << outcome.message;
  for (const std::vector<T> &other : parts)
    EXPECT_EQ(std::memcmp(other.data(), parts[0].data(), other.size() * sizeof(T)), 0);
  return parts[0];
}

/// Parts of a sum whose last bits depend on the order.
std::vector<std::vector<float>> roundedParts(uint32_t world, size_t count) {
  std::vector<std::vector<float>> parts(world);
  for (uint32_t rank = 0; rank < world; ++rank)
    for (size_t i = 0; i < count; ++i)
      parts[rank].push_back(float(1 + (i * 31 + rank * 17) % 97) / float(3 + rank));
  return parts;
}

} // namespace

// What NCCL does otherwise than shardrt.h says is done on the devices all the same.
TEST_F(CudaWorld, ReductionsThatNcclDoesOtherwise) {
  auto most = reduced<float>(SHARDRT_F32, SHARDRT_MAX, {{1, NAN, 3}, {2, 5, -1}, {-7, 0, NAN}});
  EXPECT_EQ(most[0], 2);
  EXPECT_TRUE(std::isnan(most[1]) && std::isnan(most[2])) << "a NaN wins";
  EXPECT_EQ(reduced<int16_t>(SHARDRT_I16, SHARDRT_SUM, {{30000, -5}, {30000, 2}}),
            (std::vector<int16_t>{int16_t(60000 - 65536), -3}));
  EXPECT_EQ(reduced<int32_t>(SHARDRT_I32, SHARDRT_AVG, {{7, -7}, {0, 0}}),
            (std::vector<int32_t>{3, -3}))
      << "toward zero";
  EXPECT_EQ(reduced<float>(SHARDRT_F32, SHARDRT_AVG, {{1, 5}, {1, 5}, {5, 6}}),
            (std::vector<float>{7.0f / 3, 16.0f / 3}));
}

// With the bits of a sum in the order of positions, if that is asked for; with NCCL's otherwise.
TEST_F(CudaWorld, SumsInOrder) {
  const std::vector<std::vector<float>> parts = roundedParts(4, 1001);
  std::vector<float> expected = parts[0];
  for (uint32_t rank = 1; rank < 4; ++rank)
    for (size_t i = 0; i < expected.size(); ++i)
      expected[i] += parts[rank][i];
  test::EnvironmentVariable order("SHARDRT_NCCL_REDUCE", "runtime");
  EXPECT_TRUE(reduced<float>(SHARDRT_F32, SHARDRT_SUM, parts) == expected);
  // bf16: 256 + 1 + 1 is 258 if it is rounded once.
  EXPECT_EQ(reduced<uint16_t>(SHARDRT_BF16, SHARDRT_SUM, {{0x4380}, {0x3f80}, {0x3f80}})[0],
            0x4381);
}

TEST_F(CudaWorld, WhatNcclDoesIfItIsAsked) {
  test::EnvironmentVariable all("SHARDRT_NCCL_REDUCE", "nccl");
  EXPECT_EQ(reduced<float>(SHARDRT_F32, SHARDRT_MAX, {{NAN}, {2}})[0], 2) << "its NaN loses";
  EXPECT_EQ(reduced<int16_t>(SHARDRT_I16, SHARDRT_SUM, {{1}, {2}})[0], 3);
}
