// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/support/Types.h"
#include "runtime/support/Copy.h"
#include "test/unit/runtime/Elements.h"

#include <bit>
#include <gtest/gtest.h>
#include <numeric>
#include <random>

using namespace shardc::rt;

TEST(Types, NamesAndSizes) {
  for (shardrt_type type : test::allTypes())
    EXPECT_EQ(typeFromName(typeName(type)), type);
  EXPECT_EQ(typeFromName("bf16"), SHARDRT_BF16);
  EXPECT_EQ(typeBytes(SHARDRT_BF16), 2);
  EXPECT_EQ(typeBytes(SHARDRT_BOOL), 1);
  EXPECT_EQ(typeBytes(0), 0);
  EXPECT_EQ(typeBytes(99), 0);
  EXPECT_EQ(typeFromName("f8"), 0);
}

TEST(Types, EveryHalfDecodesAsDefinedAndComesBack) {
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    float f16 = toFloat(Float16{uint16_t(bits)}), bf16 = toFloat(BFloat16{uint16_t(bits)});
    double wantedF16 = test::decodeHalf(SHARDRT_F16, uint16_t(bits));
    double wantedBf16 = test::decodeHalf(SHARDRT_BF16, uint16_t(bits));
    if (std::isnan(wantedF16)) {
      EXPECT_TRUE(std::isnan(f16)) << bits;
      EXPECT_TRUE(std::isnan(toFloat(toFloat16(f16)))) << bits;
    } else {
      ASSERT_EQ(double(f16), wantedF16) << bits;
      ASSERT_EQ(toFloat16(f16).bits, bits);
    }
    if (std::isnan(wantedBf16)) {
      EXPECT_TRUE(std::isnan(toFloat(toBFloat16(bf16)))) << bits;
    } else {
      ASSERT_EQ(double(bf16), wantedBf16) << bits;
      ASSERT_EQ(toBFloat16(bf16).bits, bits);
    }
  }
}

TEST(Types, RoundingIsToNearestEven) {
  std::mt19937 random(7);
  for (int i = 0; i < 200000; ++i) {
    float x = std::bit_cast<float>(uint32_t(random()));
    if (std::isnan(x))
      continue;
    ASSERT_EQ(toFloat16(x).bits, test::encodeHalf(SHARDRT_F16, x)) << x;
    ASSERT_EQ(toBFloat16(x).bits, test::encodeHalf(SHARDRT_BF16, x)) << x;
  }
  // Around halves' own values, where ties are: every f16 plus a few units of f32.
  for (unsigned bits = 0; bits < 0x7c00; ++bits)
    for (int d = -3; d <= 3; ++d) {
      float middle = float((test::decodeHalf(SHARDRT_F16, uint16_t(bits)) +
                            test::decodeHalf(SHARDRT_F16, uint16_t(bits + 1))) /
                           2);
      if (bits + 1 == 0x7c00)
        middle = 65520;
      float x = std::bit_cast<float>(std::bit_cast<uint32_t>(middle) + uint32_t(d));
      ASSERT_EQ(toFloat16(x).bits, test::encodeHalf(SHARDRT_F16, x)) << x;
    }
}

TEST(Types, CheckedBytes) {
  int64_t normal[] = {3, 5}, empty[] = {INT64_MAX, INT64_MAX, 0}, large[] = {1ll << 40, 1ll << 40},
          negative[] = {3, -1};
  EXPECT_EQ(checkedBytes(normal, 2, 4), 60);
  EXPECT_EQ(checkedBytes(normal, 0, 4), 4);
  EXPECT_EQ(checkedBytes(empty, 3, 4), 0);
  EXPECT_EQ(checkedBytes(large, 2, 4), -1);
  EXPECT_EQ(checkedBytes(negative, 2, 4), -1);
}

TEST(Copy, BoxesAgainstElementByElement) {
  std::mt19937 random(3);
  for (int trial = 0; trial < 400; ++trial) {
    size_t rank = random() % 5;
    size_t bytes = std::vector<size_t>{1, 2, 4, 8, 3}[random() % 5];
    std::vector<int64_t> extents, order(rank);
    for (size_t d = 0; d < rank; ++d)
      extents.push_back(random() % 8 ? int64_t(1 + random() % 4) : 0);
    // Strides of permuted and padded arrays; the destination's are another permutation.
    auto makeStrides = [&](int64_t &size) {
      std::iota(order.begin(), order.end(), 0);
      std::shuffle(order.begin(), order.end(), random);
      std::vector<int64_t> strides(rank);
      int64_t stride = 1;
      for (int64_t d : order) {
        strides[size_t(d)] = stride;
        stride *= std::max<int64_t>(extents[size_t(d)], 1) + int64_t(random() % 2);
      }
      size = stride;
      return strides;
    };
    int64_t fromSize, toSize;
    std::vector<int64_t> from = makeStrides(fromSize), to = makeStrides(toSize);
    std::vector<uint8_t> source(size_t(fromSize) * bytes), got(size_t(toSize) * bytes, 0xee);
    for (uint8_t &byte : source)
      byte = uint8_t(random());
    std::vector<uint8_t> wanted = got;
    int64_t count =
        std::accumulate(extents.begin(), extents.end(), int64_t(1), std::multiplies<>());
    for (int64_t linear = 0; linear < count; ++linear) {
      int64_t rest = linear, a = 0, b = 0;
      for (size_t d = rank; d-- > 0;) {
        a += rest % extents[d] * from[d];
        b += rest % extents[d] * to[d];
        rest /= extents[d];
      }
      std::memcpy(&wanted[size_t(b) * bytes], &source[size_t(a) * bytes], bytes);
    }
    copyBox(got.data(), to.data(), source.data(), from.data(), extents, int64_t(bytes));
    ASSERT_EQ(got, wanted) << "trial " << trial;
  }
}

TEST(Copy, NegativeAndZeroStridesOfTheSource) {
  int32_t source[] = {1, 2, 3}, got[6];
  int64_t extents[] = {2, 3}, to[] = {3, 1}, from[] = {0, -1};
  copyBox(got, to, source + 2, from, extents, 4);
  EXPECT_EQ(std::vector<int32_t>(got, got + 6), (std::vector<int32_t>{3, 2, 1, 3, 2, 1}));
}

TEST(Copy, Dense) {
  int64_t extents[] = {2, 1, 3}, dense[] = {3, 77, 1}, padded[] = {4, 3, 1};
  EXPECT_TRUE(isDense(extents, dense));
  EXPECT_FALSE(isDense(extents, padded));
  int64_t empty[] = {2, 0, 3};
  EXPECT_TRUE(isDense(empty, padded));
}
