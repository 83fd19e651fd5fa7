// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/cuda-emulator/Settings.h"

#include <gtest/gtest.h>

using namespace shardc::emulator;

namespace {

TEST(Settings, OrdersAreParsed) {
  Settings s;
  EXPECT_TRUE(parseOrder("lazy", s));
  EXPECT_EQ(s.order, StreamOrder::Lazy);
  EXPECT_TRUE(parseOrder("random:42", s));
  EXPECT_EQ(s.order, StreamOrder::Random);
  EXPECT_EQ(s.seed, 42u);
  for (const char *wrong : {"", "Lazy", "random", "random:", "random:x", "random:1x", "random:-1"})
    EXPECT_FALSE(parseOrder(wrong, s)) << wrong;
  EXPECT_EQ(s.seed, 42u);
}

TEST(Settings, DropsAreParsed) {
  Settings s;
  EXPECT_TRUE(parseDrop("barrier:3", s));
  EXPECT_EQ(s.dropped, Dropped::Barrier);
  EXPECT_EQ(s.droppedNumber, 3u);
  for (const char *wrong : {"barrier", "barrier:", "fence:1", "wait:x"})
    EXPECT_FALSE(parseDrop(wrong, s)) << wrong;
  EXPECT_TRUE(parseDrop("", s));
  EXPECT_EQ(s.dropped, Dropped::Nothing);
}

} // namespace
