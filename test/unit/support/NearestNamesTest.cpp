// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/NearestNames.h"

#include <gtest/gtest.h>

using namespace shardc;

TEST(NearestNames, EditDistance) {
  EXPECT_EQ(editDistance("", ""), 0u);
  EXPECT_EQ(editDistance("abc", ""), 3u);
  EXPECT_EQ(editDistance("", "abc"), 3u);
  EXPECT_EQ(editDistance("kitten", "sitting"), 3u); // the textbook's example
  EXPECT_EQ(editDistance("weight", "wieght"), 2u);
}

TEST(NearestNames, ByBeginningAndByEnd) {
  std::vector<std::string> names;
  for (int layer = 0; layer < 500; ++layer)
    for (const char *part : {"attn.q.weight", "attn.k.weight", "mlp.up.weight", "mlp.up.bias"})
      names.push_back("model.layers." + std::to_string(layer) + "." + part);
  NearestNames nearest(names);
  EXPECT_EQ(nearest.find("model.layers.137.mlp.up.wieght"), "model.layers.137.mlp.up.weight");
  EXPECT_EQ(nearest.find("layers.137.mlp.up.bias"), "model.layers.137.mlp.up.bias");
  EXPECT_EQ(nearest.find("model.layers.7.attn.q.weight"), "model.layers.7.attn.q.weight");
}

TEST(NearestNames, NothingAlike) {
  EXPECT_EQ(NearestNames({}).find("x"), "");
  EXPECT_EQ(NearestNames({"embedding.table"}).find("head"), "");
  EXPECT_EQ(NearestNames({"w"}).find(""), "");
}

TEST(NearestNames, RankedByDistanceThenName) {
  std::vector<NameCandidate> names = {
      {"skylake", "skylake"}, {"znver3", "znver3"}, {"znver2", "znver2"}, {"k8", "k8"}};
  using Names = std::vector<std::string_view>;
  EXPECT_EQ(nearestNames("znver", names, 2), (Names{"znver2", "znver3"}));
  EXPECT_EQ(nearestNames("znver33", names, 9, 2), (Names{"znver3", "znver2"}));
  EXPECT_EQ(nearestNames("broadwell", names, 9, 2), Names{});
  EXPECT_EQ(nearestNames("", names, 1), Names{"k8"});
  // Distance is measured on a part, the whole name is given.
  std::vector<NameCandidate> parts = {{"h.0.mlp", "mlp"}, {"h.0.attn", "attn"}};
  EXPECT_EQ(nearestNames("atn", parts, 1), Names{"h.0.attn"});
}

TEST(NearestNames, Lists) {
  using Names = std::vector<std::string_view>;
  EXPECT_EQ(listNames(Names{}), "");
  EXPECT_EQ(listNames(Names{"a"}), "a");
  EXPECT_EQ(listNames(Names{"a", "b"}), "a or b");
  EXPECT_EQ(listNames(Names{"a", "b", "c"}), "a, b or c");
}
