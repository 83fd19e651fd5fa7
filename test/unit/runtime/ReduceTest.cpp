// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/comm/Reduce.h"
#include "runtime/support/Types.h"
#include "test/unit/runtime/Elements.h"

#include <gtest/gtest.h>

using namespace shardc::rt;

namespace {
template <typename T>
std::vector<T> reduced(shardrt_type type, uint32_t reduction, std::vector<std::vector<T>> sources) {
  std::vector<const void *> from;
  for (auto &source : sources)
    from.push_back(source.data());
  std::vector<T> result(sources[0].size());
  void *to = result.data();
  reduceFunction(type, reduction)(from, {&to, 1}, result.size());
  return result;
}
constexpr float notANumber = std::numeric_limits<float>::quiet_NaN();
} // namespace

TEST(Reduce, IntegersWrapAround) {
  EXPECT_EQ(reduced<int32_t>(SHARDRT_I32, SHARDRT_SUM, {{INT32_MAX}, {1}})[0], INT32_MIN);
  EXPECT_EQ(reduced<int64_t>(SHARDRT_I64, SHARDRT_SUM, {{INT64_MAX}, {2}})[0], INT64_MIN + 1);
  EXPECT_EQ(reduced<int8_t>(SHARDRT_I8, SHARDRT_PROD, {{100}, {3}})[0], int8_t(300 - 256));
  EXPECT_EQ(reduced<uint8_t>(SHARDRT_U8, SHARDRT_SUM, {{200}, {100}})[0], 44);
  EXPECT_EQ(reduced<int16_t>(SHARDRT_I16, SHARDRT_PROD, {{INT16_MIN}, {INT16_MIN}})[0], 0);
}

TEST(Reduce, AverageOfIntegersDoesNotWrapAndRoundsTowardZero) {
  EXPECT_EQ(reduced<int32_t>(SHARDRT_I32, SHARDRT_AVG, {{INT32_MAX}, {INT32_MAX}})[0], INT32_MAX);
  EXPECT_EQ(reduced<int8_t>(SHARDRT_I8, SHARDRT_AVG, {{100, -3}, {101, -4}}),
            (std::vector<int8_t>{100, -3}));
}

TEST(Reduce, NotANumberWinsMinAndMax) {
  for (uint32_t reduction : {uint32_t(SHARDRT_MIN), uint32_t(SHARDRT_MAX)}) {
    auto result =
        reduced<float>(SHARDRT_F32, reduction, {{notANumber, 1, 2}, {1, notANumber, 5}, {3, 2, 4}});
    EXPECT_TRUE(std::isnan(result[0]) && std::isnan(result[1]));
    EXPECT_EQ(result[2], reduction == SHARDRT_MIN ? 2 : 5);
  }
}

TEST(Reduce, HalvesAccumulateInSinglePrecisionAndRoundOnce) {
  // 256 + 1 + 1: one by one in bf16 (8 bits of mantissa) it stays 256.
  auto bf16 = [](float x) { return toBFloat16(x).bits; };
  EXPECT_EQ(reduced<uint16_t>(SHARDRT_BF16, SHARDRT_SUM, {{bf16(256)}, {bf16(1)}, {bf16(1)}})[0],
            bf16(258));
  auto f16 = [](float x) { return toFloat16(x).bits; };
  EXPECT_EQ(reduced<uint16_t>(SHARDRT_F16, SHARDRT_SUM, {{f16(2048)}, {f16(1)}, {f16(1)}})[0],
            f16(2050));
  // A sum that overflows f16 but whose average does not.
  EXPECT_EQ(reduced<uint16_t>(SHARDRT_F16, SHARDRT_AVG, {{f16(60000)}, {f16(60000)}})[0],
            f16(60000));
}

TEST(Reduce, OrderIsThatOfTheSources) {
  // In f32 (1e8 + -1e8) + 1 = 1, but 1e8 + (-1e8 + 1) = 0.
  EXPECT_EQ(reduced<float>(SHARDRT_F32, SHARDRT_SUM, {{1e8f}, {-1e8f}, {1}})[0], 1);
  EXPECT_EQ(reduced<float>(SHARDRT_F32, SHARDRT_SUM, {{1}, {1e8f}, {-1e8f}})[0], 0);
}

TEST(Reduce, UndefinedCombinationsHaveNoFunction) {
  EXPECT_EQ(reduceFunction(SHARDRT_BOOL, SHARDRT_AVG), nullptr);
  EXPECT_EQ(reduceFunction(SHARDRT_F32, SHARDRT_REDUCE_NONE), nullptr);
  EXPECT_EQ(reduceFunction(0, SHARDRT_SUM), nullptr);
}
