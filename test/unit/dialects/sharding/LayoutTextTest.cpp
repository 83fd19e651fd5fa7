// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/sharding/Layout.h"

#include <gtest/gtest.h>

using namespace shardc;

static const Mesh kMesh({{"dp", 2}, {"tp", 4}});

TEST(LayoutText, RoundTrip) {
  for (const char *text :
       {"[S(0), R]", "[P(sum), ?]", "[P(avg), P(min)]", "[R, S(1, blocks = 3)]",
        "[R, S(0, sizes = [5, 3, 0, 2])]", "[R, S(2, blocks = 2, sizes = [1, 1, 0, 0])]",
        "[S(0, granule = 64), R]", "[S(0), S(0)], order = [1, 0]", "[P(max), P(prod)]",
        "[S(0, blocks = [64, 32, 32]), R]", "[R, S(1, blocks = [64, 32, 32], granule = 16)]",
        "[R, S(1, blocks = [64, 32, 32], granule = [32, 16, 8])]"}) {
    Parsed<Layout> layout = parseLayout(kMesh, text);
    ASSERT_TRUE(layout) << layout.error;
    EXPECT_EQ(layout.value->str(), text);
  }
  EXPECT_EQ(parseLayout(Mesh(), "[]").value->str(), "[]");
  EXPECT_EQ(parseLayout(kMesh, " [ S( 0 ,blocks=2) ,P ] ").value->str(),
            "[S(0, blocks = 2), P(sum)]");
}

TEST(LayoutText, ErrorsSayWhere) {
  auto error = [](const char *text) { return parseLayout(kMesh, text).error; };
  EXPECT_EQ(error("[S(0)]"),
            "the mesh has 2 axes, but 1 placements are given at character 7 of '[S(0)]'");
  EXPECT_EQ(error("[S(x), R]"), "expected an integer at character 4 of '[S(x), R]'");
  EXPECT_EQ(error("[Q, R]"),
            "expected a placement: R, S(dim), P(reduction) or ? at character 3 of '[Q, R]'");
  EXPECT_EQ(error("[P(mean), R]"),
            "expected sum, avg, min, max or prod, got 'mean' at character 8 of '[P(mean), R]'");
  EXPECT_EQ(error("[S(0, step = 2), R]"), "expected blocks, granule or sizes, got 'step' at "
                                          "character 13 of '[S(0, step = 2), R]'");
  EXPECT_EQ(error("[R, R] x"), "unexpected text at character 8 of '[R, R] x'");
  EXPECT_EQ(error("[R, R], order = [0, 7]"),
            "axis 7 is not in the mesh at character 23 of '[R, R], order = [0, 7]'");
  EXPECT_EQ(error("[S(0, blocks = []), R]"), "expected the sizes of one block or more at character "
                                             "18 of '[S(0, blocks = []), R]'");
  EXPECT_EQ(error("[S(0, blocks = [4, 2], granule = [1]), R]"),
            "expected a granule for each of 2 blocks, got 1 at character 37 of '[S(0, blocks = [4, "
            "2], granule = [1]), R]'");
  EXPECT_EQ(error("[S(0, granule = [1, 2]), R]"),
            "several granules are for several blocks, whose sizes are given: blocks = [64, 32] at "
            "character 23 of '[S(0, granule = [1, 2]), R]'");
  EXPECT_EQ(error("[S(0, blocks = [4, 2], sizes = [4, 2]), R]"),
            "blocks whose sizes are given and the sizes of shards exclude each other at character "
            "38 of '[S(0, blocks = [4, 2], sizes = [4, 2]), R]'");
  EXPECT_EQ(parsePlacement("S(99999999999999999999)").error,
            "expected an integer at character 3 of 'S(99999999999999999999)'");
  EXPECT_FALSE(parsePlacement(""));
}

static std::vector<std::string> validate(const char *text, std::vector<int64_t> shape,
                                         bool allowOpen = false) {
  return parseLayout(kMesh, text).value->validate(shape, allowOpen);
}

TEST(LayoutValidate, Messages) {
  using Errors = std::vector<std::string>;
  EXPECT_EQ(validate("[S(0), S(1)]", {8, 8}), Errors{});
  EXPECT_EQ(validate("[?, R]", {8}),
            Errors{"axis \"dp\": the placement is open, expected R, S or P"});
  EXPECT_EQ(validate("[?, R]", {8}, true), Errors{});
  EXPECT_EQ(validate("[S(2), S(-1)]", {8, 8}),
            (Errors{"axis \"dp\": S(2): dim 2 is out of range for a tensor of rank 2",
                    "axis \"tp\": S(-1): dim -1 is out of range for a tensor of rank 2"}));
  EXPECT_EQ(validate("[R, S(0, blocks = 3)]", {8}),
            Errors{"axis \"tp\": S(0, blocks = 3): 3 blocks do not divide dim 0 of 8"});
  EXPECT_EQ(validate("[S(0), S(0, blocks = 3)]", {6}), Errors{});
  EXPECT_EQ(validate("[S(0), S(0, blocks = 3)]", {9}),
            Errors{"axis \"tp\": S(0, blocks = 3): 3 blocks do not divide a shard of 4 of dim 0"});
  EXPECT_EQ(validate("[R, S(0, sizes = [5, 3, 0, 2])]", {10}), Errors{});
  EXPECT_EQ(
      validate("[R, S(0, sizes = [5, 3, 0, 2])]", {11}),
      Errors{"axis \"tp\": S(0, sizes = [5, 3, 0, 2]): sizes sum to 10, but dim 0 of 11 needs "
             "11"});
  EXPECT_EQ(validate("[S(0, sizes = [5]), R]", {10}),
            Errors{"axis \"dp\": S(0, sizes = [5]): expected 2 sizes, one per coordinate, got 1"});
  EXPECT_EQ(
      validate("[S(0, sizes = [5, 5]), R]", {kDynamic}),
      Errors{"axis \"dp\": S(0, sizes = [5, 5]): dim 0 has no fixed size, so its shards cannot "
             "have explicit sizes"});
  EXPECT_EQ(validate("[S(0, blocks = 0), S(0, granule = 0)]", {8}).size(), 2u);
  EXPECT_EQ(validate("[R, S(0, granule = 3)]", {8}),
            Errors{"axis \"tp\": S(0, granule = 3): granule 3 does not divide dim 0 of 8"});
  EXPECT_EQ(
      validate("[R, S(0, granule = 2, sizes = [8, 0, 0, 0])]", {8}),
      Errors{"axis \"tp\": S(0, granule = 2, sizes = [8, 0, 0, 0]): granule and sizes exclude "
             "each other"});
  EXPECT_EQ(validate("[S(0), S(0)], order = [1, 1]", {8}),
            Errors{"the order must name every mesh axis once"});
  EXPECT_EQ(validate("[R, S(0, blocks = 2, sizes = [4, 0, 0, 1])]", {8}),
            Errors{"axis \"tp\": S(0, blocks = 2, sizes = [4, 0, 0, 1]): sizes sum to 5, but dim "
                   "0 of 8 has blocks of 4"});
  EXPECT_EQ(validate("[R, S(0, blocks = [4, 2])]", {6}), Errors{});
  EXPECT_EQ(
      validate("[R, S(0, blocks = [4, 2])]", {8}),
      Errors{"axis \"tp\": S(0, blocks = [4, 2]): the blocks add up to 6, but dim 0 of 8 needs "
             "8"});
  EXPECT_EQ(validate("[S(0), S(0, blocks = [4, 2])]", {12}), Errors{});
  EXPECT_EQ(
      validate("[S(0), S(0, blocks = [4, 2])]", {11}),
      Errors{"axis \"tp\": S(0, blocks = [4, 2]): the blocks add up to 6, but a shard of 5 of "
             "dim 0 needs 5"});
  EXPECT_EQ(
      validate("[R, S(0, blocks = [4, 2], granule = [3, 0])]", {6}),
      (Errors{"axis \"tp\": S(0, blocks = [4, 2], granule = [3, 0]): granule 3 does not divide "
              "the block of 4",
              "axis \"tp\": S(0, blocks = [4, 2], granule = [3, 0]): granule must be at least "
              "1"}));
  EXPECT_EQ(
      validate("[R, S(0, blocks = [8, -2])]", {6}),
      Errors{"axis \"tp\": S(0, blocks = [8, -2]): the size of a block must not be negative"});
  EXPECT_EQ(validate("[R, S(0, blocks = [4, 2])]", {kDynamic}),
            Errors{"axis \"tp\": S(0, blocks = [4, 2]): dim 0 has no fixed size, so its blocks "
                   "cannot have explicit sizes"});
  Layout layout(kMesh, {Placement::replicate()});
  EXPECT_EQ(layout.validate(std::vector<int64_t>{8}),
            Errors{"the mesh has 2 axes, but the layout has 1 placements"});
}
