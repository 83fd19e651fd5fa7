// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Legal and illegal placements of ops, case by case, with the messages.
#include "passes/verify/core/RuleCheck.h"

#include "dialects/sharding/RuleBuilder.h"
#include "passes/verify/core/FactorSets.h"

#include <gtest/gtest.h>

using namespace shardc;

namespace {
using Shapes = std::vector<std::vector<int64_t>>;

/// Checks one op whose layouts are given as text, operands first.
std::vector<std::string> check(const ShardingRule &rule, const Mesh &mesh, const Shapes &operands,
                               const Shapes &results, const std::vector<std::string> &texts) {
  std::vector<Layout> layouts;
  for (const std::string &text : texts) {
    Parsed<Layout> layout = parseLayout(mesh, text);
    EXPECT_TRUE(layout) << layout.error;
    layouts.push_back(*layout.value);
  }
  std::vector<PlacedTensor> placed[2];
  for (size_t i = 0; i < layouts.size(); ++i) {
    bool isResult = i >= operands.size();
    const std::vector<int64_t> &shape = isResult ? results[i - operands.size()] : operands[i];
    EXPECT_TRUE(layouts[i].validate(shape).empty()) << texts[i];
    placed[isResult].push_back({&layouts[i], shape});
  }
  return checkRule(rule, placed[0], placed[1]);
}

using Errors = std::vector<std::string>;
const Mesh tp4({{"tp", 4}});

ShardingRule linearWithBias() {
  return RuleBuilder::ofShapes({{8, 12}, {20, 12}, {20}}, {{8, 20}})
      .einsum({"bi", "oi", "o"}, {"bo"})
      .linearJointly({0, 2})
      .linearJointly({1, 2})
      .additive(2)
      .build();
}
std::vector<std::string> checkLinear(const std::vector<std::string> &layouts) {
  return check(linearWithBias(), tp4, {{8, 12}, {20, 12}, {20}}, {{8, 20}}, layouts);
}
} // namespace

TEST(RuleCheck, LinearIsShardedAlongOneFactor) {
  EXPECT_EQ(checkLinear({"[R]", "[R]", "[R]", "[R]"}), Errors());
  EXPECT_EQ(checkLinear({"[S(0)]", "[R]", "[R]", "[S(0)]"}), Errors());
  EXPECT_EQ(checkLinear({"[R]", "[S(0)]", "[S(0)]", "[S(1)]"}), Errors());
  EXPECT_EQ(checkLinear({"[S(1)]", "[S(1)]", "[P]", "[P]"}), Errors());
  EXPECT_EQ(checkLinear({"[R]", "[S(0, sizes = [7, 0, 1, 12])]", "[S(0, sizes = [7, 0, 1, 12])]",
                         "[S(1, sizes = [7, 0, 1, 12])]"}),
            Errors());
}

TEST(RuleCheck, LinearErrors) {
  EXPECT_EQ(
      checkLinear({"[S(1)]", "[S(1)]", "[R]", "[P]"}),
      Errors{"axis \"tp\": operand 2 is R, but must be P(sum): it must be added only once to a "
             "sum over the axis"});
  EXPECT_EQ(checkLinear({"[S(1)]", "[S(1)]", "[P]", "[R]"}),
            Errors{"axis \"tp\": result 0 is R, but must be P(sum): the axis shards what the op "
                   "reduces over"});
  EXPECT_EQ(checkLinear({"[R]", "[S(0)]", "[R]", "[S(1)]"}),
            Errors{"axis \"tp\": operand 2 is R, but must be sharded along dim 0 of operand 1"});
  EXPECT_EQ(checkLinear({"[R]", "[S(0)]", "[S(0)]", "[S(1, sizes = [7, 0, 1, 12])]"}),
            Errors{"result 0 is [S(1, sizes = [7, 0, 1, 12])] and operand 1 is [S(0)]: they hold "
                   "different parts of dim 0 of operand 1"});
  EXPECT_EQ(checkLinear({"[R]", "[R]", "[R]", "[P]"}),
            Errors{"axis \"tp\": result 0 is P(sum), but comes out as R"});
}

TEST(RuleCheck, PartialsPassWhereTheOpIsLinear) {
  EXPECT_EQ(checkLinear({"[P]", "[R]", "[P]", "[P]"}), Errors());
  EXPECT_EQ(checkLinear({"[P(avg)]", "[R]", "[P(avg)]", "[P(avg)]"}), Errors());
  // The bias would be counted four times.
  EXPECT_EQ(
      checkLinear({"[P]", "[R]", "[R]", "[P]"}),
      Errors{"axis \"tp\": operand 0 is P(sum), but the op is not linear in it: reduce it first"});
  EXPECT_EQ(checkLinear({"[P]", "[R]", "[P(avg)]", "[P]"}),
            Errors{"axis \"tp\": operand 2 is P(avg), but another operand is P(sum)"});
  EXPECT_EQ(checkLinear({"[P(max)]", "[R]", "[P(max)]", "[P(max)]"}).size(), 2u);
  ShardingRule view = RuleBuilder::ofShapes({{6}}, {{2, 3}}).view().build();
  EXPECT_EQ(check(view, tp4, {{6}}, {{2, 3}}, {"[P(max)]", "[P(max)]"}), Errors());
}

TEST(RuleCheck, ViewsCutAtWholeFactors) {
  // Six heads of 64 over four ranks: 128, 128, 128, 0 (L3c).
  Shapes merged = {{2, 384}}, heads = {{2, 6, 64}};
  ShardingRule rule = RuleBuilder::ofShapes(merged, heads).view().build();
  EXPECT_EQ(check(rule, tp4, merged, heads, {"[S(1, granule = 64)]", "[S(1)]"}), Errors());
  EXPECT_EQ(check(rule, tp4, merged, heads, {"[S(1, sizes = [128, 128, 128, 0])]", "[S(1)]"}),
            Errors());
  EXPECT_EQ(check(rule, tp4, merged, heads, {"[S(1, blocks = 6)]", "[S(2)]"}), Errors());
  EXPECT_EQ(
      check(rule, tp4, merged, heads, {"[S(1)]", "[S(1)]"}),
      Errors{"axis \"tp\": operand 0 is S(1), which cuts dim 1 of 384 inside a unit that the op "
             "needs as a whole (its factors are 6 x 64)"});
  EXPECT_NE(check(rule, tp4, merged, heads, {"[S(1, granule = 64)]", "[S(2)]"}), Errors());
}

TEST(RuleCheck, FusedQkvIsCutByBlocks) {
  Shapes fused = {{4, 3 * 8 * 16}}, split = {{4, 3, 8, 16}};
  ShardingRule rule = RuleBuilder::ofShapes(fused, split).view().build();
  EXPECT_EQ(check(rule, tp4, fused, split, {"[S(1, blocks = 3)]", "[S(2)]"}), Errors());
  EXPECT_NE(check(rule, tp4, fused, split, {"[S(1)]", "[S(2)]"}), Errors());
}

TEST(RuleCheck, SeveralAxes) {
  Mesh mesh({{"dp", 2}, {"tp", 2}});
  ShardingRule add =
      RuleBuilder::ofShapes({{5, 4}, {5, 4}}, {{5, 4}}).pointwise().linearJointly({0, 1}).build();
  Shapes operands = {{5, 4}, {5, 4}}, results = {{5, 4}};
  EXPECT_EQ(check(add, mesh, operands, results, {"[S(0), S(0)]", "[S(0), S(0)]", "[S(0), S(0)]"}),
            Errors());
  // Another nesting order holds other rows.
  EXPECT_EQ(check(add, mesh, operands, results,
                  {"[S(0), S(0)]", "[S(0), S(0)], order = [1, 0]", "[S(0), S(0)]"})
                .size(),
            1u);
  EXPECT_EQ(check(add, mesh, operands, results, {"[S(0), P]", "[S(0), P]", "[S(0), P]"}), Errors());
  // An axis of one coordinate does nothing, whatever it is called.
  Mesh flat({{"dp", 1}, {"tp", 2}});
  EXPECT_EQ(check(add, flat, operands, results, {"[S(0), S(1)]", "[P, S(1)]", "[R, S(1)]"}),
            Errors());
}

TEST(RuleCheck, NeedsReplication) {
  ShardingRule rule = RuleBuilder::ofShapes({{8}}, {{8}})
                          .pointwise()
                          .operandDimKind(0, 0, FactorKind::NeedReplication)
                          .build();
  EXPECT_EQ(check(rule, tp4, {{8}}, {{8}}, {"[S(0)]", "[S(0)]"}),
            Errors{"axis \"tp\" shards dim 0 of operand 0, along which the op needs all elements"});
}

// Ranks have their parts of a slice from each other where the whole dim is cut at sizes.
TEST(RuleCheck, OneOfSeveralBlocksOfADimThatSizesCut) {
  ShardingRule rule = RuleBuilder::ofShapes({{16}}, {{2}}).slice(0, 0).build();
  Mesh tp2({{"tp", 2}});
  auto checkSlice = [&](const char *from, const char *to) {
    return check(rule, tp2, {{16}}, {{2}}, {from, to});
  };
  EXPECT_EQ(checkSlice("[S(0, blocks = 8)]", "[S(0)]"), Errors());
  EXPECT_EQ(checkSlice("[S(0, sizes = [10, 6])]", "[S(0, sizes = [2, 0])]"), Errors());
  EXPECT_EQ(checkSlice("[S(0, sizes = [1, 15])]", "[S(0)]"), Errors());
  EXPECT_EQ(checkSlice("[S(0)]", "[S(0)]"),
            Errors{"axis \"tp\" shards the factor of 8 in dim 0 of operand 0, along which the op "
                   "needs all elements"});
  EXPECT_NE(checkSlice("[S(0, sizes = [10, 6])]", "[R]"), Errors());
}

TEST(RuleCheck, WhatCountsPositionsIsInOnePiece) {
  ShardingRule rule =
      RuleBuilder::ofShapes({{6}}, {{6}}).cooperative({0}, 1).operandDimInOnePiece(0, 0).build();
  Mesh tp2({{"tp", 2}});
  EXPECT_EQ(rule.str(), "(a) -> (a), a = 6 cooperative in one piece");
  EXPECT_EQ(check(rule, tp2, {{6}}, {{6}}, {"[S(0)]", "[S(0)]"}), Errors());
  EXPECT_EQ(check(rule, tp2, {{6}}, {{6}}, {"[S(0, blocks = 3)]", "[S(0, blocks = 3)]"}),
            (Errors{"axis \"tp\": operand 0 is S(0, blocks = 3), which gives a rank several pieces "
                    "of dim 0, but the op needs one piece on each",
                    "axis \"tp\": result 0 is S(0, blocks = 3), which gives a rank several pieces "
                    "of dim 0, but the op needs one piece on each"}));
}

TEST(RuleCheck, SizesThatAreNotStatic) {
  Shapes x = {{kDynamic, 384}}, y = {{kDynamic, 6, 64}};
  ShardingRule rule = RuleBuilder::ofShapes(x, y).view().build();
  EXPECT_EQ(check(rule, tp4, x, y, {"[S(0)]", "[S(0)]"}), Errors());
  EXPECT_EQ(check(rule, tp4, x, y, {"[S(1, granule = 64)]", "[S(1)]"}), Errors());
  EXPECT_NE(check(rule, tp4, x, y, {"[S(0)]", "[R]"}), Errors());
}

// One shard has everything and the others nothing: the other tensors say which factor is split.
TEST(RuleCheck, OneShardHasEverything) {
  Shapes x = {{2, 384}}, y = {{2, 6, 64}};
  ShardingRule rule = RuleBuilder::ofShapes(x, y).view().build();
  std::string all = "[S(1, sizes = [384, 0, 0, 0])]";
  EXPECT_EQ(check(rule, tp4, x, y, {all, "[S(1, sizes = [6, 0, 0, 0])]"}), Errors());
  EXPECT_EQ(check(rule, tp4, x, y, {all, "[S(2, sizes = [64, 0, 0, 0])]"}), Errors());
  EXPECT_NE(check(rule, tp4, x, y, {all, "[R]"}), Errors());
  EXPECT_NE(check(rule, tp4, x, y, {all, "[S(1, sizes = [0, 6, 0, 0])]"}), Errors());
}

// A query head is (key head, position in its group). Where one rank has all queries, keys on every
// rank say that the groups are what is split; keys on that rank alone, that key heads are.
TEST(RuleCheck, OneShardHasAllGroupsOfQueries) {
  Mesh tp2({{"tp", 2}});
  Shapes operands = {{6, 5}, {3, 4}}, results = {{6, 5, 4}};
  ShardingRule rule =
      RuleBuilder::ofShapes(operands, results).einsum({"(kg)l", "ks"}, {"(kg)ls"}).build();
  std::string all = "[S(0, blocks = 3, sizes = [2, 0])]";
  EXPECT_EQ(check(rule, tp2, operands, results, {all, "[R]", all}), Errors());
  EXPECT_EQ(check(rule, tp2, operands, results, {all, "[S(0, sizes = [3, 0])]", all}), Errors());
  EXPECT_EQ(check(rule, tp2, operands, results, {all, "[S(0)]", all}).size(), 1u);
  EXPECT_NE(check(rule, tp2, operands, results, {all, "[R]", "[R]"}), Errors());
  EXPECT_NE(check(rule, tp2, operands, results, {all, "[P]", all}), Errors());
}

TEST(RuleCheck, MeshesMustAgree) {
  Layout a(tp4), b(Mesh({{"tp", 2}}));
  ShardingRule rule = RuleBuilder::ofShapes({{8}}, {{8}}).pointwise().build();
  PlacedTensor operand{&a, {8}}, result{&b, {8}};
  EXPECT_EQ(checkRule(rule, {&operand, 1}, {&result, 1}),
            Errors{"result 0 is on mesh [\"tp\" = 2], but operand 0 on [\"tp\" = 4]"});
}

TEST(FactorSets, Factorize) {
  IndexSet rows = {{64, 192}};
  int64_t sizes[] = {6, 64};
  std::vector<IndexSet> expected = {{{1, 3}}, {{0, 64}}};
  EXPECT_EQ(factorize(rows, sizes), expected);
  IndexSet columns = {{3, 5}, {67, 69}, {131, 133}, {195, 197}, {259, 261}, {323, 325}};
  expected = {{{0, 6}}, {{3, 5}}};
  EXPECT_EQ(factorize(columns, sizes), expected);
  IndexSet neither = {{63, 65}};
  EXPECT_EQ(factorize(neither, sizes), std::nullopt);
}

// Six elements in two blocks over three ranks, of which the first holds nothing.
TEST(FactorSets, TheFirstShardMayBeEmpty) {
  Mesh mesh({{"a", 3}});
  AxisSplit axis{0, 3, 2, 1, {0, 1, 2}};
  std::vector<int64_t> sizes = {2, 3};
  std::vector<FactorSets> sets = factorSetsOfDim({{axis}}, 6, sizes, mesh);
  ASSERT_EQ(sets.size(), 2u);
  EXPECT_FALSE(sets[0].dependsOn(0));
  EXPECT_TRUE(sets[1].dependsOn(0));
  EXPECT_TRUE(sets[1].isUndeterminedOn(0));
}
