// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/cost/core/SimV1.h"
#include "passes/cost/core/TargetDescription.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace shardc::cost;
using shardc::CollectiveKind;

namespace {

constexpr auto AG = CollectiveKind::AllGather;
constexpr auto AR = CollectiveKind::AllReduce;
constexpr auto A2A = CollectiveKind::AllToAll;

Group size(uint32_t n) { return {n, {}}; }

// Worked out from the definition: t = lat + S (n-1)/n / bw, doubled volume for an all-reduce.
TEST(SimV1, WithinANode) {
  SimV1 model;
  EXPECT_DOUBLE_EQ(model.collectiveUs(AG, size(8), 394000), 30 + 0.875);
  EXPECT_DOUBLE_EQ(model.collectiveUs(AG, size(4), 434000), 17 + 0.75);
  EXPECT_DOUBLE_EQ(model.collectiveUs(AG, size(2), 537000), 8 + 0.5);
  EXPECT_DOUBLE_EQ(model.collectiveUs(AR, size(2), 537000), 10 + 1);
  EXPECT_DOUBLE_EQ(model.latencyUs(AR, size(8)), 31);
  // Half way between 4 and 8: 414 GB/s, 23.5 us; between 2 and 4: 485.5 GB/s, 12.5 us.
  EXPECT_DOUBLE_EQ(model.collectiveUs(AG, size(6), 414000), 23.5 + 5.0 / 6);
  EXPECT_DOUBLE_EQ(model.collectiveUs(A2A, size(3), 485500), 12.5 + 2.0 / 3);
  EXPECT_DOUBLE_EQ(model.latencyUs(AG, size(1)), 8);
}

TEST(SimV1, BetweenNodes) {
  SimV1 model;
  EXPECT_DOUBLE_EQ(model.collectiveUs(AG, size(64), 390000), 297 + 63.0 / 64);
  EXPECT_DOUBLE_EQ(model.collectiveUs(AG, size(16), 410000), 70 + 15.0 / 16);
  EXPECT_DOUBLE_EQ(model.latencyUs(AG, size(1024)), 1204);
  // 40 ranks are 5 nodes, 37 as well: half way from 2 to 8.
  EXPECT_DOUBLE_EQ(model.collectiveUs(AR, size(40), 400000), 183.5 + 2 * 39.0 / 40);
  EXPECT_DOUBLE_EQ(model.latencyUs(AG, size(37)), 183.5);
  EXPECT_DOUBLE_EQ(model.memoryUs(3.35e6), 1);
  EXPECT_FALSE(model.supports(CollectiveKind::Broadcast));
  EXPECT_DOUBLE_EQ(model.kernelUs(1e30, 3.35e6, "bf16"), 1);
}

TEST(TargetModel, BuiltIns) {
  for (std::string_view name : builtinModelNames()) {
    std::unique_ptr<CostModel> model = makeBuiltinModel(name);
    ASSERT_TRUE(model) << name;
    EXPECT_EQ(model->name(), name);
    EXPECT_GT(model->collectiveUs(AR, size(4), 1 << 20), model->latencyUs(AR, size(4)));
  }
  std::unique_ptr<CostModel> h100 = makeBuiltinModel("h100-64");
  // Algorithmic bandwidths within a node.
  EXPECT_DOUBLE_EQ(h100->collectiveUs(AG, size(8), 394000), 31);
  EXPECT_DOUBLE_EQ(h100->collectiveUs(AR, size(8), 267000), 32);
  // Bus bandwidth between full nodes: 390 * 64 / 63.
  EXPECT_DOUBLE_EQ(h100->collectiveUs(AG, size(64), 390000), 297 + 63.0 / 64);
  EXPECT_DOUBLE_EQ(h100->collectiveUs(AR, size(64), 390000), 297 + 2 * 63.0 / 64);
  EXPECT_DOUBLE_EQ(h100->kernelUs(989.5e6, 0, "bf16"), 1);
  EXPECT_DOUBLE_EQ(makeBuiltinModel("h200-8")->memoryUs(4.8e6), 1);
  EXPECT_EQ(makeBuiltinModel("h100"), nullptr);
  EXPECT_FALSE(builtinDescription("h100-8").empty());
}

TEST(TargetModel, GroupsPayForTheLinksTheyShare) {
  std::unique_ptr<CostModel> model = makeBuiltinModel("h100-64");
  std::vector<int64_t> near = {0, 1, 2, 3, 4, 5, 6, 7}, across = {0, 8, 16, 24, 32, 40, 48, 56},
                       two = {0, 1, 2, 3, 8, 9, 10, 11};
  Group inNode{8, near}, strided{8, across}, halves{8, two};
  EXPECT_DOUBLE_EQ(model->collectiveUs(AG, inNode, 394000), 31);
  // One adapter of eight per node: 390 / 8 GB/s of bus bandwidth over 8 nodes.
  EXPECT_DOUBLE_EQ(model->collectiveUs(AG, strided, 390000), 297 + 8 * 7.0 / 8);
  // Four of eight, over two nodes.
  EXPECT_DOUBLE_EQ(model->collectiveUs(AG, halves, 410000), 70 + 2 * 7.0 / 8);
  // Every rank sends its own data through its own adapter.
  EXPECT_DOUBLE_EQ(model->collectiveUs(A2A, strided, 50000), 297 + 7.0 / 8);
  EXPECT_EQ(model->collectiveUs(AG, size(1), 1 << 20), 0);
}

std::optional<TargetDescription> parse(std::string text, std::string &errors) {
  return parseTargetDescription(text, "t", errors);
}

TEST(TargetDescription, MeasuredTablesOverrideTheFormula) {
  std::string errors;
  auto target = parse("name = t\nmemory_gb_per_s = 100  # of one socket\n"
                      "[all_gather intra algbw]\n2 10 1\n"
                      "[measured all_gather 4]\n1000 5\n2000 7\n4000 15\n"
                      "[measured AR 4]\n1000 8\n",
                      errors);
  ASSERT_TRUE(target) << errors;
  TargetModel model(*target);
  EXPECT_DOUBLE_EQ(model.collectiveUs(AG, size(2), 1000), 11);
  EXPECT_DOUBLE_EQ(model.collectiveUs(AG, size(4), 10), 5);
  EXPECT_DOUBLE_EQ(model.collectiveUs(AG, size(4), 1500), 6);
  EXPECT_DOUBLE_EQ(model.collectiveUs(AG, size(4), 6000), 23);
  EXPECT_DOUBLE_EQ(model.collectiveUs(AR, size(4), 3000), 24);
  EXPECT_DOUBLE_EQ(model.latencyUs(AG, size(4)), 5);
  // No table of its own: the gather's.
  EXPECT_DOUBLE_EQ(model.collectiveUs(A2A, size(2), 1000), 11);
}

// A machine of one device has no links to describe; a program with collectives is not for it.
TEST(TargetDescription, OneRank) {
  std::string errors;
  auto target = parseTargetDescription("name = one\nranks_per_node = 1\nmemory_gb_per_s = 4000\n",
                                       "t", errors);
  ASSERT_TRUE(target) << errors;
  TargetModel model(*target);
  EXPECT_FALSE(model.supports(AR));
  EXPECT_DOUBLE_EQ(model.memoryUs(4e6), 1);
  EXPECT_FALSE(parseTargetDescription("name = two\nranks_per_node = 2\nmemory_gb_per_s = 4000\n",
                                      "t", errors));
  EXPECT_TRUE(makeBuiltinModel("cpu-local")->supports(AR));
  // Rows of another kind, or measured times, say that there are links: all_gather has to be there.
  for (std::string rows : {"[all_reduce inter busbw]\n2 10 25\n8 10 25\n",
                           "[all_reduce intra busbw]\n2 10 25\n", "[measured AR 2]\n1000 8\n"}) {
    errors.clear();
    EXPECT_FALSE(parse("name = one\nranks_per_node = 1\nmemory_gb_per_s = 4000\n" + rows, errors));
    EXPECT_NE(errors.find("no rows for all_gather"), std::string::npos) << rows << errors;
  }
}

TEST(TargetDescription, AllMistakesAreReported) {
  std::string errors;
  EXPECT_FALSE(parse("name = t\nranks_per_node = x\nspeed = 3\n[gather intra algbw]\n"
                     "[all_gather near algbw]\n[all_gather intra fast]\n[measured AG none]\n"
                     "1 2 3\n[all_gather intra algbw]\n4 1 0\n2 1\n8 1 1\n4 1 1\n",
                     errors));
  EXPECT_EQ(errors, "t:2: 'x' is not a number of 0 or more\n"
                    "t:3: unknown setting or value out of range: 'speed'; settings are name, "
                    "ranks_per_node, memory_gb_per_s, launch_us, peak_tflops TYPE\n"
                    "t:4: unknown collective 'gather'\n"
                    "t:5: 'near' is neither 'intra' nor 'inter'\n"
                    "t:6: 'fast' is neither 'algbw' nor 'busbw'\n"
                    "t:7: 'none' is not a number of ranks\n"
                    "t:8: expected 'key = value' or a section\n"
                    "t:10: a bandwidth must be above 0\n"
                    "t:11: a row of this section has 3 numbers\n"
                    "t:13: the first column must ascend\n"
                    "t:13: no 'memory_gb_per_s'\n");
  errors.clear();
  EXPECT_FALSE(parse("", errors));
  EXPECT_NE(errors.find("no 'name'"), std::string::npos);
  EXPECT_NE(errors.find("no rows for all_gather"), std::string::npos);
  errors.clear();
  EXPECT_FALSE(parse("name = t\nmemory_gb_per_s = 1\nname = \n[all_gather intra algbw\n"
                     "[all_gather intra]\n[measured AG 4]\n",
                     errors));
  EXPECT_EQ(errors,
            "t:3: expected 'key = value'\n"
            "t:4: a section is '[KIND intra|inter algbw|busbw]' or '[measured KIND RANKS]'\n"
            "t:5: a section has three words: 'KIND intra|inter algbw|busbw' or "
            "'measured KIND RANKS'\n"
            "t:6: no rows for all_gather, intra or inter: every other kind falls back to "
            "it\n"
            "t:6: measured table of all_gather over 4 ranks has no rows\n");
  errors.clear();
  EXPECT_EQ(loadModel("h100-9", errors), nullptr);
  EXPECT_EQ(errors, "no target named 'h100-9' and no such file; built-in targets: sim-v1 h100-8 "
                    "h100-64 h200-8 cpu-local\n");
}

} // namespace
