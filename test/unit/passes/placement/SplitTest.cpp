// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/placement/core/Split.h"

#include <gtest/gtest.h>

using namespace shardc;

/// A rule whose operand has one dim with factors of these sizes; negative: needs replication.
static ShardingRule ruleOf(const std::vector<int64_t> &sizes) {
  ShardingRule rule;
  DimFactors dim;
  for (int64_t size : sizes) {
    bool replicated = size < 0 && size != kDynamic;
    Factor f;
    f.size = replicated ? -size : size;
    f.kind = replicated ? FactorKind::NeedReplication : FactorKind::Parallel;
    dim.push_back(static_cast<unsigned>(rule.factors.size()));
    rule.factors.push_back(f);
  }
  rule.operands = {{dim}};
  return rule;
}

static SizesPool pool;

/// "factor: blocks x granule", or "none".
static std::string project(const std::vector<int64_t> &sizes, Split split) {
  ShardingRule rule = ruleOf(sizes);
  std::optional<FactorSplit> f = projectToFactor({rule, false, 0, 0}, split, pool);
  if (!f)
    return "none";
  std::string text = std::to_string(f->factor) + ": " + std::to_string(f->split.blocks) + " x " +
                     std::to_string(f->split.granule);
  if (f->split.sizes)
    for (int64_t size : *f->split.sizes)
      text += " " + std::to_string(size);
  std::optional<Split> back = liftToDim({rule, false, 0, 0}, *f, pool);
  if (split.fixed) // what is fixed does not change
    EXPECT_TRUE(back && back->sameExtents(split)) << text;
  return text;
}

static const Split kOpen{};
static Split open(int64_t blocks, int64_t granule) { return {blocks, granule, nullptr, false}; }
static Split fixed(int64_t blocks, int64_t granule) { return {blocks, granule, nullptr, true}; }

TEST(Split, OpenExtentsTakeTheOutermostFactor) {
  EXPECT_EQ(project({768}, kOpen), "0: 1 x 1");
  EXPECT_EQ(project({12, 64}, kOpen), "0: 1 x 1");
  EXPECT_EQ(project({12, 64}, open(1, 128)), "0: 1 x 2");
  EXPECT_EQ(project({12, 64}, open(3, 1)), "0: 3 x 1");
  EXPECT_EQ(project({12, 64}, open(12, 1)), "1: 1 x 1");
  EXPECT_EQ(project({12, 64}, open(24, 1)), "1: 2 x 1");
  EXPECT_EQ(project({-3, 768}, kOpen), "1: 1 x 1");
  EXPECT_EQ(project({-3, 768}, open(3, 64)), "1: 1 x 64");
  EXPECT_EQ(project({-3, -4}, kOpen), "none");
  EXPECT_EQ(project({}, kOpen), "none");
  // One unit cannot be shared out: go inside.
  EXPECT_EQ(project({2, 3, 5}, open(1, 30)), "none");
  EXPECT_EQ(project({2, 3, 5}, open(2, 15)), "none");
}

TEST(Split, FixedExtentsMustFit) {
  EXPECT_EQ(project({12, 64}, fixed(1, 64)), "0: 1 x 1");
  EXPECT_EQ(project({12, 64}, fixed(1, 32)), "none");
  EXPECT_EQ(project({-3, 768}, fixed(1, 1)), "none");
  EXPECT_EQ(project({-3, 768}, fixed(3, 64)), "1: 1 x 64");
  Split sizes{1, 1, pool.get({128, 64, 0, 192}), true};
  EXPECT_EQ(project({6, 64}, sizes), "0: 1 x 1 2 1 0 3");
  EXPECT_EQ(project({3, 128}, sizes), "none");
}

/// Blocks inside a factor that must be in one piece do not shard it: blocks of the factors outside
/// do not count.
TEST(Split, FactorsInOnePiece) {
  ShardingRule rule = ruleOf({3, 4});
  rule.factors[1].inOnePiece = true;
  auto factor = [&](const Split &split) {
    std::optional<FactorSplit> f = projectToFactor({rule, false, 0, 0}, split, pool);
    return f ? static_cast<int>(f->factor) : -1;
  };
  EXPECT_EQ(factor(open(3, 1)), 1);
  EXPECT_EQ(factor(open(6, 1)), -1);
  EXPECT_EQ(factor(fixed(6, 1)), -1);
  rule.factors[1].inOnePiece = false;
  EXPECT_EQ(factor(open(6, 1)), 1);
}

TEST(Split, UnknownSizes) {
  EXPECT_EQ(project({kDynamic, 64}, kOpen), "0: 1 x 1");
  EXPECT_EQ(project({4, kDynamic}, kOpen), "none");
  EXPECT_EQ(project({-4, kDynamic}, kOpen), "1: 1 x 1");
}

TEST(Split, Merge) {
  auto merged = [](Split a, Split b, int64_t n) -> std::string {
    std::optional<Split> m = mergeSplits(a, b, n, pool);
    return m ? std::to_string(m->blocks) + " x " + std::to_string(m->granule) : "none";
  };
  EXPECT_EQ(merged(open(1, 64), open(3, 1), 2304), "3 x 64");
  EXPECT_EQ(merged(open(1, 4), open(1, 6), 48), "1 x 12");
  EXPECT_EQ(merged(open(1, 4), open(1, 6), 12), "none");
  EXPECT_EQ(merged(open(1, 4), open(1, 6), 40), "none");
  EXPECT_EQ(merged(fixed(1, 64), open(1, 32), 768), "1 x 64");
  EXPECT_EQ(merged(fixed(1, 32), open(1, 64), 768), "none");
  EXPECT_EQ(merged(fixed(1, 32), open(3, 1), 768), "none");
  EXPECT_EQ(merged(fixed(1, 32), fixed(1, 32), 768), "1 x 32");
}
