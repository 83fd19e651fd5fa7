// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/sharding/RuleBuilder.h"

#include <gtest/gtest.h>

using namespace shardc;
using Shapes = std::vector<std::vector<int64_t>>;

static RuleBuilder of(const Shapes &operands, const Shapes &results) {
  return RuleBuilder::ofShapes(operands, results);
}

/// The rule's text, after checking it against the shapes.
static std::string text(RuleBuilder builder, const Shapes &operands, const Shapes &results) {
  ShardingRule rule = builder.build();
  for (const std::string &error : rule.validate(operands, results))
    ADD_FAILURE() << error;
  for (const std::string &error : builder.errors())
    ADD_FAILURE() << error;
  return rule.str();
}

TEST(RuleBuilder, PointwiseBroadcasts) {
  Shapes in{{4, 1, 8}, {5, 8}, {}}, out{{4, 5, 8}};
  EXPECT_EQ(text(of(in, out).pointwise(), in, out),
            "(a)()(b), (c)(b), scalar -> (a)(c)(b), a = 4, b = 8, c = 5");
}

TEST(RuleBuilder, LinearWithBias) {
  Shapes in{{2, 3, 16}, {8, 16}, {8}}, out{{2, 3, 8}};
  RuleBuilder builder = of(in, out)
                            .einsum({"bsi", "oi", "o"}, {"bso"})
                            .linearJointly({0, 2})
                            .linearJointly({1, 2})
                            .additive(2);
  EXPECT_EQ(text(builder, in, out), "(a)(b)(c), (d)(c), (d) -> (a)(b)(d), a = 2, b = 3, "
                                    "c = 16 sum, d = 8");
  EXPECT_TRUE(builder.build().isAdditive(2));
  EXPECT_FALSE(builder.build().isAdditive(0));
}

TEST(RuleBuilder, GroupedQueryAttention) {
  Shapes in{{2, 8, 5, 16}, {2, 2, 7, 16}, {2, 2, 7, 4}, {1, 1, 5, 7}}, out{{2, 8, 5, 4}};
  RuleBuilder builder = of(in, out)
                            .einsum({"b(kg)sd", "bktd", "bkte", "bhst"}, {"b(kg)se"})
                            .letter('d', FactorKind::NeedReplication)
                            .letter('t', FactorKind::Cooperative, 6);
  EXPECT_EQ(
      text(builder, in, out),
      "(a)(b c)(d)(e), (a)(b)(f)(e), (a)(b)(f)(g), ()()(d)(f) -> (a)(b c)(d)(g), a = 2, b = 2, "
      "c = 4, d = 5, e = 16 replicated, f = 7 cooperative, g = 4");
}

TEST(RuleBuilder, Matmul) {
  auto check = [](Shapes in, Shapes out, const char *expected) {
    EXPECT_EQ(text(of(in, out).matmul(), in, out), expected);
  };
  check({{3, 4}, {4, 5}}, {{3, 5}}, "(a)(b), (b)(c) -> (a)(c), a = 3, b = 4 sum, c = 5");
  check({{2, 1, 3, 4}, {6, 4, 5}}, {{2, 6, 3, 5}},
        "(a)()(b)(c), (d)(c)(e) -> (a)(d)(b)(e), a = 2, b = 3, c = 4 sum, d = 6, e = 5");
  check({{4}, {4}}, {{}}, "(a), (a) -> scalar, a = 4 sum");
  check({{4}, {2, 4, 5}}, {{2, 5}}, "(a), (b)(a)(c) -> (b)(c), a = 4 sum, b = 2, c = 5");
}

TEST(RuleBuilder, ReductionsKeepOrDropDims) {
  Shapes in{{4, 6, 8}}, dropped{{4, 8}}, kept{{4, 1, 8}}, all{{}};
  EXPECT_EQ(text(of(in, dropped).reduce({1}, Reduction::Max), in, dropped),
            "(a)(b)(c) -> (a)(c), a = 4, b = 6 max, c = 8");
  EXPECT_EQ(text(of(in, kept).reduce({-2}, Reduction::Sum), in, kept),
            "(a)(b)(c) -> (a)()(c), a = 4, b = 6 sum, c = 8");
  EXPECT_EQ(text(of(in, all).reduce({}, Reduction::Sum), in, all),
            "(a)(b)(c) -> scalar, a = 4 sum, b = 6 sum, c = 8 sum");
}

TEST(RuleBuilder, NormIsCooperative) {
  Shapes in{{4, 6, 8}, {8}, {8}}, out{{4, 6, 8}, {4, 6, 1}, {4, 6}};
  EXPECT_EQ(text(of(in, out).cooperative({-1}, 2), in, out),
            "(a)(b)(c), (c), (c) -> (a)(b)(c), (a)(b)(), (a)(b), a = 4, b = 6, c = 8 cooperative");
}

TEST(RuleBuilder, Movement) {
  Shapes in{{4, 6, 8}}, permuted{{8, 4, 6}};
  EXPECT_EQ(text(of(in, permuted).permute({2, 0, 1}), in, permuted),
            "(a)(b)(c) -> (c)(a)(b), a = 4, b = 6, c = 8");
  Shapes one{{4, 1, 8}}, wide{{3, 4, 5, 8}};
  EXPECT_EQ(text(of(one, wide).expand(), one, wide),
            "(a)()(b) -> (c)(a)(d)(b), a = 4, b = 8, c = 3, d = 5");
  EXPECT_TRUE(of(one, wide).expand().build().movesDataOnly);
}

TEST(RuleBuilder, SplitAndConcatShardInsideBlocks) {
  Shapes whole{{4, 12}}, parts{{4, 4}, {4, 4}, {4, 4}};
  EXPECT_EQ(text(of(whole, parts).split(1), whole, parts),
            "(a)(b c) -> (a)(c), (a)(c), (a)(c), a = 4, b = 3 replicated, c = 4");
  EXPECT_EQ(text(of(parts, whole).concat(1), parts, whole),
            "(a)(b), (a)(b), (a)(b) -> (a)(c b), a = 4, b = 4, c = 3 replicated");
  Shapes uneven{{4, 8}, {4, 4}};
  EXPECT_EQ(
      text(of(whole, uneven).split(1), whole, uneven),
      "(a)(b) -> (a)(c), (a)(d), a = 4, b = 12 replicated, c = 8 replicated, d = 4 replicated");
  EXPECT_EQ(
      text(of(uneven, whole).concat(-1), uneven, whole),
      "(a)(b), (a)(c) -> (a)(d), a = 4, b = 8 replicated, c = 4 replicated, d = 12 replicated");
  Shapes piece{{4, 4}}, odd{{4, 5}};
  EXPECT_EQ(text(of(whole, piece).slice(1, 8), whole, piece),
            "(a)(b c) -> (a)(c), a = 4, b = 3 replicated, c = 4");
  EXPECT_EQ(text(of(whole, piece).slice(1, 2), whole, piece),
            "(a)(b) -> (a)(c), a = 4, b = 12 replicated, c = 4 replicated");
  EXPECT_EQ(text(of(whole, odd).slice(1, 0), whole, odd),
            "(a)(b) -> (a)(c), a = 4, b = 12 replicated, c = 5 replicated");
  EXPECT_EQ(text(of(whole, whole).slice(1, 0), whole, whole), "(a)(b) -> (a)(b), a = 4, b = 12");
}

TEST(RuleBuilder, UndescribedDimsNeedReplication) {
  Shapes in{{4, 1}}, out{{2}};
  EXPECT_EQ(text(of(in, out).replicateAll(), in, out),
            "(a)() -> (b), a = 4 replicated, b = 2 replicated");
  EXPECT_EQ(text(of({}, out).create(), {}, out), " -> (a), a = 2");
}

TEST(RuleBuilder, MisuseIsReported) {
  using Errors = std::vector<std::string>;
  RuleBuilder reduce = of({{4}}, {{}}).reduce({3}, Reduction::Sum);
  EXPECT_EQ(reduce.errors(), Errors{"dim 3 is out of range for a tensor of rank 1"});
  RuleBuilder einsum = of({{4}}, {{}}).einsum({"ab"}, {""});
  EXPECT_EQ(einsum.errors(), Errors{"'ab' does not describe a tensor of rank 1"});
  EXPECT_EQ(of({}, {}).view().errors(),
            Errors{"expected at least 1 operands and 1 results, got 0 and 0"});
  EXPECT_EQ(of({{2}}, {{2}}).operandDim(3, 0, {}).errors(), Errors{"operand 3 does not exist"});
}

TEST(ShardingRule, ValidateReportsEverything) {
  ShardingRule rule;
  rule.factors = {Factor{4}, Factor{3, FactorKind::Reducing}, Factor{2}};
  rule.operands = {{{0}, {0}}, {{7}}};
  rule.results = {{{1}}};
  rule.linearIn = {{5}};
  EXPECT_EQ(rule.validate(Shapes{{4, 4}, {2}}, Shapes{{3}}),
            (std::vector<std::string>{
                "operand 0 dim 1: factor 0 occurs twice in one tensor",
                "operand 1 dim 0: factor 7 does not exist",
                "factor 2 occurs in no operand or result",
                "factor 1 is reducing, but every result has it",
                "linearIn names operand 5, but the rule describes 2",
            }));
  EXPECT_EQ(rule.validate(Shapes{{4}}, Shapes{{3}})[0],
            "the op has 1 operands, but the sharding rule describes 2");
}
