// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/aten/NeighborhoodWindow.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <vector>

using namespace shardc;
using namespace shardc::aten;

namespace {

/// By definition: the positions of a query's line, those of its group of `stride`, the leader of
/// the group, and the `kernel` keys around it that exist, moved inwards.
std::vector<int64_t> byDefinition(const Neighborhood &of, int64_t query, int64_t size) {
  std::vector<int64_t> line;
  for (int64_t i = query % of.dilation; i < size; i += of.dilation)
    line.push_back(i);
  auto length = static_cast<int64_t>(line.size());
  int64_t at = query / of.dilation, group = at / of.stride * of.stride;
  std::vector<int64_t> keys;
  if (of.isCausal) {
    int64_t leader = std::min(group + of.stride - 1, length - 1);
    for (int64_t key = 0; key < length; ++key)
      if (key <= at && leader - key < of.kernel)
        keys.push_back(line[key]);
    return keys;
  }
  int64_t leader = std::min(group + of.stride / 2, length - 1);
  int64_t left = of.kernel / 2, right = of.kernel - 1 - left;
  int64_t centre = std::min(std::max(leader, left), length - 1 - right);
  for (int64_t key = centre - left; key <= centre + right; ++key)
    keys.push_back(line[key]);
  return keys;
}

TEST(NeighborhoodWindow, SeesTheKeysOfTheDefinition) {
  int64_t checked = 0;
  for (int64_t kernel = 1; kernel <= 6; ++kernel)
    for (int64_t stride = 1; stride <= kernel; ++stride)
      for (int64_t dilation = 1; dilation <= 3; ++dilation)
        for (bool isCausal : {false, true})
          for (int64_t size = kernel * dilation; size < kernel * dilation + 9; ++size) {
            Neighborhood of{kernel, stride, dilation, isCausal};
            shardc::Run all{size, 0};
            std::vector<int64_t> count(size, 0);
            for (int64_t query = 0; query < size; ++query, ++checked) {
              shardc::Run keys = of.keysOf(query, size);
              std::vector<int64_t> list;
              for (int64_t key = keys.begin; key < keys.end; key += dilation)
                list.push_back(key);
              for (int64_t key : list)
                ++count[key];
              ASSERT_EQ(list, byDefinition(of, query, size))
                  << kernel << " " << stride << " " << dilation << " " << isCausal << " " << size;
              all = {std::min(all.begin, keys.begin), std::max(all.end, keys.end)};
            }
            EXPECT_EQ(keysOfAll(of, {0, size}, size), all);
            int64_t most = *std::max_element(count.begin(), count.end());
            EXPECT_LE(most, of.mostQueries(size)) << kernel << " " << stride << " " << size;
            EXPECT_LE(most, of.mostQueries(kDynamic));
          }
  EXPECT_GT(checked, 10000);
}

TEST(NeighborhoodWindow, IsCutOffAtTheBorder) {
  for (int64_t kernel = 1; kernel <= 6; ++kernel)
    for (int64_t ahead = 0; ahead < kernel; ++ahead)
      for (int64_t dilation = 1; dilation <= 3; ++dilation)
        for (int64_t size = 1; size < 12; ++size) {
          Neighborhood of{kernel, 1, dilation, false, ahead};
          std::vector<int64_t> count(size, 0);
          for (int64_t query = 0; query < size; ++query) {
            std::vector<int64_t> expected, list;
            for (int64_t key = 0; key < size; ++key)
              if ((key - query) % dilation == 0 && key - query <= ahead * dilation &&
                  query - key <= (kernel - 1 - ahead) * dilation)
                expected.push_back(key);
            shardc::Run keys = of.keysOf(query, size);
            for (int64_t key = keys.begin; key < keys.end; key += dilation)
              list.push_back(key), ++count[key];
            ASSERT_EQ(list, expected) << kernel << " " << ahead << " " << dilation << " " << size;
            EXPECT_EQ(of.countOf(query, size), static_cast<int64_t>(list.size()));
          }
          EXPECT_LE(*std::max_element(count.begin(), count.end()), of.mostQueries(size));
          EXPECT_LE(*std::max_element(count.begin(), count.end()), of.mostQueries(kDynamic));
        }
}

TEST(NeighborhoodWindow, OfPartsOfALine) {
  Neighborhood of{5, 1, 1, false};
  EXPECT_EQ(keysOfAll(of, {0, 4}, 16), (shardc::Run{0, 6}));
  EXPECT_EQ(keysOfAll(of, {4, 8}, 16), (shardc::Run{2, 10}));
  EXPECT_EQ(keysOfAll(of, {15, 16}, 16), (shardc::Run{11, 16}));
  EXPECT_EQ(keysOfAll(of, {7, 7}, 16), (shardc::Run{0, 0}));
}

} // namespace
