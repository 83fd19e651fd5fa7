// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/sharding/Mesh.h"

#include <gtest/gtest.h>

using namespace shardc;
using Groups = std::vector<std::vector<int64_t>>;

TEST(Mesh, CoordinatesAreRowMajor) {
  Mesh mesh({{"dp", 2}, {"tp", 3}});
  EXPECT_EQ(mesh.numDevices(), 6);
  EXPECT_EQ(mesh.coordinateOf(4), (Coordinate{1, 1}));
  EXPECT_EQ(mesh.rankOf(Coordinate{1, 2}), 5);
  EXPECT_EQ(mesh.coordinateOf(6), std::nullopt);
  EXPECT_EQ(mesh.coordinateOf(-1), std::nullopt);
  EXPECT_EQ(mesh.axisIndex("tp"), 1u);
  EXPECT_EQ(mesh.axisIndex("pp"), std::nullopt);
}

TEST(Mesh, GroupsOfOneAxisAndOfSeveral) {
  Mesh mesh({{"dp", 2}, {"tp", 3}});
  EXPECT_EQ(mesh.groups(std::vector<unsigned>{1}), (Groups{{0, 1, 2}, {3, 4, 5}}));
  EXPECT_EQ(mesh.groups(std::vector<unsigned>{0}), (Groups{{0, 3}, {1, 4}, {2, 5}}));
  EXPECT_EQ(mesh.groups(std::vector<unsigned>{0, 1}), (Groups{{0, 1, 2, 3, 4, 5}}));
  // The first axis given is the slowest.
  EXPECT_EQ(mesh.groups(std::vector<unsigned>{1, 0}), (Groups{{0, 3, 1, 4, 2, 5}}));
  EXPECT_EQ(mesh.groupOf(Coordinate{1, 2}, std::vector<unsigned>{0}), (std::vector<int64_t>{2, 5}));
}

TEST(Mesh, DeviceIdsMakeIrregularGroups) {
  Mesh mesh({{"x", 2}, {"y", 2}}, {7, 2, 0, 5});
  EXPECT_TRUE(mesh.validate().empty());
  EXPECT_EQ(mesh.groups(std::vector<unsigned>{1}), (Groups{{7, 2}, {0, 5}}));
  EXPECT_EQ(mesh.coordinateOf(0), (Coordinate{1, 0}));
  EXPECT_EQ(mesh.coordinateOf(3), std::nullopt);
  EXPECT_EQ(mesh.ranksOutside(8), (std::vector<int64_t>{1, 3, 4, 6}));
}

TEST(Mesh, AMeshWithoutAxesHasOneDevice) {
  Mesh mesh;
  EXPECT_TRUE(mesh.validate().empty());
  EXPECT_EQ(mesh.numDevices(), 1);
  EXPECT_EQ(mesh.coordinateOf(0), Coordinate{});
  EXPECT_EQ(mesh.groups(std::vector<unsigned>{}), (Groups{{0}}));
}

TEST(Mesh, ValidateReportsEverything) {
  Mesh mesh({{"a", 2}, {"a", 0}, {"", 1}});
  EXPECT_EQ(mesh.validate(), (std::vector<std::string>{
                                 "mesh axis \"a\" is named twice",
                                 "mesh axis \"a\" has size 0, expected at least 1",
                                 "a mesh axis has no name",
                             }));
  Mesh ids({{"a", 2}}, {3, 3, -1});
  EXPECT_EQ(ids.validate(), (std::vector<std::string>{
                                "the mesh lists 3 device ids, but its axes need 2",
                                "device id 3 is listed twice",
                                "device id -1 is negative",
                            }));
  int64_t large = int64_t(1) << 40;
  EXPECT_EQ(Mesh({{"a", large}, {"b", large}}).validate(),
            std::vector<std::string>{"the mesh has more devices than fit in 63 bits"});
}
