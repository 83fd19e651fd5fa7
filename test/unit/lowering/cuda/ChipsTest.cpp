// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/cuda/core/Chips.h"

#include <gtest/gtest.h>

using namespace shardc::cuda;

namespace {

TEST(ChipsTest, WithoutANameAllChipsAreMeant) {
  ChipChoice choice = chooseChips("");
  EXPECT_EQ(choice.problem, "");
  EXPECT_EQ(choice.text(), "sm_80,sm_90,sm_100");
  EXPECT_FALSE(choice.emulated);
}

TEST(ChipsTest, AListIsSortedByNumber) {
  ChipChoice choice = chooseChips("sm_100,sm_90");
  EXPECT_EQ(choice.problem, "");
  EXPECT_EQ(choice.text(), "sm_90,sm_100");
}

TEST(ChipsTest, TheEmulatedDeviceIsAlone) {
  ChipChoice choice = chooseChips("emulated");
  EXPECT_EQ(choice.problem, "");
  EXPECT_TRUE(choice.emulated);
  EXPECT_TRUE(choice.chips.empty());
  EXPECT_EQ(choice.text(), "emulated");
  EXPECT_NE(chooseChips("emulated,sm_80").problem.find("no part of a list"), std::string::npos);
}

TEST(ChipsTest, AllProblemsAreNamedAtOnce) {
  std::string problem = chooseChips("sm_91,,sm_80,sm_80,gfx942").problem;
  EXPECT_NE(problem.find("'sm_91' is no chip that kernels are compiled for; did you mean sm_90?"),
            std::string::npos)
      << problem;
  EXPECT_NE(problem.find("a name is missing between commas"), std::string::npos);
  EXPECT_NE(problem.find("'sm_80' is named twice"), std::string::npos);
  EXPECT_NE(problem.find("'gfx942' is no chip"), std::string::npos);
  EXPECT_NE(problem.find("use sm_80, sm_90, sm_100 or emulated"), std::string::npos);
}

TEST(ChipsTest, AnEmptyPartOfAListIsAProblem) {
  EXPECT_NE(chooseChips("sm_80,").problem, "");
  EXPECT_NE(chooseChips(",").problem, "");
}

} // namespace
