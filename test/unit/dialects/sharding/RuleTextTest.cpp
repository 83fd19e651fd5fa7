// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/sharding/RuleText.h"

#include <gtest/gtest.h>

using namespace shardc;

namespace {

RuleText read(std::string_view text, const RuleText::NumberOf &numberOf = {}) {
  std::string error;
  std::optional<RuleText> rule = RuleText::parse(text, error, numberOf);
  EXPECT_TRUE(rule) << error;
  return rule.value_or(RuleText());
}

std::string mistake(std::string_view text) {
  std::string error;
  EXPECT_FALSE(RuleText::parse(text, error)) << text;
  return error;
}

std::string ruleOf(std::string_view text, const RuleText::Shapes &operands,
                   const RuleText::Shapes &results) {
  RuleText rule = read(text);
  EXPECT_EQ(rule.check(operands, results), std::vector<std::string>());
  ShardingRule built = rule.build(operands, results);
  EXPECT_EQ(built.validate(operands, results), std::vector<std::string>());
  return built.str();
}

} // namespace

TEST(RuleText, printsWhatItReads) {
  for (const char *text :
       {"n d, m d -> n k, n k; whole d", "(), b (h e) -> b; sum h; sum e", "a -> ()",
        "c y[kernel=3, stride=2, dilation=4, padding=1, mode=circular] x -> c y x",
        "n k, _, m -> n m; max k; whole n m"})
    EXPECT_EQ(read(text).str(), text);
}

TEST(RuleText, numbersMayBeArguments) {
  auto numberOf = [](std::string_view name) -> std::optional<int64_t> {
    return name == "reach" ? std::optional<int64_t>(2) : std::nullopt;
  };
  EXPECT_EQ(read("y[kernel=2*reach+1, padding=reach*3-2] -> y", numberOf).str(),
            "y[kernel=5, padding=4] -> y");
  std::string error;
  EXPECT_FALSE(RuleText::parse("y[kernel=size] -> y", error, numberOf));
  EXPECT_NE(error.find("or an integer argument of the op, not 'size'"), std::string::npos) << error;
}

TEST(RuleText, saysWhatIsWrong) {
  EXPECT_NE(mistake("a, b").find("expected '->'"), std::string::npos);
  EXPECT_NE(mistake("a -> ").find("expected the dims of a tensor"), std::string::npos);
  EXPECT_NE(mistake("a a -> a").find("'a' is two dims of one tensor"), std::string::npos);
  EXPECT_NE(mistake("a -> b; sum a c").find("'c' is reduced, but no operand has it"),
            std::string::npos);
  EXPECT_NE(mistake("a -> a; sum a").find("but a result has it"), std::string::npos);
  EXPECT_NE(mistake("a -> a; whole b").find("'b' is whole, but no tensor has it"),
            std::string::npos);
  EXPECT_NE(mistake("a -> a; mean a").find("not 'mean'"), std::string::npos);
  EXPECT_NE(mistake("a[kernel=0] -> a").find("at least 1, not 0"), std::string::npos);
  EXPECT_NE(mistake("a[size=3] -> a").find("a window has no 'size'"), std::string::npos);
  EXPECT_NE(mistake("a[kernel=3] -> b").find("nothing counts the positions"), std::string::npos);
  EXPECT_NE(mistake("a -> a[kernel=3]").find("windows slide over operands"), std::string::npos);
  EXPECT_NE(mistake("a[kernel=3], (a b) -> a").find("no dim of its own elsewhere"),
            std::string::npos);
  EXPECT_NE(mistake("a[kernel=9*9999999999999999999] -> a").find("is a number"), std::string::npos);
  EXPECT_NE(mistake("a[kernel=4294967296*4294967296] -> a").find("too large"), std::string::npos);
}

TEST(RuleText, sizesMustAgree) {
  RuleText rule = read("n d, m d -> n k");
  EXPECT_EQ(rule.check({{5, 2}, {7, 2}}, {{5, 3}}), std::vector<std::string>());
  EXPECT_EQ(rule.check({{kDynamic, 2}, {7, 2}}, {{kDynamic, 3}}), std::vector<std::string>());
  EXPECT_EQ(rule.check({{5, 1}, {7, 2}}, {{5, 3}}), std::vector<std::string>()); // repeated
  EXPECT_EQ(rule.check({{5, 2}, {7, 3}}, {{5, 3}}).size(), 1u);
  EXPECT_EQ(rule.check({{5, 2}, {7, 2}}, {{1, 3}}).size(), 1u); // a result repeats nothing
  EXPECT_EQ(rule.check({{5, 2}}, {{5, 3}}).size(), 1u);
  EXPECT_EQ(rule.check({{5, 2, 1}, {7, 2}}, {{5, 3}}).size(), 1u);
  RuleText window = read("y[kernel=3, stride=2] -> y");
  EXPECT_EQ(window.check({{9}}, {{4}}), std::vector<std::string>());
  EXPECT_EQ(window.check({{9}}, {{5}}).size(), 1u);
  RuleText product = read("(h e), e -> h");
  EXPECT_EQ(product.check({{12}, {3}}, {{4}}), std::vector<std::string>());
  EXPECT_EQ(product.check({{12}, {3}}, {{5}}).size(), 1u);
}

TEST(RuleText, becomesAShardingRule) {
  auto kindOf = [](std::string_view text, const RuleText::Shapes &operands,
                   const RuleText::Shapes &results, bool isResult, unsigned dim) {
    ShardingRule rule = read(text).build(operands, results);
    const TensorFactors &tensor = (isResult ? rule.results : rule.operands)[0];
    return rule.factors[tensor[dim].back()].kind;
  };
  RuleText::Shapes cloud{{5, 2}, {7, 2}}, near{{5, 3}};
  EXPECT_EQ(kindOf("n d, m d -> n k", cloud, near, false, 0), FactorKind::Parallel);
  EXPECT_EQ(kindOf("n d, m d -> n k", cloud, near, false, 1), FactorKind::NeedReplication);
  EXPECT_EQ(kindOf("n d, m d -> n k", cloud, near, true, 1), FactorKind::NeedReplication);
  EXPECT_EQ(kindOf("n d, m d -> n k; whole n", cloud, near, false, 0), FactorKind::NeedReplication);
  EXPECT_EQ(kindOf("n d, m d -> n k; sum d", cloud, near, false, 1), FactorKind::Reducing);
  // Of the second result each rank would have a part.
  EXPECT_EQ(kindOf("n d -> n, d", {{5, 2}}, {{5}, {2}}, false, 0), FactorKind::NeedReplication);
  ShardingRule window = read("y[kernel=3] -> y").build({{12}}, {{10}});
  EXPECT_EQ(window.factors[0].kind, FactorKind::Neighbouring);
  EXPECT_GT(window.factors[0].haloAfter, 0);
  EXPECT_EQ(ruleOf("b (h e), (h e) o -> b o; sum h e", {{4, 6}, {6, 5}}, {{4, 5}}),
            ruleOf("b (h e), (h e) o -> b o; sum h; sum e", {{4, 6}, {6, 5}}, {{4, 5}}));
  ruleOf("b (h e), e o -> b h o; sum e", {{4, 6}, {3, 5}}, {{4, 2, 5}});
  ruleOf("a, b -> a b", {{0}, {1}}, {{0, 1}});
}
