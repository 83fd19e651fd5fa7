// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/collectives/exported/SideFiles.h"
#include "test/unit/passes/collectives/ProgramBuilder.h"

#include <gtest/gtest.h>

using namespace shardc;
using namespace shardc::collectives;

namespace {

TEST(SideFiles, GroupsAreRanksListsOrSizes) {
  std::string error;
  auto groups = parseGroups(R"({"dp": [0, 2, 4], "tp": [[0, 1], [2, 3]], "ep": 8})", error);
  ASSERT_TRUE(groups) << error;
  EXPECT_EQ(groups->at("dp").ranks, (std::vector<int64_t>{0, 2, 4}));
  EXPECT_EQ(groups->at("dp").size, 3u);
  EXPECT_EQ(groups->at("tp").size, 2u);
  EXPECT_EQ(groups->at("tp").ranks, (std::vector<int64_t>{0, 1, 2, 3}));
  // The first of several is priced.
  EXPECT_EQ(groups->at("tp").shape().ranks.size(), 2u);
  EXPECT_EQ(groups->at("ep").size, 8u);
  EXPECT_TRUE(groups->at("ep").ranks.empty());
}

TEST(SideFiles, GroupsByModel) {
  std::string error;
  const char *text = R"({"small": {"dp": 2}, "large": {"dp": 64}})";
  auto groups = parseGroups(text, error, "large");
  ASSERT_TRUE(groups) << error;
  EXPECT_EQ(groups->at("dp").size, 64u);
  EXPECT_FALSE(parseGroups(text, error, "other"));
  EXPECT_EQ(error, "group 'small' is neither a size nor a list of ranks");
}

TEST(SideFiles, MistakesInGroups) {
  std::string error;
  for (const char *text :
       {"[]", R"({"a": 0})", R"({"a": []})", R"({"a": [1, 1]})", R"({"a": [-1]})", R"({"a": "8"})",
        "{", R"({"a": [[0, 1], [1, 2]]})", R"({"a": [[0, 1], 2]})", R"({"a": [[]]})",
        R"({"a": [0, [1]]})", R"({"a": 1e3})", R"({"a": 99999999999})"})
    EXPECT_FALSE(parseGroups(text, error)) << text;
  EXPECT_FALSE(parseGroups(R"({"a": [0, 0]})", error));
  EXPECT_EQ(error, "group 'a' is no list of distinct ranks");
  EXPECT_FALSE(parseGroups(R"({"a": [[0, 1], [2]]})", error));
  EXPECT_EQ(error, "group 'a' has groups of different sizes");
}

TEST(SideFiles, Durations) {
  std::string error;
  auto durations = parseDurations(R"({"mm": 12, "add": 0.5})", error);
  ASSERT_TRUE(durations) << error;
  EXPECT_EQ(durations->at("mm"), 12);
  EXPECT_FALSE(parseDurations(R"({"mm": -1})", error));
  EXPECT_EQ(error, "the duration of 'mm' is no number of 0 or more");
  EXPECT_FALSE(parseDurations(R"({"mm": "1"})", error));
  EXPECT_FALSE(parseDurations("3", error));
}

TEST(SideFiles, GroupsThatTheProgramSizes) {
  test::ProgramBuilder b;
  torch_export::TensorArg x = b.tensor("x", {4}), y = b.tensor("y", {32}), z = b.tensor("z", {4});
  b.input(x);
  b.node("gather", "torch.ops._c10d_functional.all_gather_into_tensor.default",
         {{"input", x}, {"group_size", int64_t(8)}, {"group_name", std::string_view("dp")}}, {y});
  b.node("reduce", "torch.ops._c10d_functional.all_reduce.default",
         {{"self", x}, {"group_name", std::string_view("tp")}}, {z});
  ProcessGroups groups = groupsInProgram(b.program);
  ASSERT_EQ(groups.size(), 1u); // an all-reduce does not say
  EXPECT_EQ(groups.at("dp").size, 8u);
}

} // namespace
