// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/cuda/attention/AttentionPlan.h"

#include <gtest/gtest.h>

#include <vector>

using namespace shardc::cuda;

namespace {

constexpr AttentionKernelKind kKinds[] = {AttentionKernelKind::Forward,
                                          AttentionKernelKind::QueryGradient,
                                          AttentionKernelKind::KeyGradient};

struct Planned {
  AttentionProblem problem;
  AttentionPlan plan;
};

/// Sizes of heads with all element types and kernels, and rows that are few, many or not known.
std::vector<Planned> plans() {
  std::vector<Planned> all;
  for (AttentionKernelKind kind : kKinds)
    for (int64_t bytes : {2, 4, 8})
      for (int64_t rows : {-1, 0, 1, 17, 1000})
        for (int64_t depth = 0; depth <= kAttentionMostDepth; depth += depth < 40 ? 1 : 9)
          for (int64_t width = 0; width <= kAttentionMostDepth; width += 16) {
            AttentionProblem problem{kind, bytes, depth, width, rows, rows};
            all.push_back({problem, planAttention(problem)});
          }
  return all;
}

TEST(AttentionPlanTest, EveryBlockFitsIntoSharedMemory) {
  for (const auto &[problem, plan] : plans()) {
    bool forward = problem.kind == AttentionKernelKind::Forward;
    int64_t depth = plan.depth.stride, width = plan.width.stride;
    int64_t stays = forward ? std::max(depth, width) : depth + width;
    int64_t bytes = (plan.rows * stays + plan.stages * plan.columns * (depth + width) +
                     plan.rows * plan.exchangeStride) *
                    problem.elementBytes;
    EXPECT_EQ(plan.sharedBytes, bytes);
    EXPECT_LE(bytes, 99 * 1024);
  }
}

TEST(AttentionPlanTest, RowsInSharedMemoryAreInDifferentBanks) {
  for (const auto &[problem, plan] : plans())
    for (const AttentionColumns &columns : {plan.depth, plan.width}) {
      int64_t bytes = columns.stride * problem.elementBytes;
      EXPECT_EQ(bytes % 16, 0);
      EXPECT_EQ(bytes / 16 % 2, 1);
      EXPECT_GE(columns.stride, columns.padded);
      EXPECT_EQ(columns.padded * problem.elementBytes % 16, 0);
    }
}

TEST(AttentionPlanTest, TilesHoldAHeadAndTheThreadsShareThem) {
  for (const auto &[problem, plan] : plans()) {
    EXPECT_GE(plan.depth.padded, problem.depth);
    EXPECT_GE(plan.width.padded, problem.width);
    EXPECT_EQ(plan.threads % 32, 0);
    EXPECT_EQ(plan.threads * plan.rowsPerThread() * plan.columnsPerThread(),
              plan.rows * plan.columns);
    if (!plan.matrixUnits)
      continue;
    // Squares of 16 x 16, in each part of the sums too.
    EXPECT_EQ(plan.columns % 16, 0);
    EXPECT_EQ(plan.depth.padded / plan.parts % 16, 0);
    EXPECT_EQ(plan.width.padded / plan.parts % 16, 0);
    EXPECT_EQ(plan.depth.padded % plan.parts, 0);
  }
}

TEST(AttentionPlanTest, SumsOfAThreadStayInRegisters) {
  for (const auto &[problem, plan] : plans()) {
    bool query = problem.kind != AttentionKernelKind::Forward;
    bool both = problem.kind == AttentionKernelKind::KeyGradient;
    auto perRow = [&](const AttentionColumns &columns) {
      return plan.matrixUnits ? columns.padded / plan.parts / 4 : columns.perThread;
    };
    int64_t sums = both    ? perRow(plan.depth) + perRow(plan.width)
                   : query ? perRow(plan.depth)
                           : perRow(plan.width);
    int64_t words = problem.elementBytes == 8 ? 2 : 1;
    EXPECT_LE(plan.rowsPerThread() * sums * words, 128);
  }
}

TEST(AttentionPlanTest, FewRowsTakeFewThreads) {
  AttentionProblem one{AttentionKernelKind::Forward, 2, 64, 64, 1, -1};
  EXPECT_EQ(planAttention(one).threads, 32);
  EXPECT_EQ(planAttention(one).rows, 16);
  one.rows = -1;
  EXPECT_EQ(planAttention(one).rows, 128);
}

TEST(AttentionPlanTest, TypesOf16BitsUseMatrixUnits) {
  for (const auto &[problem, plan] : plans())
    EXPECT_EQ(plan.matrixUnits, problem.elementBytes == 2);
}

} // namespace
