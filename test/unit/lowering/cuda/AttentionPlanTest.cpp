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
            std::optional<AttentionPlan> plan = planAttention(problem);
            if (plan)
              all.push_back({problem, *plan});
            else
              ADD_FAILURE() << "no plan for heads of " << depth << " and " << width;
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

TEST(AttentionPlanTest, WhatDoesNotFitHasNoPlan) {
  for (AttentionKernelKind kind : kKinds)
    for (int64_t bytes : {2, 4, 8}) {
      // Large enough that one row each of what stays and what passes by exceeds shared memory.
      EXPECT_FALSE(planAttention({kind, bytes, 50000, 50000, -1, -1}));
      // And that sums of 8 rows exceed the registers of 8 x 8 threads.
      EXPECT_FALSE(planAttention({kind, bytes, 2048, 2048, -1, -1}));
    }
}

TEST(AttentionPlanTest, FewRowsTakeFewThreads) {
  AttentionProblem one{AttentionKernelKind::Forward, 2, 64, 64, 1, -1};
  EXPECT_EQ(planAttention(one)->threads, 32);
  EXPECT_EQ(planAttention(one)->rows, 16);
  one.rows = -1;
  EXPECT_EQ(planAttention(one)->rows, 128);
}

using Parts = AttentionParts<PlainArithmetic, int64_t>;

TEST(AttentionPartsTest, PartsCoverAllKeysInWholeTiles) {
  PlainArithmetic plain;
  for (const auto &[problem, plan] : plans()) {
    if (problem.kind != AttentionKernelKind::Forward || problem.depth % 32 != problem.width % 32)
      continue;
    for (int64_t blocks : {0, 1, 7, 64, 200, 263, 1000, 100000})
      for (int64_t seen : {0, 1, 127, 128, 129, 1000, 4096, 99999}) {
        Parts parts(plain, plan, kAttentionMultiprocessors, blocks, seen);
        ASSERT_GE(parts.count, 1);
        EXPECT_EQ(parts.keys % plan.columns, 0);
        EXPECT_GE(parts.count * parts.keys, seen);
        if (parts.count == 1)
          continue;
        // None is empty, or small, and there are no more than multiprocessors have room for.
        EXPECT_LT((parts.count - 1) * parts.keys, seen);
        EXPECT_GE(parts.keys, kAttentionLeastKeys);
        EXPECT_LE(blocks * parts.count, kAttentionMultiprocessors * plan.residentBlocks());
      }
  }
}

TEST(AttentionPartsTest, ADecodeStepKeepsAllMultiprocessorsBusy) {
  PlainArithmetic plain;
  AttentionPlan plan = *planAttention({AttentionKernelKind::Forward, 2, 128, 128, 4, 4096});
  Parts parts(plain, plan, kAttentionMultiprocessors, /*blocks=*/8 * 8, /*seen=*/4096);
  EXPECT_EQ(parts.count, 8);
  EXPECT_EQ(parts.keys, 512);
  EXPECT_EQ(Parts(plain, plan, kAttentionMultiprocessors, 8 * 8, 100).count, 1);
  EXPECT_EQ(Parts(plain, plan, kAttentionMultiprocessors, 8 * 64, 4096).count, 1);
}

TEST(AttentionPlanTest, TypesOf16BitsUseMatrixUnits) {
  for (const auto &[problem, plan] : plans())
    EXPECT_EQ(plan.matrixUnits, problem.elementBytes == 2);
}

} // namespace
