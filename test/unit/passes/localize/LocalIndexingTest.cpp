// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every answer is compared with enumeration: lists of global indices per position.

#include "passes/localize/core/LocalIndexing.h"

#include <gtest/gtest.h>
#include <numeric>
#include <random>

using namespace shardc;

namespace {

using Indices = std::vector<int64_t>;

Indices held(const SplitDim &dim, const Coordinate &coordinate) {
  Indices result;
  for (const Run &run : dim.split.runs(dim.size, coordinate))
    for (int64_t i = run.begin; i < run.end; ++i)
      result.push_back(i);
  return result;
}

/// Row-major indices over all dims.
Indices held(const std::vector<SplitDim> &dims, const Coordinate &coordinate) {
  Indices result{0};
  for (const SplitDim &dim : dims) {
    Indices next;
    for (int64_t outer : result)
      for (int64_t inner : held(dim, coordinate))
        next.push_back(outer * dim.size + inner);
    result = next;
  }
  return result;
}

/// All splits of a dim of `size` that this test knows of, over one or both axes of a mesh.
std::vector<DimSplit> splits(const Mesh &mesh, int64_t size) {
  std::vector<DimSplit> result{{}};
  for (unsigned axis = 0; axis < mesh.numAxes(); ++axis) {
    int64_t count = mesh.axes[axis].size;
    std::vector<AxisSplit> one{{axis, count, 1, 1, {}}, {axis, count, 1, 2, {}}};
    for (int64_t blocks : {2, 3})
      if (size % blocks == 0)
        one.push_back({axis, count, blocks, 1, {}});
    one.push_back({axis, count, 0, 1, {size - size / 3, 1, size / 3, 1}});
    std::vector<int64_t> sizes(count, 0);
    sizes.back() = size / 2;
    sizes.front() += size - size / 2;
    one.push_back({axis, count, 1, 1, sizes});
    for (const AxisSplit &split : one)
      result.push_back({{split}});
  }
  if (mesh.numAxes() == 2) {
    AxisSplit a{0, mesh.axes[0].size, 1, 1, {}}, b{1, mesh.axes[1].size, 1, 1, {}};
    result.push_back({{a, b}});
    result.push_back({{b, a}});
  }
  return result;
}

std::vector<Mesh> meshes() {
  return {Mesh({{"a", 2}}), Mesh({{"a", 3}}), Mesh({{"a", 4}}), Mesh({{"a", 2}, {"b", 2}}),
          Mesh({{"a", 2}, {"b", 3}})};
}

std::optional<Indices> bruteSlice(const Mesh &mesh, const SplitDim &input, const SplitDim &result,
                                  int64_t start, int64_t step) {
  Indices starts;
  for (int64_t p = 0; p < mesh.numDevices(); ++p) {
    Coordinate coordinate = mesh.coordinateOfPosition(p);
    Indices have = held(input, coordinate), want = held(result, coordinate);
    int64_t first = 0;
    for (size_t k = 0; k < want.size(); ++k) {
      auto at = std::find(have.begin(), have.end(), start + step * want[k]);
      if (at == have.end())
        return std::nullopt;
      int64_t local = at - have.begin();
      if (k == 0)
        first = local;
      if (local != first + step * static_cast<int64_t>(k))
        return std::nullopt;
    }
    starts.push_back(first);
  }
  return starts;
}

TEST(LocalIndexing, SliceAgreesWithEnumeration) {
  int found = 0, refused = 0;
  for (const Mesh &mesh : meshes())
    for (int64_t size : {1, 5, 6, 12})
      for (int64_t step : {1, 2, 3})
        for (int64_t start = 0; start < size; ++start)
          for (int64_t length = 0; start + step * (length - 1) < size; ++length)
            for (const DimSplit &in : splits(mesh, size))
              for (const DimSplit &out : splits(mesh, length)) {
                SplitDim input{size, in}, result{length, out};
                auto expected = bruteSlice(mesh, input, result, start, step);
                ASSERT_EQ(localSliceStarts(mesh, input, result, start, step), expected);
                ++(expected ? found : refused);
              }
  EXPECT_GT(found, 1000);
  EXPECT_GT(refused, 1000);
}

TEST(LocalIndexing, SliceOfOneBlockOfAFusedWeight) {
  Mesh mesh({{"tp", 2}});
  SplitDim fused{12, {{{0, 2, 3, 1, {}}}}}, one{4, {{{0, 2, 1, 1, {}}}}};
  EXPECT_EQ(localSliceStarts(mesh, fused, one, 4, 1), (Indices{2, 2}));
  EXPECT_EQ(localSliceStarts(mesh, fused, one, 3, 1), std::nullopt);
}

TEST(LocalIndexing, ConcatenationAgreesWithEnumeration) {
  int local = 0;
  for (const Mesh &mesh : meshes())
    for (int64_t a : {2, 3, 4})
      for (int64_t b : {1, 3, 4})
        for (const DimSplit &left : splits(mesh, a))
          for (const DimSplit &right : splits(mesh, b))
            for (const DimSplit &both : splits(mesh, a + b)) {
              SplitDim x{a, left}, y{b, right}, z{a + b, both};
              bool expected = true;
              for (int64_t p = 0; p < mesh.numDevices(); ++p) {
                Coordinate coordinate = mesh.coordinateOfPosition(p);
                Indices joined = held(x, coordinate);
                for (int64_t i : held(y, coordinate))
                  joined.push_back(a + i);
                expected &= joined == held(z, coordinate);
              }
              ASSERT_EQ(isLocalConcatenation(mesh, {x, y}, z), expected);
              local += expected;
            }
  EXPECT_GT(local, 50);
}

TEST(LocalIndexing, ViewAgreesWithEnumeration) {
  std::mt19937 random(1);
  int local = 0;
  std::vector<std::vector<int64_t>> shapes{{24},   {6, 4},    {4, 6},     {2, 3, 4},
                                           {3, 8}, {2, 2, 6}, {1, 24, 1}, {12, 2}};
  for (int i = 0; i < 30000; ++i) {
    std::vector<Mesh> all = meshes();
    const Mesh mesh = all[random() % all.size()];
    auto pick = [&] {
      std::vector<SplitDim> dims;
      std::vector<bool> used(mesh.numAxes(), false);
      for (int64_t size : shapes[random() % shapes.size()]) {
        std::vector<DimSplit> options = splits(mesh, size);
        DimSplit split = random() % 2 ? DimSplit() : options[random() % options.size()];
        for (const AxisSplit &axis : split.axes)
          if (used[axis.axis])
            split = DimSplit();
        for (const AxisSplit &axis : split.axes)
          used[axis.axis] = true;
        dims.push_back({size, split});
      }
      return dims;
    };
    std::vector<SplitDim> input = pick(), result = pick();
    bool expected = true;
    for (int64_t p = 0; p < mesh.numDevices(); ++p)
      expected &=
          held(input, mesh.coordinateOfPosition(p)) == held(result, mesh.coordinateOfPosition(p));
    ASSERT_EQ(isLocalView(mesh, input, result), expected);
    local += expected;
  }
  EXPECT_GT(local, 300);
}

TEST(LocalIndexing, GroupsOfViewDimsHaveEqualProducts) {
  std::vector<std::vector<int64_t>> shapes{{},        {24},         {6, 4},        {4, 6},
                                           {2, 3, 4}, {1, 1, 24},   {2, 1, 12, 1}, {24, 1},
                                           {1, 24},   {4, 1, 1, 6}, {2, 2, 2, 3}};
  auto product = [](const std::vector<int64_t> &shape, unsigned begin, unsigned end) {
    return std::accumulate(shape.begin() + begin, shape.begin() + end, int64_t(1),
                           std::multiplies<int64_t>());
  };
  for (const auto &input : shapes)
    for (const auto &result : shapes) {
      if (product(input, 0, input.size()) != product(result, 0, result.size()))
        continue;
      unsigned i = 0, j = 0;
      for (const DimGroup &group : groupViewDims(input, result)) {
        EXPECT_EQ(group.inputBegin, i);
        EXPECT_EQ(group.resultBegin, j);
        i = group.inputEnd;
        j = group.resultEnd;
        EXPECT_EQ(product(input, group.inputBegin, i), product(result, group.resultBegin, j));
      }
      EXPECT_EQ(i, input.size());
      EXPECT_EQ(j, result.size());
    }
  EXPECT_EQ(
      groupViewDims(std::vector<int64_t>{8, 11, 384}, std::vector<int64_t>{8, 11, 12, 32}).size(),
      3u);
}

} // namespace
