// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The rates beside PyTorch's are in test/e2e/test_training.py.
#include "tools/shard-run/Schedule.h"

#include <gtest/gtest.h>

using shardc::run::Schedule;

TEST(Schedule, GrowsToThePeak) {
  Schedule schedule{Schedule::Shape::Constant, 0.4, 0.1, 4, 10};
  EXPECT_DOUBLE_EQ(schedule.rate(0), 0.1);
  EXPECT_DOUBLE_EQ(schedule.rate(3), 0.4);
  EXPECT_DOUBLE_EQ(schedule.rate(9), 0.4);
}

TEST(Schedule, FallsToTheEnd) {
  Schedule line{Schedule::Shape::Linear, 1.0, 0.2, 2, 6};
  EXPECT_DOUBLE_EQ(line.rate(2), 1.0);
  EXPECT_DOUBLE_EQ(line.rate(4), 0.6);
  EXPECT_DOUBLE_EQ(line.rate(6), 0.2);
  Schedule cosine{Schedule::Shape::Cosine, 1.0, 0.2, 2, 6};
  EXPECT_DOUBLE_EQ(cosine.rate(2), 1.0);
  EXPECT_DOUBLE_EQ(cosine.rate(4), 0.6);
  EXPECT_DOUBLE_EQ(cosine.rate(6), 0.2);
}

TEST(Schedule, StaysAtTheEnd) {
  for (Schedule::Shape shape : {Schedule::Shape::Linear, Schedule::Shape::Cosine}) {
    Schedule schedule{shape, 1.0, 0.25, 3, 3}; // warm-up alone
    EXPECT_DOUBLE_EQ(schedule.rate(2), 1.0);
    EXPECT_DOUBLE_EQ(schedule.rate(4), 0.25);
  }
}

TEST(Schedule, Names) {
  EXPECT_EQ(Schedule::shapeNamed("cosine"), Schedule::Shape::Cosine);
  EXPECT_FALSE(Schedule::shapeNamed("step"));
}
