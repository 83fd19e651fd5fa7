// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/JsonText.h"

#include <gtest/gtest.h>

#include <limits>

using namespace shardc;

TEST(JsonText, Strings) {
  EXPECT_EQ(jsonString(""), R"("")");
  EXPECT_EQ(jsonString(R"(a "b" \c)"), R"("a \"b\" \\c")");
  EXPECT_EQ(jsonString("tab\tnew\nline\x01"), R"("tab\u0009new\u000aline\u0001")");
  EXPECT_EQ(jsonString("\xc3\xa4"), "\"\xc3\xa4\""); // UTF-8 is JSON's own encoding
  EXPECT_EQ(jsonString(std::string_view("a\0b", 3)), R"("a\u0000b")");
}

TEST(JsonText, Numbers) {
  EXPECT_EQ(jsonNumber(0.1), "0.1");
  EXPECT_EQ(jsonNumber(3), "3");
  EXPECT_EQ(jsonNumber(-2.5e-300), "-2.5e-300");
  EXPECT_EQ(jsonNumber(1.0 / 3), "0.3333333333333333");
  EXPECT_EQ(jsonNumber(std::numeric_limits<double>::infinity()), "null");
  EXPECT_EQ(jsonNumber(std::nan("")), "null");
}
