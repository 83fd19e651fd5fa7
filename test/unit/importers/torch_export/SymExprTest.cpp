// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "importers/torch_export/program/SymExpr.h"

#include <gtest/gtest.h>

using namespace shardc::torch_export;
using Kind = SymExpr::Kind;

namespace {

std::string errorOf(std::string_view text) {
  std::string error;
  EXPECT_FALSE(parseSymExpr(text, error)) << text;
  return error;
}

TEST(SymExpr, ParsesWhatSympyPrints) {
  std::string error, text = "Add(Mul(Integer(2), FloorDiv(Symbol('s77', positive=True, "
                            "integer=True), Integer(3))), Integer(-7))";
  auto expr = parseSymExpr(text, error);
  ASSERT_TRUE(expr) << error;
  EXPECT_EQ(expr->kind, Kind::Add);
  ASSERT_EQ(expr->operands.size(), 2u);
  EXPECT_EQ(expr->operands[1].value, -7);
  const SymExpr &quotient = expr->operands[0].operands[1];
  EXPECT_EQ(quotient.kind, Kind::FloorDiv);
  EXPECT_EQ(quotient.operands[0].symbol, "s77");
  EXPECT_EQ(quotient.operands[1].value, 3);
  auto qualified =
      parseSymExpr("torch.utils._sympy.functions.PythonMod(Symbol('u0'), Integer(4))", error);
  ASSERT_TRUE(qualified) << error;
  EXPECT_EQ(qualified->kind, Kind::Mod);
}

TEST(SymExpr, TruncatedProductsWithFractionsOfTwo) {
  std::string error;
  auto size = [](const char *factor) {
    return std::string("TruncToInt(Mul(Float('") + factor +
           "', precision=53), ToFloat(Symbol('s53', positive=True, integer=True))))";
  };
  auto half = parseSymExpr(size("1.5"), error);
  ASSERT_TRUE(half) << error;
  EXPECT_EQ(half->kind, Kind::FloorDiv);
  EXPECT_EQ(half->operands[0].kind, Kind::Mul);
  EXPECT_EQ(half->operands[0].operands[0].symbol, "s53");
  EXPECT_EQ(half->operands[0].operands[1].value, 3);
  EXPECT_EQ(half->operands[1].value, 2);
  auto twice = parseSymExpr(size("2.0"), error);
  ASSERT_TRUE(twice) << error;
  EXPECT_EQ(twice->kind, Kind::Mul);
  auto once = parseSymExpr("TruncToInt(ToFloat(Symbol('s53')))", error);
  ASSERT_TRUE(once) << error;
  EXPECT_EQ(once->symbol, "s53");
  // The product of 0.7 and 90 is less than 63, as floats are.
  for (const std::string &text :
       {size("0.69999999999999996"), size("-2.0"), size("0"), size("1e300"), size("nan"),
        size("inf"), size("x"), std::string("TruncToInt(Symbol('s0'))"),
        std::string("TruncToInt(Mul(Float('0.5', precision=53), Symbol('s0')))"),
        std::string("TruncToInt(Mul(Float('0.5', precision=53), ToFloat(Add(Symbol('s0'), "
                    "Integer(-3)))))")})
    EXPECT_NE(errorOf(text), "") << text;
}

TEST(SymExpr, RefusesTheRest) {
  EXPECT_NE(errorOf("FloatTrueDiv(Integer(1), Integer(2))").find("FloatTrueDiv is not known"),
            std::string::npos);
  for (const char *text :
       {"", "s0 + 1", "Integer(", "Integer(99999999999999999999)", "Symbol('')", "Symbol('s0'",
        "Symbol('s0', positive)", "Add(Integer(1))", "FloorDiv(Integer(1), Integer(2), Integer(3))",
        "Integer(1) x", "Pow(Integer(2), Symbol('s0'))", "Pow(Integer(2), Integer(64))",
        "Symbol('a b')", "Symbol('0s')", "FloorDiv(Integer(2), Integer(0))",
        "Mod(Integer(2), Integer(-1))"})
    EXPECT_NE(errorOf(text), "") << text;
  std::string deep;
  for (int i = 0; i < 100000; ++i)
    deep += "Add(";
  EXPECT_NE(errorOf(deep).find("too deep"), std::string::npos);
}

} // namespace
