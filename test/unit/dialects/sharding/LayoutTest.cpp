// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Extents, runs and owners of layouts against an independent brute force that cuts lists of
// indices.
#include "dialects/sharding/Layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>

using namespace shardc;
using Indices = std::vector<int64_t>;

/// torch.chunk of a list, piece r (from its documentation: ceil-sized pieces until exhausted).
static Indices chunk(const Indices &list, int64_t count, int64_t r) {
  Indices piece;
  int64_t size = (static_cast<int64_t>(list.size()) + count - 1) / count;
  for (int64_t i = 0; i < static_cast<int64_t>(list.size()); ++i)
    if (size && i / size == r)
      piece.push_back(list[i]);
  return piece;
}

/// One split of a list by a placement: blocks, then sizes or chunks of granules.
static Indices cut(const Indices &list, const Placement &p, int64_t count, int64_t r) {
  Indices held;
  if (p.blocks == 0) {
    auto begin = list.begin();
    for (size_t b = 0; b < p.sizes.size(); b += 2) {
      auto end = begin + p.sizes[b];
      Indices part = cut({begin, end}, Placement::shardGranule(0, p.sizes[b + 1]), count, r);
      held.insert(held.end(), part.begin(), part.end());
      begin = end;
    }
    return held;
  }
  size_t block = list.size() / p.blocks;
  for (int64_t b = 0; b < p.blocks; ++b) {
    Indices part(list.begin() + b * block, list.begin() + (b + 1) * block);
    if (!p.sizes.empty()) {
      size_t begin = std::accumulate(p.sizes.begin(), p.sizes.begin() + r, size_t(0));
      held.insert(held.end(), part.begin() + begin, part.begin() + begin + p.sizes[r]);
      continue;
    }
    Indices units(part.size() / p.granule);
    std::iota(units.begin(), units.end(), 0);
    for (int64_t unit : chunk(units, count, r))
      held.insert(held.end(), part.begin() + unit * p.granule,
                  part.begin() + (unit + 1) * p.granule);
  }
  return held;
}

static Indices held(const Layout &layout, int64_t dim, int64_t n, const Coordinate &coordinate) {
  Indices list(n);
  std::iota(list.begin(), list.end(), 0);
  for (unsigned axis : layout.order)
    if (layout.placements[axis].isShard(dim))
      list = cut(list, layout.placements[axis], layout.mesh.axes[axis].size, coordinate[axis]);
  return list;
}

static void check(const Layout &layout, const Indices &shape) {
  ASSERT_TRUE(layout.validate(shape).empty()) << layout.str() << " " << layout.validate(shape)[0];
  Layout canonical = layout.canonicalize(shape);
  ASSERT_TRUE(canonical.validate(shape).empty()) << layout.str() << " -> " << canonical.str();
  EXPECT_EQ(canonical.canonicalize(shape), canonical);
  std::vector<std::vector<std::vector<int64_t>>> owners(shape.size());
  for (size_t d = 0; d < shape.size(); ++d)
    owners[d].resize(shape[d]);
  bool even = true;
  std::optional<Indices> firstShape;
  for (int64_t position = 0; position < layout.mesh.numDevices(); ++position) {
    Coordinate coordinate = layout.mesh.coordinateOfPosition(position);
    Indices local = layout.localShape(shape, coordinate);
    even &= local == firstShape.value_or(local);
    firstShape = local;
    EXPECT_EQ(layout.localShapeOfRank(shape, position), local);
    for (size_t d = 0; d < shape.size(); ++d) {
      Indices expected = held(layout, d, shape[d], coordinate);
      ASSERT_EQ(local[d], static_cast<int64_t>(expected.size())) << layout.str();
      DimSplit split = layout.splitOfDim(d);
      Indices got;
      std::vector<Run> runs = split.runs(shape[d], coordinate);
      for (size_t i = 0; i < runs.size(); ++i) {
        ASSERT_LT(runs[i].begin, runs[i].end);
        ASSERT_TRUE(i == 0 || runs[i - 1].end != runs[i].begin) << "runs are not maximal";
        for (int64_t x = runs[i].begin; x < runs[i].end; ++x)
          got.push_back(x);
      }
      ASSERT_EQ(got, expected) << layout.str();
      ASSERT_EQ(held(canonical, d, shape[d], coordinate), expected)
          << layout.str() << " -> " << canonical.str();
      for (size_t i = 0; i < expected.size(); ++i) {
        owners[d][expected[i]].push_back(position);
        EXPECT_EQ(split.owner(shape[d], expected[i]).localIndex, static_cast<int64_t>(i));
      }
    }
  }
  EXPECT_EQ(layout.isEven(shape), even) << layout.str();
  // An element is held where all its dims are.
  for (int64_t x = 0; x < shape[0]; ++x) {
    Indices index(shape.size(), 0), expected = owners[0][x];
    index[0] = x;
    if (std::any_of(shape.begin(), shape.end(), [](int64_t n) { return n == 0; }))
      break;
    for (size_t d = 1; d < shape.size(); ++d)
      std::erase_if(expected, [&](int64_t rank) {
        return std::find(owners[d][0].begin(), owners[d][0].end(), rank) == owners[d][0].end();
      });
    EXPECT_EQ(layout.owners(shape, index), expected) << layout.str() << " element " << x;
  }
}

/// All meshes with up to `maxDevices` devices and `maxAxes` axes of size at least 2.
static std::vector<Mesh> meshes(int64_t maxDevices, unsigned maxAxes) {
  std::vector<Mesh> result{Mesh()};
  for (size_t i = 0; i < result.size(); ++i)
    if (result[i].numAxes() < maxAxes)
      for (int64_t size = 2; size * result[i].numDevices() <= maxDevices; ++size) {
        Mesh mesh = result[i];
        mesh.axes.push_back({std::string(1, char('a' + mesh.numAxes())), size});
        result.push_back(mesh);
      }
  return result;
}

/// Calls `use` with each choice of one placement per axis and each order.
static void forLayouts(const Mesh &mesh, const std::vector<Placement> &choices,
                       const std::function<void(const Layout &)> &use) {
  std::vector<size_t> pick(mesh.numAxes(), 0);
  while (true) {
    Layout layout(mesh);
    for (size_t i = 0; i < pick.size(); ++i)
      layout.placements[i] = choices[pick[i]];
    do
      use(layout);
    while (std::next_permutation(layout.order.begin(), layout.order.end()));
    size_t i = 0;
    while (i < pick.size() && ++pick[i] == choices.size())
      pick[i++] = 0;
    if (i == pick.size())
      return;
  }
}

TEST(Layout, EveryMeshTo16RanksAgainstBruteForce) {
  std::vector<Placement> choices{Placement::replicate(), Placement::shard(0), Placement::shard(1),
                                 Placement::partial()};
  for (const Mesh &mesh : meshes(16, 4))
    forLayouts(mesh, choices, [&](const Layout &layout) {
      for (const Indices &shape : {Indices{5, 3}, Indices{16, 1}, Indices{0, 7}})
        check(layout, shape);
    });
}

TEST(Layout, BlocksGranulesAndSizesAgainstBruteForce) {
  std::vector<Placement> choices{Placement::shard(0),
                                 Placement::shard(0, 3),
                                 Placement::shardGranule(0, 4),
                                 Placement::shardGranule(0, 2, 3),
                                 Placement::shard(0, 1, {12, 0, 12}),
                                 Placement::shard(0, 2, {5, 7}),
                                 Placement::shard(0, 2, {0, 12}),
                                 Placement::shard(0, 1, {8, 16}),
                                 Placement::shardBlocks(0, {{16, 4}, {5, 1}, {3, 1}}),
                                 Placement::shardBlocks(0, {{8, 2}, {0, 1}, {4, 2}}),
                                 Placement::shardBlocks(0, {{12, 6}, {12, 1}}),
                                 Placement::shardBlocks(0, {{12, 3}, {12, 3}}),
                                 Placement::shardBlocks(0, {{4, 4}, {1, 1}, {7, 7}})};
  int64_t valid = 0;
  for (const Mesh &mesh : meshes(12, 3))
    forLayouts(mesh, choices, [&](const Layout &layout) {
      for (int64_t n : {24, 12, 0})
        if (layout.validate(Indices{n}).empty()) {
          ++valid;
          check(layout, {n});
        }
    });
  EXPECT_GT(valid, 400);
}

TEST(Layout, NestedChunksAreNotFlattened) { // (L3a)
  Layout layout(Mesh({{"a", 2}, {"b", 2}}), {Placement::shard(0), Placement::shard(0)});
  Indices extents;
  for (int64_t rank = 0; rank < 4; ++rank)
    extents.push_back(layout.localShapeOfRank(Indices{5}, rank)[0]);
  EXPECT_EQ(extents, (Indices{2, 1, 1, 1}));
}

TEST(Layout, FusedWeightKeepsWholeHeads) { // (L3b), (L3c)
  Layout layout(Mesh({{"tp", 4}}), {Placement::shardGranule(0, 64, 3)});
  Indices shape{3 * 6 * 64};
  EXPECT_EQ(layout.splitOfDim(0).runs(shape[0], Coordinate{1}),
            (std::vector<shardc::Run>{{128, 256}, {512, 640}, {896, 1024}}));
  EXPECT_EQ(layout.localShape(shape, Coordinate{3}), Indices{0});
  EXPECT_EQ(layout.canonicalize(shape).str(), "[S(0, blocks = 3, sizes = [128, 128, 128, 0])]");
}

TEST(Layout, BlocksOfUnequalSizes) { // (L3b)
  // Six heads of queries in pairs, three of keys and three of values.
  Layout layout(Mesh({{"tp", 2}}), {Placement::shardBlocks(0, {{6, 2}, {3, 1}, {3, 1}})});
  Indices shape{12};
  EXPECT_EQ(layout.splitOfDim(0).runs(12, Coordinate{0}),
            (std::vector<shardc::Run>{{0, 4}, {6, 8}, {9, 11}}));
  EXPECT_EQ(layout.splitOfDim(0).runs(12, Coordinate{1}),
            (std::vector<shardc::Run>{{4, 6}, {8, 9}, {11, 12}}));
  EXPECT_EQ(layout.canonicalize(shape), layout);
  EXPECT_EQ(layout.splitOfDim(0).expression(layout.mesh, "n"),
            "chunk(n, 2, blocks = [6, 3, 3], granule = [2, 1, 1])[tp]");
}

TEST(Layout, CanonicalForms) {
  auto canonical = [](const Mesh &mesh, const char *text, Indices shape) {
    return parseLayout(mesh, text).value->canonicalize(shape).str();
  };
  Mesh one({{"a", 4}}), two({{"a", 2}, {"b", 3}}), three({{"a", 2}, {"b", 2}, {"c", 2}});
  EXPECT_EQ(canonical(one, "[S(0, sizes = [2, 2, 1, 0])]", {5}), "[S(0)]");
  EXPECT_EQ(canonical(one, "[S(0, sizes = [2, 1, 1, 1])]", {5}), "[S(0, sizes = [2, 1, 1, 1])]");
  EXPECT_EQ(canonical(one, "[S(0, granule = 3)]", {12}), "[S(0)]");
  EXPECT_EQ(canonical(one, "[S(0, granule = 3)]", {15}), "[S(0, sizes = [6, 6, 3, 0])]");
  EXPECT_EQ(canonical(one, "[S(0, granule = 3)]", {kDynamic}), "[S(0, granule = 3)]");
  // Blocks that are equal after all, or that give each coordinate one interval.
  EXPECT_EQ(canonical(one, "[S(0, blocks = [8, 8, 0])]", {16}), "[S(0, blocks = 2)]");
  EXPECT_EQ(canonical(one, "[S(0, blocks = [8])]", {8}), "[S(0)]");
  EXPECT_EQ(canonical(one, "[S(0, blocks = [1, 7], granule = [1, 7])]", {8}),
            "[S(0, sizes = [8, 0, 0, 0])]");
  EXPECT_EQ(canonical(one, "[S(0, blocks = [8, 6], granule = [2, 3])]", {14}),
            "[S(0, blocks = [8, 6], granule = [1, 3])]");
  // The inner range is 8 or 7 elements: no list of sizes says both.
  EXPECT_EQ(canonical(two, "[S(0, sizes = [8, 4]), S(0, granule = 2)]", {12}),
            "[S(0, sizes = [8, 4]), S(0, granule = 2)]");
  EXPECT_EQ(canonical(two, "[S(0), S(1)], order = [1, 0]", {4, 4}), "[S(0), S(1)]");
  EXPECT_EQ(canonical(three, "[S(0), S(1), S(0)], order = [2, 1, 0]", {4, 4}),
            "[S(0), S(1), S(0)], order = [2, 1, 0]");
  EXPECT_EQ(canonical(three, "[S(0), R, S(0)], order = [1, 2, 0]", {4, 4}),
            "[S(0), R, S(0)], order = [2, 1, 0]");
  EXPECT_EQ(canonical(three, "[S(0), R, S(0)], order = [1, 0, 2]", {4, 4}), "[S(0), R, S(0)]");
}

TEST(Layout, RankOutsideTheMeshHoldsNothing) { // (L5)
  Layout layout(Mesh({{"a", 2}}, {3, 1}), {Placement::shard(0)});
  EXPECT_EQ(layout.localShapeOfRank(Indices{5, 2}, 3), (Indices{3, 2}));
  EXPECT_EQ(layout.localShapeOfRank(Indices{5, 2}, 1), (Indices{2, 2}));
  EXPECT_EQ(layout.localShapeOfRank(Indices{5, 2}, 0), (Indices{0, 0}));
}

TEST(Layout, GlobalIndexAndSymbolicExtent) {
  Layout layout(Mesh({{"a", 2}, {"b", 3}}), {Placement::shard(1, 2), Placement::shard(0)});
  EXPECT_EQ(layout.globalIndex(Indices{7, 8}, Coordinate{1, 2}, Indices{0, 3}), (Indices{6, 7}));
  EXPECT_EQ(layout.localShape(Indices{kDynamic, 8}, Coordinate{0, 0}), (Indices{kDynamic, 4}));
  DimSplit split = layout.splitOfDim(0);
  EXPECT_EQ(split.expression(layout.mesh, "s0"), "chunk(s0, 3)[b]");
  EXPECT_EQ(split.extent(7, Coordinate{0, 2}), 1);
  EXPECT_EQ(split.extent(2, Coordinate{0, 2}), 0);
}

TEST(Layout, EqualityAndHash) {
  Mesh mesh({{"a", 2}, {"b", 2}});
  Layout a(mesh, {Placement::shard(0), Placement::partial()});
  Layout b = a;
  EXPECT_EQ(a, b);
  EXPECT_EQ(a.hash(), b.hash());
  b.placements[1] = Placement::partial(Reduction::Max);
  EXPECT_NE(a, b);
  EXPECT_NE(a.hash(), b.hash());
}
