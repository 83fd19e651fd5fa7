// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/collectives/exported/Contradictions.h"
#include "test/unit/passes/collectives/Builder.h"
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
  EXPECT_EQ(error, "group 'small' is neither a size nor a list of ranks; group 'large' is neither "
                   "a size nor a list of ranks");
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
  EXPECT_FALSE(parseGroups(R"({"a": 0, "b": 4, "c": [0, 0], "b": 8})", error));
  EXPECT_EQ(error, "group 'a' has a size out of range; group 'c' is no list of distinct ranks; "
                   "group 'b' is there twice");
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
  EXPECT_FALSE(parseDurations(
      R"({"a": -1, "b": 2, "b": 2, "c": 1, "d": "x", "c": 3, "e": -2, "f": -2, "g": null, "h": []})",
      error));
  EXPECT_EQ(error, "the durations of 'a', 'd', 'e', 'f', 'g' and 1 more are no numbers of 0 or "
                   "more; 'c' has two different durations");
}

TEST(SideFiles, DurationsThatContradictTheGraph) {
  test::Builder b;
  GroupId group = b.group("dp", 4);
  ValueId x = b.view("view", b.input(8));
  b.output(b.kernel("mm", {b.run("gather", CollectiveKind::AllGather, group, x, 32)}, 1, 8));
  Graph graph = b.finish();
  EXPECT_TRUE(contradictions(graph, {}).empty());
  EXPECT_TRUE(contradictions(graph, {{"mm", 3}, {"elsewhere", 4}, {"view", 0}}).empty());
  std::vector<std::string> errors =
      contradictions(graph, {{"gather", 3}, {"gather.wait", 4}, {"view", 0}});
  ASSERT_EQ(errors.size(), 3u);
  EXPECT_TRUE(errors[0].starts_with("has durations of collectives, 'gather': ")) << errors[0];
  EXPECT_TRUE(errors[1].find("'gather.wait': these are free") != std::string::npos) << errors[1];
  EXPECT_EQ(errors[2], "names no kernel of the graph: is it of another graph?");
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
