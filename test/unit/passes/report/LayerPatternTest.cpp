// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/report/LayerPattern.h"

#include <gtest/gtest.h>

using namespace shardc;

namespace {

std::string keyOf(std::string_view text) { return LayerPattern(text).key(); }

TEST(LayerPattern, TakesNumbersOutOfPaths) {
  EXPECT_EQ(keyOf("model.layers.12.mlp.down_proj"), "model.layers.*.mlp.down_proj");
  EXPECT_EQ(keyOf("'h.3.experts.1.w' over tp"), "'h.*.experts.*.w' over tp");
  EXPECT_EQ(keyOf("blocks.0.1.weight"), "blocks.*.*.weight");
  EXPECT_EQ(keyOf("conv1.0.weight"), "conv1.*.weight");
  EXPECT_EQ(keyOf("layers.7"), "layers.*");
  EXPECT_EQ(LayerPattern("blocks.10.1.weight").numbers, (std::vector<uint64_t>{10, 1}));
}

TEST(LayerPattern, LeavesOtherNumbersAlone) {
  for (const char *text :
       {"", "0.5", "between 0.5 and 3.25", "(modeling.py:224)", "7.weight", "a.b12.c",
        "conv1.weight", "sizes = [32, 32, 0, 0]", "see x. 3 times", "v1.2b"})
    EXPECT_EQ(keyOf(text), text);
  // More digits than a number has.
  EXPECT_EQ(keyOf("h.99999999999999999999.x"), "h.99999999999999999999.x");
}

TEST(LayerGroup, SaysWhichLayers) {
  auto group = [](std::vector<std::string> texts) {
    LayerGroup group{LayerPattern(texts.front())};
    for (const std::string &text : texts)
      group.add(LayerPattern(text));
    return group.str();
  };
  EXPECT_EQ(group({"h.0.mlp", "h.1.mlp", "h.2.mlp"}), "h.{0-2}.mlp");
  EXPECT_EQ(group({"h.5.mlp"}), "h.5.mlp");
  EXPECT_EQ(group({"h.0.mlp", "h.2.mlp"}), "h.*.mlp");
  EXPECT_EQ(group({"h.0.w.1", "h.1.w.1"}), "h.{0-1}.w.1");
}

} // namespace
