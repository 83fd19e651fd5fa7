// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/cuda/kernels/RowPlan.h"

#include <bit>
#include <gtest/gtest.h>

using namespace shardc::cuda;

namespace {

using Form = RowPlan::Form;

RowShape rowsOf(int64_t rows, int64_t length, int64_t vector = 4) {
  RowShape shape;
  shape.rows = rows;
  shape.length = length;
  shape.vector = vector;
  shape.keptValues = 1;
  shape.keptBytes = 4;
  shape.passes = 3;
  shape.elementOps = 8;
  return shape;
}

TEST(RowPlanTest, ShortRowsShareAWarp) {
  RowPlan plan = planRows(rowsOf(100000, 40));
  EXPECT_EQ(plan.form, Form::Registers);
  EXPECT_LT(plan.team, 32);
  EXPECT_EQ(plan.threads(), 128);
  EXPECT_GE(plan.team * plan.chunks * plan.vector, 40);
}

TEST(RowPlanTest, AWarpOrABlockHasARowInRegisters) {
  RowPlan warp = planRows(rowsOf(100000, 768));
  EXPECT_EQ(warp.form, Form::Registers);
  EXPECT_EQ(warp.team, 32);
  RowPlan block = planRows(rowsOf(100000, 8192));
  EXPECT_EQ(block.form, Form::Registers);
  EXPECT_EQ(block.rowsOfBlock, 1);
  EXPECT_GE(block.team * block.chunks * block.vector, 8192);
}

TEST(RowPlanTest, LongRowsAreInSharedMemoryWhileTheyFit) {
  EXPECT_EQ(planRows(rowsOf(1000, 20000)).form, Form::Shared);
  EXPECT_EQ(planRows(rowsOf(1000, 50257)).form, Form::Passes);
  RowShape narrow = rowsOf(1000, 40000, 8);
  narrow.keptBytes = 2;
  EXPECT_EQ(planRows(narrow).form, Form::Shared);
}

TEST(RowPlanTest, MuchCodeIsNotRepeated) {
  RowShape shape = rowsOf(1000, 768);
  shape.elementOps = 4000;
  EXPECT_NE(planRows(shape).form, Form::Registers);
}

TEST(RowPlanTest, FewLongRowsAreSplit) {
  for (bool columns : {false, true}) {
    RowShape shape = rowsOf(2, 1 << 20, columns ? 1 : 4);
    shape.columns = columns;
    RowPlan plan = planRows(shape);
    EXPECT_EQ(plan.form, Form::Split);
    EXPECT_GT(plan.splits, 1);
    EXPECT_EQ(plan.columns, columns);
    shape.rows = 1 << 16;
    EXPECT_NE(planRows(shape).form, Form::Split);
    shape.rows = 2;
    shape.scan = true;
    EXPECT_NE(planRows(shape).form, Form::Split);
  }
}

TEST(RowPlanTest, EverySizeHasAPlanThatADeviceCanLaunch) {
  for (int64_t rows : {kUnknownSize, int64_t(0), int64_t(1), int64_t(7), int64_t(1 << 20)})
    for (int64_t length : {kUnknownSize, int64_t(0), int64_t(1), int64_t(3), int64_t(33),
                           int64_t(1025), int64_t(50257), int64_t(1) << 33})
      for (int64_t vector : {1, 2, 4, 8})
        for (int flags = 0; flags < 8; ++flags) {
          RowShape shape = rowsOf(rows, length, vector);
          shape.columns = flags & 1;
          shape.scan = flags & 2;
          shape.alignedRows = !(flags & 4);
          if (shape.columns)
            shape.vector = 1;
          RowPlan plan = planRows(shape);
          EXPECT_TRUE(std::has_single_bit(static_cast<uint64_t>(plan.team)));
          EXPECT_TRUE(std::has_single_bit(static_cast<uint64_t>(plan.rowsOfBlock)));
          EXPECT_GE(plan.threads(), 32);
          EXPECT_LE(plan.threads(), 1024);
          EXPECT_EQ(plan.threads() % 32, 0);
          // Rows of several warps have a block of their own.
          if (!plan.columns && plan.team > 32)
            EXPECT_EQ(plan.rowsOfBlock, 1);
          if (plan.form == Form::Registers) {
            int64_t slack = shape.alignedRows ? 0 : plan.vector - 1;
            ASSERT_NE(length, kUnknownSize);
            if (length > 0)
              EXPECT_GE(plan.chunks * plan.team * plan.vector, length + slack);
          }
        }
}

} // namespace
