// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/interfaces/RuleCheck.h"
#include "dialects/interfaces/RuleBuilder.h"

#include <gtest/gtest.h>

using namespace shardc;
using Shapes = std::vector<std::vector<int64_t>>;
using Texts = std::vector<const char *>;
using Errors = std::vector<std::string>;

static Errors check(const Mesh &mesh, RuleBuilder builder, const Shapes &in, const Texts &inLayouts,
                    const Shapes &out, const Texts &outLayouts) {
  auto placed = [&](const Shapes &shapes, const Texts &layouts) {
    std::vector<PlacedTensor> tensors;
    for (size_t i = 0; i < shapes.size(); ++i)
      tensors.push_back({shapes[i], *parseLayout(mesh, layouts[i]).value});
    return tensors;
  };
  return checkRule(builder.build(), placed(in, inLayouts), placed(out, outLayouts));
}

static const Mesh kTp({{"tp", 4}});

TEST(RuleCheck, Linear) {
  Shapes in{{3, 16}, {8, 16}, {8}}, out{{3, 8}};
  RuleBuilder rule = RuleBuilder::ofShapes(in, out)
                         .einsum({"mi", "oi", "o"}, {"mo"})
                         .linearJointly({0, 2})
                         .additive(2);
  auto linear = [&](Texts inLayouts, const char *result) {
    return check(kTp, rule, in, inLayouts, out, {result});
  };
  EXPECT_EQ(linear({"[R]", "[R]", "[R]"}, "[R]"), Errors{});
  EXPECT_EQ(linear({"[R]", "[S(0)]", "[S(0)]"}, "[S(1)]"), Errors{});
  EXPECT_EQ(linear({"[S(0)]", "[R]", "[R]"}, "[S(0)]"), Errors{});
  EXPECT_EQ(linear({"[S(1)]", "[S(1)]", "[P(sum)]"}, "[P(sum)]"), Errors{});
  EXPECT_EQ(linear({"[P(avg)]", "[R]", "[P(avg)]"}, "[P(avg)]"), Errors{});
  // The bias would count four times. (G1)
  EXPECT_EQ(linear({"[S(1)]", "[S(1)]", "[R]"}, "[P(sum)]"),
            Errors{"axis \"tp\": operand 2 is R, expected P(sum)"});
  EXPECT_EQ(linear({"[S(1)]", "[S(1)]", "[P(sum)]"}, "[R]"),
            Errors{"axis \"tp\": result 0 is R, expected P(sum)"});
  EXPECT_EQ(linear({"[S(1)]", "[R]", "[R]"}, "[R]"),
            Errors{"axis \"tp\": operand 0 and operand 1 hold different pieces of factor 1"});
  EXPECT_EQ(linear({"[R]", "[S(0)]", "[R]"}, "[S(1)]"),
            Errors{"axis \"tp\": operand 1 and operand 2 hold different pieces of factor 2"});
  EXPECT_EQ(linear({"[S(0)]", "[S(0)]", "[S(0)]"}, "[S(0)]").size(), 1u);
  EXPECT_EQ(linear({"[P(sum)]", "[R]", "[R]"}, "[P(sum)]"),
            Errors{"axis \"tp\": partial values do not pass through this op so"});
  EXPECT_EQ(linear({"[R]", "[R]", "[R]"}, "[P(sum)]"),
            Errors{"axis \"tp\": partial values do not pass through this op so"});
  EXPECT_EQ(linear({"[R]", "[S(0, sizes = [5, 1, 1, 1])]", "[S(0)]"}, "[S(1)]").size(), 1u);
}

TEST(RuleCheck, ViewOfWholeHeads) {
  Shapes in{{5, 384}}, out{{5, 6, 64}};
  RuleBuilder rule = RuleBuilder::ofShapes(in, out).view();
  auto view = [&](const char *from, const char *to) {
    return check(kTp, rule, in, {from}, out, {to});
  };
  EXPECT_EQ(view("[S(1, sizes = [128, 128, 128, 0])]", "[S(1)]"), Errors{});
  EXPECT_EQ(view("[S(1, blocks = 6)]", "[S(2)]"), Errors{});
  EXPECT_EQ(view("[S(1, blocks = 3, granule = 64)]", "[S(1, blocks = 3)]"), Errors{});
  EXPECT_EQ(view("[P(sum)]", "[P(sum)]"), Errors{});
  EXPECT_EQ(view("[S(1)]", "[S(1)]"),
            Errors{"axis \"tp\": operand 0 dim 1: S(1) cuts through factors of the op"});
  EXPECT_EQ(view("[S(1, sizes = [128, 64, 128, 64])]", "[S(1)]").size(), 1u);
}

TEST(RuleCheck, FusedWeightMustKeepItsBlocks) {
  Shapes in{{4, 12}}, out{{4, 4}, {4, 4}, {4, 4}};
  RuleBuilder rule = RuleBuilder::ofShapes(in, out).split(1);
  EXPECT_EQ(check(kTp, rule, in, {"[S(1, blocks = 3)]"}, out, {"[S(1)]", "[S(1)]", "[S(1)]"}),
            Errors{});
  EXPECT_EQ(check(kTp, rule, in, {"[S(1)]"}, out, {"[S(1)]", "[S(1)]", "[S(1)]"}),
            Errors{"axis \"tp\": operand 0 dim 1: S(1) cuts through factors of the op"});
  Shapes reduced{{}};
  RuleBuilder replicated =
      RuleBuilder::ofShapes({{4, 12}}, reduced).operandDimKind(0, 0, FactorKind::Parallel);
  EXPECT_EQ(check(kTp, replicated, in, {"[S(0)]"}, reduced, {"[R]"}),
            Errors{"axis \"tp\": shards factor 0, which the op needs replicated"});
}

TEST(RuleCheck, TwoAxesOnOneDim) {
  Mesh mesh({{"dp", 2}, {"tp", 4}});
  Shapes in{{2, 8, 3}}, out{{16, 3}};
  RuleBuilder rule = RuleBuilder::ofShapes(in, out).view();
  EXPECT_EQ(check(mesh, rule, in, {"[S(0), S(1)]"}, out, {"[S(0), S(0)]"}), Errors{});
  EXPECT_EQ(check(mesh, rule, in, {"[S(0), S(1)]"}, out, {"[S(0), S(0)], order = [1, 0]"}).size(),
            1u);
  EXPECT_EQ(check(mesh, rule, in, {"[R, S(1)]"}, out, {"[R, S(0, blocks = 2)]"}), Errors{});
  EXPECT_EQ(check(mesh, rule, in, {"[R, S(1)]"}, out, {"[R, S(0)]"}).size(), 1u);
}

TEST(RuleCheck, AllOnOneDevice) {
  Shapes in{{12, 2}, {1, 2}}, out{{12, 2}};
  RuleBuilder rule = RuleBuilder::ofShapes(in, out).pointwise();
  const char *all = "[S(0, sizes = [12, 0, 0, 0])]";
  EXPECT_EQ(check(kTp, rule, in, {all, "[R]"}, out, {all}), Errors{});
  EXPECT_EQ(check(kTp, rule, in, {all, "[R]"}, out, {"[R]"}),
            Errors{"axis \"tp\": result 0 is R, but factor 0 is sharded"});
  EXPECT_EQ(check(kTp, rule, in, {all, "[R]"}, out, {"[S(0)]"}).size(), 1u);
  // What broadcasts must be everywhere.
  EXPECT_EQ(check(kTp, rule, in, {"[R]", "[S(0)]"}, out, {"[R]"}),
            Errors{"axis \"tp\": operand 1 dim 0: S(0) cuts through factors of the op"});
}

TEST(RuleCheck, UnknownSizes) {
  Shapes in{{kDynamic, 16, 3}}, out{{kDynamic, 3}};
  RuleBuilder rule = RuleBuilder::ofShapes(in, out).view();
  EXPECT_EQ(check(kTp, rule, in, {"[S(0)]"}, out, {"[S(0, granule = 16)]"}), Errors{});
  EXPECT_EQ(check(kTp, rule, in, {"[S(0)]"}, out, {"[S(0)]"}).size(), 1u);
}

TEST(RuleCheck, FormErrors) {
  Shapes in{{4}}, out{{4}};
  RuleBuilder rule = RuleBuilder::ofShapes(in, out).pointwise();
  EXPECT_EQ(check(kTp, rule, in, {"[S(1)]"}, out, {"[R]"}),
            Errors{"operand 0: axis \"tp\": S(1): dim 1 is out of range for a tensor of rank 1"});
  EXPECT_EQ(check(kTp, rule, {{5}}, {"[R]"}, out, {"[R]"}),
            Errors{"operand 0 dim 0 has size 5, but the product of its factors is 4"});
}
