// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/ByteSize.h"

#include <gtest/gtest.h>

using shardc::parseByteSize;

TEST(ByteSize, NumbersAndUnits) {
  EXPECT_EQ(parseByteSize("0"), 0);
  EXPECT_EQ(parseByteSize("1234"), 1234);
  EXPECT_EQ(parseByteSize("7B"), 7);
  EXPECT_EQ(parseByteSize("3K"), 3072);
  EXPECT_EQ(parseByteSize("3KiB"), 3072);
  EXPECT_EQ(parseByteSize("3KB"), 3000);
  EXPECT_EQ(parseByteSize("2M"), 2097152);
  EXPECT_EQ(parseByteSize("2MiB"), 2097152);
  EXPECT_EQ(parseByteSize("2MB"), 2000000);
  EXPECT_EQ(parseByteSize("5G"), 5368709120);
  EXPECT_EQ(parseByteSize("5GiB"), 5368709120);
  EXPECT_EQ(parseByteSize("5GB"), 5000000000);
  EXPECT_EQ(parseByteSize("1T"), 1099511627776);
  EXPECT_EQ(parseByteSize("1TiB"), 1099511627776);
  EXPECT_EQ(parseByteSize("1TB"), 1000000000000);
}

TEST(ByteSize, FractionsAndSpaces) {
  EXPECT_EQ(parseByteSize("1.5KiB"), 1536);
  EXPECT_EQ(parseByteSize(".5 MB"), 500000);
  EXPECT_EQ(parseByteSize(" 70 GiB "), 75161927680);
  EXPECT_EQ(parseByteSize("0.3B"), 0); // rounded to the nearest byte
  EXPECT_EQ(parseByteSize("0.7"), 1);
}

TEST(ByteSize, ExactBeyondDoubles) {
  EXPECT_EQ(parseByteSize("9007199254740993"), 9007199254740993); // 2^53 + 1
  EXPECT_EQ(parseByteSize("1000000000000000000"), 1000000000000000000);
  EXPECT_EQ(parseByteSize("1000000000000000001"), std::nullopt);
  EXPECT_EQ(parseByteSize("99999999999999999999999"), std::nullopt);
  EXPECT_EQ(parseByteSize("2000000TB"), std::nullopt);
}

TEST(ByteSize, PartsOfAWhole) {
  EXPECT_EQ(parseByteSize("105%", 2000), 2100);
  EXPECT_EQ(parseByteSize("12.5 %", 1000), 125);
  EXPECT_EQ(parseByteSize("100%"), std::nullopt);
  EXPECT_EQ(parseByteSize("12", 1000), 12);
}

TEST(ByteSize, Refused) {
  for (const char *text : {"", " ", "much", "GiB", "-1", "+1", "1GX", "1kB", "1 2", "1.2.3", ".",
                           "0x10", "1e9", "inf", "nan", "1KiB2", "%"})
    EXPECT_EQ(parseByteSize(text, 1000), std::nullopt) << text;
}
