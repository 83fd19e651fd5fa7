// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/Bytes.h"

#include <gtest/gtest.h>

using shardc::parseBytes;

TEST(Bytes, NumbersWithAndWithoutUnits) {
  EXPECT_EQ(parseBytes("1"), 1u);
  EXPECT_EQ(parseBytes("40000000000"), 40000000000u);
  EXPECT_EQ(parseBytes("999999999999999999"), 999999999999999999u);
  EXPECT_EQ(parseBytes("12B"), 12u);
  EXPECT_EQ(parseBytes("64KiB"), 65536u);
  EXPECT_EQ(parseBytes("64K"), 65536u);
  EXPECT_EQ(parseBytes("3 MiB"), 3145728u);
  EXPECT_EQ(parseBytes(" 2GiB "), 2147483648u);
  EXPECT_EQ(parseBytes("2GB"), 2000000000u);
  EXPECT_EQ(parseBytes("1.5MB"), 1500000u);
  EXPECT_EQ(parseBytes("0.5KiB"), 512u);
}

TEST(Bytes, WhatIsNoNumberOfBytes) {
  for (const char *text :
       {"", " ", "much", "-1", "-1KiB", "0", "0GiB", "0.5", "1GX", "1 2", "GiB", "KiB 1", "105%",
        "1e3", "nan", "inf", "2000000000GiB", "1000000000000000001", "0x10"})
    EXPECT_EQ(parseBytes(text), std::nullopt) << text;
}
