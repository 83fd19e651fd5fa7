// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/sharding/RuleBuilder.h"

#include <gtest/gtest.h>

#include <numeric>
#include <set>

using namespace shardc;
using Shape = std::vector<int64_t>;

static ShardingRule view(const RuleBuilder::Shape &in, const RuleBuilder::Shape &out) {
  return RuleBuilder({in}, {out}).view().build();
}

static std::string viewText(const RuleBuilder::Shape &in, const RuleBuilder::Shape &out) {
  return view(in, out).str();
}

TEST(ViewRule, ByHand) {
  EXPECT_EQ(viewText({4, 768}, {4, 12, 64}), "(a)(b c) -> (a)(b)(c), a = 4, b = 12, c = 64");
  EXPECT_EQ(viewText({2, 5, 768}, {10, 768}), "(a)(b)(c) -> (a b)(c), a = 2, b = 5, c = 768");
  EXPECT_EQ(viewText({1, 8, 1}, {8}), "()(a)() -> (a), a = 8");
  EXPECT_EQ(viewText({6, 4}, {4, 6}), "(a b)(c) -> (a d)(e), a = 2, b = 3 replicated, "
                                      "c = 4 replicated, d = 2 replicated, e = 6 replicated");
  EXPECT_EQ(viewText({6, 4, 5}, {4, 6, 5}),
            "(a b)(c)(d) -> (a e)(f)(d), a = 2, b = 3 replicated, c = 4 replicated, d = 5, "
            "e = 2 replicated, f = 6 replicated");
  EXPECT_EQ(viewText({9, 7}, {7, 9}),
            "(a)(b) -> (a)(c), a = 9 halo 0:2 in one piece, b = 7 replicated, c = 9 replicated");
  EXPECT_EQ(viewText({1, 1}, {}), "()() -> scalar");
}

TEST(ViewRule, Symbols) {
  DimSize batch = DimSize::symbol(0), length = DimSize::symbol(1);
  EXPECT_EQ(viewText({batch, length, 768}, {DimSize(1, {0, 1}), 768}),
            "(a)(b)(c) -> (a b)(c), a = ?, b = ?, c = 768");
  EXPECT_EQ(viewText({batch, length, 768}, {batch, length, 12, 64}),
            "(a)(b)(c d) -> (a)(b)(c)(d), a = ?, b = ?, c = 12, d = 64");
  EXPECT_EQ(
      viewText({batch, length}, {length, batch}),
      "(a)(b) -> (c)(d), a = ? replicated, b = ? replicated, c = ? replicated, d = ? replicated");
  // What follows from the number of elements alone.
  EXPECT_EQ(viewText({kDynamic, 128, 768}, {kDynamic, 768}),
            "(a)(b)(c) -> (a b)(c), a = ?, b = 128, c = 768");
  EXPECT_EQ(viewText({kDynamic, 768}, {kDynamic, 128, 768}),
            "(a b)(c) -> (a)(b)(c), a = ?, b = 128, c = 768");
  EXPECT_EQ(viewText({kDynamic, kDynamic, 8}, {kDynamic, 8}),
            "(a)(b)(c) -> (a b)(c), a = ?, b = ?, c = 8");
  // Not enough to know which is which.
  EXPECT_EQ(
      viewText({kDynamic, kDynamic}, {kDynamic, kDynamic}),
      "(a)(b) -> (c)(d), a = ? replicated, b = ? replicated, c = ? replicated, d = ? replicated");
}

/// The digit of factor `f` of a rule at each element of a row-major tensor of `shape`.
static std::vector<int64_t> digits(const ShardingRule &rule, const TensorFactors &tensor,
                                   const Shape &shape, unsigned f) {
  int64_t count = std::accumulate(shape.begin(), shape.end(), int64_t(1), std::multiplies<>());
  std::vector<int64_t> result(count, -1);
  for (int64_t element = 0; element < count; ++element) {
    int64_t rest = element;
    for (size_t d = shape.size(); d-- > 0;) {
      int64_t index = rest % shape[d];
      rest /= shape[d];
      for (size_t k = tensor[d].size(); k-- > 0;) {
        int64_t size = rule.factors[tensor[d][k]].size;
        if (tensor[d][k] == f)
          result[element] = index % size;
        index /= size;
      }
    }
  }
  return result;
}

static void shapesOf(int64_t elements, size_t maxRank, Shape prefix, std::vector<Shape> &out) {
  if (elements == 1)
    out.push_back(prefix);
  if (prefix.size() == maxRank)
    return;
  for (int64_t size = 1; size <= elements; ++size)
    if (elements % size == 0) {
      Shape next = prefix;
      next.push_back(size);
      shapesOf(elements / size, maxRank, next, out);
    }
}

/// A view keeps the row-major number of every element, so a shardable factor must give each element
/// the same digit on both sides.
TEST(ViewRule, EveryPairOfShapesKeepsElementsInPlace) {
  int64_t shardable = 0;
  for (int64_t elements : {24, 30, 36, 0}) {
    std::vector<Shape> shapes;
    if (elements)
      shapesOf(elements, 3, {}, shapes);
    else
      shapes = {{0}, {2, 0}, {0, 2}, {2, 3, 0}, {2, 0, 3}};
    for (const Shape &in : shapes)
      for (const Shape &out : shapes) {
        ShardingRule rule = RuleBuilder::ofShapes({in}, {out}).view().build();
        std::vector<std::string> errors =
            rule.validate(std::vector<Shape>{in}, std::vector<Shape>{out});
        ASSERT_TRUE(errors.empty()) << errors[0] << " " << rule.str();
        for (unsigned f = 0; f < rule.factors.size(); ++f) {
          // What borders cut off is fetched.
          if (!rule.factors[f].canShard() || rule.factors[f].kind == FactorKind::Neighbouring)
            continue;
          ++shardable;
          EXPECT_EQ(digits(rule, rule.operands[0], in, f), digits(rule, rule.results[0], out, f))
              << rule.str();
        }
        // Equal shapes lose nothing.
        if (in == out)
          for (const Factor &f : rule.factors)
            EXPECT_TRUE(f.canShard()) << rule.str();
      }
  }
  EXPECT_GT(shardable, 1000);
}
