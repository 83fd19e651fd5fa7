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

static Split blocks(const std::vector<SplitBlock> &list, bool fixed = false) {
  return Split::intoBlocks(list, fixed, pool);
}

/// "[64 32] by [16 8]", "3 x 64", or "none".
static std::string text(const std::optional<Split> &split) {
  if (!split)
    return "none";
  if (!split->isUnequal())
    return std::to_string(split->blocks) + " x " + std::to_string(split->granule);
  std::string sizes, granules;
  for (const SplitBlock &block : split->unequal()) {
    sizes += (sizes.empty() ? "" : " ") + std::to_string(block.size);
    granules += (granules.empty() ? "" : " ") + std::to_string(block.granule);
  }
  return "[" + sizes + "] by [" + granules + "]";
}

TEST(Split, UnequalBlocksOfFactors) {
  auto through = [](const std::vector<int64_t> &sizes, const Split &split) -> std::string {
    ShardingRule rule = ruleOf(sizes);
    std::optional<FactorSplit> f = projectToFactor({rule, false, 0, 0}, split, pool);
    if (!f)
      return "none";
    return std::to_string(f->factor) + ": " + text(f->split) + " -> " +
           text(liftToDim({rule, false, 0, 0}, *f, pool));
  };
  Split grouped = blocks({{32, 1}, {16, 1}, {16, 1}});
  EXPECT_EQ(through({64}, grouped), "0: [32 16 16] by [1 1 1] -> [32 16 16] by [1 1 1]");
  // Whole heads of 8, which open extents follow and fixed ones do not.
  EXPECT_EQ(through({8, 8}, grouped), "0: [4 2 2] by [1 1 1] -> [32 16 16] by [8 8 8]");
  EXPECT_EQ(through({8, 8}, blocks({{32, 1}, {16, 1}, {16, 1}}, true)), "none");
  EXPECT_EQ(through({8, 8}, blocks({{32, 16}, {16, 8}, {16, 8}}, true)),
            "0: [4 2 2] by [2 1 1] -> [32 16 16] by [16 8 8]");
  EXPECT_EQ(through({4, 16}, blocks({{32, 1}, {24, 1}, {8, 1}})), "none");
  EXPECT_EQ(through({-4, 16}, grouped), "none");
  EXPECT_EQ(through({4, 4}, blocks({{8, 8}, {4, 4}, {4, 4}})), "none"); // nothing to share out
}

TEST(Split, MergeUnequalBlocks) {
  auto merged = [](const Split &a, const Split &b) { return text(mergeSplits(a, b, 64, pool)); };
  Split grouped = blocks({{32, 1}, {16, 1}, {16, 1}});
  EXPECT_EQ(merged(kOpen, grouped), "[32 16 16] by [1 1 1]");
  EXPECT_EQ(merged(open(1, 8), grouped), "[32 16 16] by [8 8 8]");
  EXPECT_EQ(merged(grouped, open(2, 16)), "[32 16 16] by [16 16 16]");
  EXPECT_EQ(merged(open(1, 32), grouped), "none");
  EXPECT_EQ(merged(grouped, blocks({{8, 2}, {56, 4}})), "[8 24 16 16] by [2 4 4 4]");
  EXPECT_EQ(merged(grouped, blocks({{32, 32}, {32, 1}})), "[32 16 16] by [32 1 1]");
  EXPECT_EQ(merged(blocks({{32, 16}, {16, 8}, {16, 8}}, true), open(1, 8)),
            "[32 16 16] by [16 8 8]");
  EXPECT_EQ(merged(blocks({{32, 16}, {16, 8}, {16, 8}}, true), open(1, 16)), "none");
  EXPECT_TRUE(sameShards(grouped, blocks({{32, 16}, {16, 8}, {16, 2}}), 64, 2));
  EXPECT_FALSE(sameShards(grouped, open(4, 1), 64, 2));
  EXPECT_TRUE(sameShards(blocks({{32, 1}, {32, 1}}), open(2, 1), 64, 3));
}

TEST(Split, PartsOfARange) {
  // Elements 32 to 47 of 64, as a rule of parts of other sizes and as one of equal parts says it.
  ShardingRule halo = ruleOf({64}), equal = ruleOf({-4, 16});
  halo.factors[0].kind = FactorKind::Neighbouring;
  halo.factors[0].inOnePiece = true;
  for (ShardingRule *rule : {&halo, &equal}) {
    unsigned factor = rule->operands[0][0].back();
    rule->results = {{{factor}}};
    rule->factors[factor].exchange = 33;
    std::vector<FactorPart> parts = partsOf(*rule, std::vector<std::vector<int64_t>>{{64}},
                                            std::vector<std::vector<int64_t>>{{16}});
    ASSERT_EQ(parts.size(), 2u);
    RuleDim whole{*rule, false, 0, 0, parts}, part{*rule, true, 0, 0, parts};
    std::optional<FactorSplit> f =
        projectToFactor(whole, blocks({{32, 8}, {16, 4}, {16, 4}}), pool);
    ASSERT_TRUE(f);
    EXPECT_EQ(text(liftToDim(whole, *f, pool)), "[32 16 16] by [8 4 4]");
    EXPECT_EQ(text(liftToDim(part, *f, pool)), "1 x 4");
    // Borders of the part become those of blocks.
    f = projectToFactor(whole, blocks({{40, 1}, {24, 1}}), pool);
    ASSERT_TRUE(f);
    EXPECT_EQ(text(liftToDim(whole, *f, pool)), "[32 8 8 16] by [1 1 1 1]");
    EXPECT_EQ(text(liftToDim(part, *f, pool)), "2 x 1");
    // What is asked of a part says nothing of the rest.
    f = projectToRange(part, open(1, 8), std::vector<int64_t>{0, 32, 48, 64}, pool);
    ASSERT_TRUE(f);
    EXPECT_EQ(text(liftToDim(whole, *f, pool)), "[32 16 16] by [1 8 1]");
  }
}

TEST(Split, SizesOfAWindowedDimAreInProportion) {
  // A window of stride 2: 64 elements of the image, 32 positions.
  ShardingRule rule = ruleOf({64});
  rule.factors[0].kind = FactorKind::Neighbouring;
  rule.factors[0].inOnePiece = true;
  rule.results = {{{0}}};
  RuleDim image{rule, false, 0, 0, {}, 64}, positions{rule, true, 0, 0, {}, 32};
  auto shards = [](const std::optional<Split> &split) {
    return split && split->sizes ? *split->sizes : std::vector<int64_t>();
  };
  Split given{1, 1, pool.get({10, 0, 33, 21}), true};
  std::optional<FactorSplit> f = projectToFactor(image, given, pool);
  ASSERT_TRUE(f);
  EXPECT_EQ(shards(liftToDim(image, *f, pool)), (std::vector<int64_t>{10, 0, 33, 21}));
  EXPECT_EQ(shards(liftToDim(positions, *f, pool)), (std::vector<int64_t>{5, 0, 17, 10}));
  // And back: what the positions say of the image.
  f = projectToFactor(positions, Split{1, 1, pool.get({5, 0, 17, 10}), true}, pool);
  ASSERT_TRUE(f);
  EXPECT_EQ(shards(liftToDim(positions, *f, pool)), (std::vector<int64_t>{5, 0, 17, 10}));
  EXPECT_EQ(shards(liftToDim(image, *f, pool)), (std::vector<int64_t>{10, 0, 34, 20}));
  // Units of more than one element are not those of another size, and neither is known of a dim
  // of unknown size.
  EXPECT_TRUE(projectToFactor(image, open(1, 4), pool));
  EXPECT_FALSE(projectToFactor(positions, open(1, 4), pool));
  EXPECT_FALSE(liftToDim(positions, {0, open(1, 4)}, pool));
  EXPECT_FALSE(liftToDim({rule, true, 0, 0}, *f, pool));
}
