// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Conversions of 16-bit floats: there and back, against distances to both neighbours, and against
// the compiler's own type where it has one.
#include "tools/cuda-emulator/Halves.h"

#include <gtest/gtest.h>

#include <random>

using namespace shardc::emulator;

namespace {

/// Whether `bits` is next to `value`, and even if two are.
template <typename From> bool nearest(double value, uint16_t bits, From from) {
  double distance = std::fabs(double(from(bits)) - value);
  for (int step : {-1, 1}) {
    uint16_t other = uint16_t(bits + step);
    if ((other ^ bits) & 0x8000)
      continue; // across zero or infinity
    double its = std::fabs(double(from(other)) - value);
    if (its < distance || (its == distance && (bits & 1)))
      return false;
  }
  return true;
}

TEST(Halves, EveryValueComesBack) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    if (float value = fromF16(uint16_t(bits)); !std::isnan(value))
      ASSERT_EQ(toF16(value), bits);
    if (float value = fromBf16(uint16_t(bits)); !std::isnan(value))
      ASSERT_EQ(toBf16(value), bits);
  }
}

TEST(Halves, RoundingIsToTheNearest) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 200000; ++i) {
    double value = std::ldexp(double(int64_t(random())), -63 + int(random() % 40) - 26);
    if (i % 4 == 0) // exactly between two
      value =
          (double(fromF16(uint16_t(random() % 0x7bff))) + double(fromF16(uint16_t(i % 0x7bff)))) /
          2;
    ASSERT_TRUE(nearest(value, toF16(value), fromF16)) << value;
    ASSERT_TRUE(nearest(value, toBf16(value), fromBf16)) << value;
  }
  EXPECT_EQ(toF16(65519.99), 0x7bff);
  EXPECT_EQ(toF16(65520), 0x7c00);
  EXPECT_TRUE(std::isnan(fromF16(toF16(NAN))) && std::isnan(fromBf16(toBf16(-NAN))));
}

#ifdef __FLT16_MANT_DIG__
TEST(Halves, AsTheCompilerConverts) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    float value = fromF16(uint16_t(bits)), own = float(std::bit_cast<_Float16>(uint16_t(bits)));
    ASSERT_TRUE(value == own || (std::isnan(value) && std::isnan(own))) << bits;
  }
}
#endif

} // namespace
