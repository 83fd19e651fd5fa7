// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every pair of layouts on small meshes, data in, data out (R1). What a layout means is said here a
// second time, by cutting lists of indices, independently of the library.
#include "passes/cost/core/TargetDescription.h"
#include "test/unit/passes/redistribute/StepInterpreter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <set>

using namespace shardc;
using Indices = std::vector<int64_t>;

/// Global indices of `dim` at a coordinate.
static Indices heldIndices(const Layout &layout, int64_t dim, int64_t n, const Coordinate &at) {
  Indices list(n);
  std::iota(list.begin(), list.end(), 0);
  for (unsigned axis : layout.order) {
    const Placement &p = layout.placements[axis];
    if (!p.isShard(dim))
      continue;
    Indices next;
    int64_t block = static_cast<int64_t>(list.size()) / std::max<int64_t>(p.blocks, 1),
            count = layout.mesh.axes[axis].size;
    for (int64_t i = 0; i < static_cast<int64_t>(list.size()); ++i) {
      int64_t inBlock = i % std::max<int64_t>(block, 1), owner = 0;
      int64_t size = block, granule = p.granule, begin = 0;
      for (size_t b = 0; p.blocks == 0 && b < p.sizes.size(); b += 2) {
        if (i >= begin && i < begin + p.sizes[b]) {
          inBlock = i - begin;
          size = p.sizes[b];
          granule = p.sizes[b + 1];
        }
        begin += p.sizes[b];
      }
      if (p.sizes.empty() || p.blocks == 0) {
        int64_t units = size / granule, perShard = (units + count - 1) / count;
        owner = inBlock / granule / perShard;
      } else {
        for (int64_t end = p.sizes[0]; inBlock >= end; end += p.sizes[owner])
          ++owner;
      }
      if (owner == at[axis])
        next.push_back(list[i]);
    }
    list = std::move(next);
  }
  return list;
}

/// What position `i` of `n` on a partial axis holds of the value v. Chosen so that reductions over
/// several axes commute: non-negative shares, and offsets to one side.
static double share(Reduction reduction, double v, int64_t i, int64_t n) {
  double last = i == n - 1 ? 1.0 : 0.0;
  switch (reduction) {
  case Reduction::Sum: // 1/2, 1/4, ..., and the rest
    return v * (i == n - 1 ? std::pow(0.5, n - 1) : std::pow(0.5, i + 1));
  case Reduction::Avg:
    return v * static_cast<double>(n) * last;
  case Reduction::Min:
    return v + static_cast<double>(i);
  case Reduction::Max:
    return v - static_cast<double>(i);
  case Reduction::Prod:
    return i == 0 ? v * std::pow(2.0, n - 1) : 0.5;
  }
  return v;
}

/// The local tensor at a coordinate of the tensor whose element at index (x, y) is 10 x + y + 1.
static LocalTensor expectedShard(const Layout &layout, const Indices &shape, const Coordinate &at) {
  Indices rows = heldIndices(layout, 0, shape[0], at),
          columns = heldIndices(layout, 1, shape[1], at);
  LocalTensor shard{{static_cast<int64_t>(rows.size()), static_cast<int64_t>(columns.size())}, {}};
  for (int64_t x : rows)
    for (int64_t y : columns) {
      double value = static_cast<double>(10 * x + y + 1);
      for (unsigned axis = 0; axis < at.size(); ++axis)
        if (const Placement &p = layout.placements[axis]; p.isPartial())
          value = share(p.reduction, value, at[axis], layout.mesh.axes[axis].size);
      shard.data.push_back(value);
    }
  return shard;
}

/// Reduces partial axes away, independently of how the partial values came about.
static Shards reducePartials(Layout layout, Shards shards) {
  for (unsigned axis = 0; axis < layout.placements.size(); ++axis) {
    if (!layout.placements[axis].isPartial())
      continue;
    Reduction reduction = layout.placements[axis].reduction;
    Shards next = shards;
    for (size_t position = 0; position < shards.size(); ++position) {
      Coordinate at = layout.mesh.coordinateOfPosition(position);
      int64_t count = layout.mesh.axes[axis].size;
      for (size_t k = 0; k < shards[position].data.size(); ++k) {
        double total = 0;
        for (at[axis] = 0; at[axis] < count; ++at[axis]) {
          double value = shards[layout.mesh.positionOfCoordinate(at)].data[k];
          total = at[axis] == 0 ? value : combine(reduction, total, value);
        }
        next[position].data[k] = reduction == Reduction::Avg ? total / double(count) : total;
      }
    }
    layout.placements[axis] = Placement::replicate();
    shards = std::move(next);
  }
  return shards;
}

/// That the shards, once what is partial is reduced, are those of the whole tensor.
static void expectTensor(const Layout &to, const Indices &shape, Shards shards,
                         const std::string &trace) {
  shards = reducePartials(to, std::move(shards));
  Layout full = to;
  for (Placement &p : full.placements)
    if (p.isPartial())
      p = Placement::replicate();
  for (int64_t position = 0; position < to.mesh.numDevices(); ++position) {
    LocalTensor expected = expectedShard(full, shape, to.mesh.coordinateOfPosition(position));
    ASSERT_EQ(shards[position].shape, expected.shape) << to.str() << "\n" << trace;
    for (size_t k = 0; k < expected.data.size(); ++k)
      ASSERT_NEAR(shards[position].data[k], expected.data[k], 1e-9)
          << to.str() << " position " << position << "\n"
          << trace;
  }
}

static void check(const Layout &from, const Layout &to, const Indices &shape,
                  const RedistributePlan &plan) {
  ASSERT_TRUE(plan.errors.empty()) << plan.errors[0];
  Shards shards;
  for (int64_t position = 0; position < from.mesh.numDevices(); ++position)
    shards.push_back(expectedShard(from, shape, from.mesh.coordinateOfPosition(position)));
  std::string trace;
  Layout at = from.canonicalize(shape);
  std::set<unsigned> gathered;
  for (const RedistributeStep &step : plan.steps) {
    trace += step.str() + "\n";
    ASSERT_EQ(step.before, at) << trace;
    ASSERT_TRUE(step.after.validate(shape).empty()) << trace;
    runStep(step, shape, shards);
    at = step.after;
  }
  ASSERT_EQ(at, to.canonicalize(shape)) << from.str() << " -> " << to.str() << "\n" << trace;
  expectTensor(to, shape, std::move(shards), from.str() + " -> " + to.str() + "\n" + trace);
}

/// Both planners, and what the cheapest plan costs beside the greedy one: by bytes, with a latency
/// that is worth many of them, and by the model that programs are compiled with.
static void check(const Layout &from, const Layout &to, const Indices &shape) {
  RedistributePlan greedy = planGreedily(from, to, shape);
  check(from, to, shape, greedy);
  ASSERT_LE(greedy.steps.size(), 2 * from.placements.size());
  std::vector<cost::LinkCost> slow(from.mesh.numAxes(), {100, 1});
  static const std::unique_ptr<cost::CostModel> model = cost::makeBuiltinModel(cost::kDefaultModel);
  for (const cost::LinkCosts &links :
       {cost::LinkCosts(), cost::LinkCosts(slow), cost::LinkCosts(*model, from.mesh)}) {
    PlannerOptions options;
    options.links = links;
    RedistributePlan plan = planCheapest(from, to, shape, options);
    check(from, to, shape, plan);
    ASSERT_LE(costOf(plan.steps, shape, options), costOf(greedy.steps, shape, options));
  }
}

/// All layouts of these placements in all orders, canonical ones only.
static std::vector<Layout> layoutsOf(const Mesh &mesh, const std::vector<Placement> &choices,
                                     const Indices &shape) {
  std::vector<Layout> result;
  std::vector<size_t> pick(mesh.numAxes(), 0);
  for (bool more = true; more;) {
    Layout layout(mesh);
    for (size_t i = 0; i < pick.size(); ++i)
      layout.placements[i] = choices[pick[i]];
    do
      if (layout.validate(shape).empty() && layout.canonicalize(shape) == layout)
        result.push_back(layout);
    while (std::next_permutation(layout.order.begin(), layout.order.end()));
    size_t i = 0;
    while (i < pick.size() && ++pick[i] == choices.size())
      pick[i++] = 0;
    more = i < pick.size();
  }
  return result;
}

static void checkAllPairs(const Mesh &mesh, const std::vector<Placement> &choices,
                          const Indices &shape) {
  std::vector<Layout> layouts = layoutsOf(mesh, choices, shape);
  for (const Layout &from : layouts)
    for (const Layout &to : layouts) {
      check(from, to, shape);
      if (testing::Test::HasFatalFailure())
        return;
    }
}

static const std::vector<Placement> kPlain{Placement::replicate(), Placement::shard(0),
                                           Placement::shard(1), Placement::partial()};

TEST(Redistribute, OneAxisAllReductions) {
  std::vector<Placement> choices = kPlain;
  for (Reduction r : {Reduction::Avg, Reduction::Min, Reduction::Max, Reduction::Prod})
    choices.push_back(Placement::partial(r));
  for (int64_t size : {1, 2, 3, 8})
    for (const Indices &shape : {Indices{5, 3}, Indices{8, 2}, Indices{1, 1}, Indices{0, 4}})
      checkAllPairs(Mesh({{"a", size}}), choices, shape);
}

TEST(Redistribute, TwoAxes) {
  std::vector<Placement> choices = kPlain;
  choices.push_back(Placement::partial(Reduction::Max));
  choices.push_back(Placement::partial(Reduction::Avg));
  for (const Mesh &mesh : {Mesh({{"a", 2}, {"b", 2}}), Mesh({{"a", 2}, {"b", 4}}),
                           Mesh({{"a", 3}, {"b", 2}}), Mesh({{"a", 2}, {"b", 2}}, {3, 0, 2, 1})})
    for (const Indices &shape : {Indices{5, 3}, Indices{8, 8}, Indices{2, 7}})
      checkAllPairs(mesh, choices, shape);
}

TEST(Redistribute, ThreeAxes) {
  Mesh mesh({{"a", 2}, {"b", 2}, {"c", 2}});
  for (const Indices &shape : {Indices{5, 3}, Indices{8, 4}})
    checkAllPairs(mesh, kPlain, shape);
}

TEST(Redistribute, BlocksSizesAndGranules) {
  std::vector<Placement> choices{Placement::replicate(),
                                 Placement::shard(0),
                                 Placement::shard(0, 3),
                                 Placement::shardGranule(0, 2),
                                 Placement::shard(0, 1, {5, 1}),
                                 Placement::shard(0, 1, {0, 12}),
                                 Placement::shard(0, 2, {1, 5}),
                                 Placement::shardBlocks(0, {{8, 2}, {3, 1}, {1, 1}}),
                                 Placement::shardBlocks(0, {{4, 1}, {2, 1}}),
                                 Placement::shard(1, 1, {1, 2}),
                                 Placement::partial()};
  for (const Indices &shape : {Indices{12, 3}, Indices{6, 3}})
    checkAllPairs(Mesh({{"a", 2}, {"b", 2}}), choices, shape);
}

/// About `wanted` pairs, which meet every layout on both sides. SHARDC_EVERY_PAIR in the
/// environment is a number of pairs to check instead, `all`, or a part of all, as `3/15` (of parts
/// 0 to 14): every fifteenth pair.
static void checkSomePairs(const Mesh &mesh, const std::vector<Placement> &choices,
                           const Indices &shape, size_t wanted) {
  std::vector<Layout> layouts = layoutsOf(mesh, choices, shape);
  size_t n = layouts.size();
  size_t part = 0, every = 0;
  if (const char *text = std::getenv("SHARDC_EVERY_PAIR")) {
    std::string_view number = text;
    size_t slash = number.find('/');
    wanted = number == "all" ? n * n : std::stoul(text);
    if (slash != number.npos) {
      part = wanted;
      every = std::stoul(text + slash + 1);
    }
  }
  testing::Test::RecordProperty("pairs", static_cast<int64_t>(n * n));
  if (every == 0) {
    every = wanted < n * n ? n * n / wanted + 1 : 1;
    while (std::gcd(every, n) != 1)
      ++every;
  }
  for (size_t i = part; i < n * n; i += every) {
    check(layouts[i / n], layouts[i % n], shape);
    if (testing::Test::HasFatalFailure())
      return;
  }
}

/// On one mesh (L3, L3a, L3b, L3c, L4, R1).
static void checkEveryPlacement(const Mesh &mesh) {
  std::vector<Placement> choices = kPlain;
  for (Reduction reduction : {Reduction::Avg, Reduction::Min, Reduction::Max})
    choices.push_back(Placement::partial(reduction));
  for (const Placement &shard :
       {Placement::shard(0, 3), Placement::shard(0, 2), Placement::shardGranule(0, 2),
        Placement::shard(0, 1, {5, 1}), Placement::shard(0, 1, {0, 6}),
        Placement::shard(0, 1, {2, 1}), Placement::shard(0, 1, {1, 0, 2, 3}),
        Placement::shardBlocks(0, {{4, 2}, {2, 1}}), Placement::shardBlocks(0, {{1, 1}, {2, 1}}),
        Placement::shardBlocks(0, {{1, 1}, {2, 2}, {3, 1}}), Placement::shard(1, 1, {1, 2}),
        Placement::shard(1, 1, {0, 3, 0, 0})})
    choices.push_back(shard);
  checkSomePairs(mesh, choices, {6, 3}, 1200);
}
TEST(Redistribute, EveryPlacementOn2x2) { checkEveryPlacement(Mesh({{"a", 2}, {"b", 2}})); }
TEST(Redistribute, EveryPlacementOn2x4) { checkEveryPlacement(Mesh({{"a", 2}, {"b", 4}})); }
TEST(Redistribute, EveryPlacementOn2x2x2) {
  checkEveryPlacement(Mesh({{"a", 2}, {"b", 2}, {"c", 2}}));
}

/// Between meshes: what ranks hold before and after, each by the definition, and what they send.
static void checkMeshes(const Layout &from, const Layout &to, const Indices &shape) {
  RedistributePlan plan = planBetweenMeshes(from, to, shape);
  ASSERT_TRUE(plan.errors.empty()) << plan.errors[0];
  Shards shards;
  for (int64_t position = 0; position < from.mesh.numDevices(); ++position)
    shards.push_back(expectedShard(from, shape, from.mesh.coordinateOfPosition(position)));
  std::string trace;
  for (const RedistributeStep &step : plan.steps) {
    trace += step.str() + "\n";
    if (step.before.mesh == step.after.mesh) {
      runStep(step, shape, shards);
      continue;
    }
    StepExchange exchange = makeExchange(step, shape);
    ASSERT_EQ(exchange.groups.size(), 1u);
    Shards all(exchange.mesh.numDevices(), LocalTensor{Indices(shape.size(), 0), {}});
    for (size_t i = 0; i < all.size(); ++i)
      if (auto at = step.before.mesh.coordinateOf(exchange.mesh.rankAtPosition(int64_t(i))))
        all[i] = shards[step.before.mesh.positionOfCoordinate(*at)];
    all = runExchange(exchange.groups[0].exchange, exchange.dims, all);
    shards.assign(to.mesh.numDevices(), {});
    for (size_t i = 0; i < all.size(); ++i)
      if (auto at = step.after.mesh.coordinateOf(exchange.mesh.rankAtPosition(int64_t(i))))
        shards[step.after.mesh.positionOfCoordinate(*at)] = all[i];
      else
        ASSERT_EQ(all[i].data.size(), 0u) << "a rank outside the mesh holds something"; // (L5)
  }
  expectTensor(to, shape, std::move(shards), trace);
}

TEST(Redistribute, BetweenMeshes) { // (R3)
  Mesh square({{"a", 2}, {"b", 2}}), turned({{"a", 2}, {"b", 2}}, {3, 1, 0, 2}), row({{"x", 3}}),
      later({{"x", 2}}, {5, 2}), all({{"p", 2}, {"q", 3}});
  std::vector<Placement> choices = kPlain;
  choices.push_back(Placement::partial(Reduction::Max));
  for (const Mesh &one : {square, turned, row, later, all})
    for (const Mesh &other : {square, turned, row, later, all}) {
      if (one == other)
        continue;
      for (const Indices &shape : {Indices{5, 3}, Indices{1, 4}})
        for (const Layout &from : layoutsOf(one, choices, shape))
          for (const Layout &to : layoutsOf(other, choices, shape)) {
            checkMeshes(from, to, shape);
            if (testing::Test::HasFatalFailure())
              return;
          }
    }
}

TEST(Redistribute, BetweenMeshesEachByteMovesOnce) { // (R3)
  Mesh one({{"a", 4}}), other({{"a", 4}}, {3, 2, 1, 0}), more({{"a", 8}});
  auto exchange = [&](const Layout &from, const Layout &to) {
    RedistributePlan plan = planBetweenMeshes(from, to, Indices{16, 2});
    EXPECT_EQ(plan.steps.size(), 1u);
    return makeExchange(plan.steps.at(0), Indices{16, 2}).groups.at(0).exchange;
  };
  // Shards of 4 rows change places; a copy is where it is to be already.
  EXPECT_EQ(exchange({one, {Placement::shard(0)}}, {other, {Placement::shard(0)}}).largestTraffic(),
            4);
  EXPECT_EQ(
      exchange({one, {Placement::replicate()}}, {other, {Placement::replicate()}}).largestTraffic(),
      0);
  // To four more ranks: each of the first four, which have all, sends one copy.
  EXPECT_EQ(
      exchange({one, {Placement::replicate()}}, {more, {Placement::replicate()}}).largestTraffic(),
      1);
}
