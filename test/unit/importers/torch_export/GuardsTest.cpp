// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "importers/torch_export/program/Guards.h"

#include <gtest/gtest.h>

using namespace shardc::torch_export;

namespace {

using Kind = SymExpr::Kind;

std::string str(const SymExpr &expr) {
  if (expr.kind == Kind::Integer)
    return std::to_string(expr.value);
  if (expr.kind == Kind::Symbol)
    return std::string(expr.symbol);
  const char *name = expr.kind == Kind::Add        ? "+"
                     : expr.kind == Kind::Mul      ? "*"
                     : expr.kind == Kind::FloorDiv ? "//"
                                                   : "%";
  return "(" + str(expr.operands[0]) + name + str(expr.operands[1]) + ")";
}

/// x is s0 by 3, pair_1 is s1.
std::optional<SymExpr> sizeOf(std::string_view input, int64_t dim) {
  SymExpr size;
  if (input == "x" && dim == 1) {
    size.value = 3;
    return size;
  }
  size.kind = Kind::Symbol;
  size.symbol = input == "x" ? "s0" : "s1";
  return (input == "x" || input == "pair_1") && dim == 0 ? std::optional(size) : std::nullopt;
}

std::string parsed(std::string_view text) {
  std::string error;
  std::optional<Guard> guard = parseGuard(text, sizeOf, error);
  if (!guard)
    return "error: " + error;
  return str(guard->left) + " " + std::string(guard->relation) + " " + str(guard->right);
}

TEST(Guards, ReadsPythonExpressions) {
  EXPECT_EQ(parsed("(L['x'].size()[0] % 4) == 0"), "(s0%4) == 0");
  EXPECT_EQ(parsed("L['x'].size()[0] <= L['pair'][1].size()[0]"), "s0 <= s1");
  EXPECT_EQ(parsed("L[\"x\"].size()[0] != 12"), "s0 != 12");
  EXPECT_EQ(parsed("1 + 2*L['x'].size()[0] - 3 > -L['x'].size()[1]"),
            "((1+(2*s0))+(-1*3)) > (-1*3)");
  EXPECT_EQ(parsed("(2 + L['x'].size()[0]) // 2 >= 1"), "((2+s0)//2) >= 1");
  EXPECT_EQ(parsed("8 // 4 * 2 < 5"), "((8//4)*2) < 5");
}

TEST(Guards, SaysWhatItCannotRead) {
  EXPECT_EQ(parsed("L['z'].size()[0] == 1"), "error: there is no dim 0 of an input z at byte 16");
  EXPECT_EQ(parsed("L['x'].size()[7] == 1"), "error: there is no dim 7 of an input x at byte 16");
  EXPECT_EQ(parsed("L['x'].stride()[0] == 1"), "error: expected the size of an input at byte 6");
  EXPECT_EQ(parsed("L['x'].size()[0]"), "error: expected a comparison at byte 16");
  EXPECT_EQ(parsed("L['x'].size()[0] ** 2 == 4"), "error: expected a comparison at byte 17");
  EXPECT_EQ(parsed("1 == 1 and 2 == 2"), "error: unexpected text at byte 7");
  EXPECT_EQ(parsed(""), "error: expected an integer at byte 0");
  EXPECT_EQ(parsed("(1 == 1"), "error: expected ')' at byte 3");
  EXPECT_EQ(parsed("L['x"), "error: expected ']' at byte 2");
  EXPECT_EQ(parsed("99999999999999999999 == 1"), "error: expected an integer at byte 0");
  EXPECT_NE(parsed(std::string(100000, '(')).find("nests too deep"), std::string::npos);
  EXPECT_NE(parsed(std::string(100000, '-')).find("nests too deep"), std::string::npos);
  for (const char *term : {"+1", "-1", "*1", "%3"}) {
    std::string chain = "1";
    for (int i = 0; i < 100000; ++i)
      chain += term;
    EXPECT_NE(parsed(chain + " == 1").find("too many terms"), std::string::npos) << term;
  }
}

TEST(Guards, TellsWhatAlwaysHolds) {
  auto trivial = [](std::string_view text) {
    std::string error;
    return parseGuard(text, sizeOf, error)->isTrivial();
  };
  EXPECT_TRUE(trivial("L['x'].size()[0] == L['x'].size()[0]"));
  EXPECT_TRUE(trivial("L['x'].size()[1] != 4"));
  EXPECT_TRUE(trivial("L['x'].size()[1] < 4"));
  EXPECT_FALSE(trivial("L['x'].size()[1] > 4"));
  EXPECT_FALSE(trivial("L['x'].size()[0] == L['pair'][1].size()[0]"));
  EXPECT_FALSE(trivial("L['x'].size()[0] != L['x'].size()[0]"));
}

} // namespace
