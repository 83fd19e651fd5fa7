// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "importers/torch_export/archive/NearestNames.h"

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
