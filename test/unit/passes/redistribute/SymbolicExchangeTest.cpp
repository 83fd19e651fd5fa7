// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Exchanges along dims of unknown size: whatever the size turns out to be, every rank gets each
// element that it needs from one rank, which has it.
#include "passes/redistribute/core/SymbolicExchange.h"

#include <gtest/gtest.h>

#include <algorithm>

using namespace shardc;

namespace {

bool holds(const std::vector<Run> &runs, int64_t index) {
  return std::any_of(runs.begin(), runs.end(),
                     [&](const Run &run) { return run.begin <= index && index < run.end; });
}
bool holds(const Layout &layout, std::span<const int64_t> shape, const Coordinate &at, int64_t x,
           int64_t y) {
  return holds(layout.splitOfDim(0).runs(shape[0], at), x) &&
         holds(layout.splitOfDim(1).runs(shape[1], at), y);
}

/// Whether the exchange is right where the unknown size is `n`.
void check(const RedistributeStep &step, const SymbolicExchange &exchange, int64_t n) {
  const Mesh &mesh = step.before.mesh;
  std::vector<int64_t> shape{n, 3};
  for (int64_t position = 0; position < mesh.numDevices(); ++position) {
    Coordinate to = mesh.coordinateOfPosition(position);
    size_t receiver = exchange.memberAt(position);
    for (int64_t x = 0; x < n; ++x)
      for (int64_t y = 0; y < 3; ++y) {
        if (!holds(step.after, shape, to, x, y))
          continue;
        int senders = 0;
        for (size_t member = 0; member < exchange.size(); ++member) {
          Coordinate from = mesh.coordinateOfPosition(exchange.positionOf(position, member));
          senders += exchange.sends(member, receiver) && holds(step.before, shape, from, x, y);
        }
        ASSERT_EQ(senders, 1) << step.str() << " n = " << n << " position " << position << " (" << x
                              << ", " << y << ")";
      }
    ASSERT_EQ(exchange.positionOf(position, receiver), position);
    ASSERT_TRUE(exchange.sends(receiver, receiver)) << "what a rank has it takes from itself";
  }
}

} // namespace

TEST(SymbolicExchange, EveryPairIsRightForEverySize) {
  const std::vector<int64_t> shape{kDynamic, 3};
  size_t checked = 0;
  for (const Mesh &mesh :
       {Mesh({{"a", 2}, {"b", 2}}), Mesh({{"a", 3}, {"b", 2}}, {5, 1, 0, 2, 3, 7}),
        Mesh({{"a", 2}, {"b", 2}, {"c", 2}})}) {
    std::vector<Layout> layouts;
    const std::vector<Placement> choices{Placement::replicate(), Placement::shard(0),
                                         Placement::shardGranule(0, 2), Placement::shard(1)};
    size_t count = 1;
    for (size_t axis = 0; axis < mesh.numAxes(); ++axis)
      count *= choices.size();
    for (size_t number = 0; number < count; ++number) {
      Layout layout(mesh);
      size_t rest = number;
      for (Placement &placement : layout.placements) {
        placement = choices[rest % choices.size()];
        rest /= choices.size();
      }
      do
        if (layout.validate(shape).empty() && layout.canonicalize(shape) == layout)
          layouts.push_back(layout);
      while (std::next_permutation(layout.order.begin(), layout.order.end()));
    }
    for (const Layout &from : layouts)
      for (const Layout &to : layouts) {
        std::string why;
        std::optional<RedistributeStep> step = makeStep(StepKind::Exchange, from, to, shape, why);
        if (!step)
          continue;
        bool needsSize = false;
        for (int64_t dim : exchangedDims(*step, 2))
          needsSize |= dim == 0;
        if (!needsSize)
          continue;
        ++checked;
        SymbolicExchange exchange(*step, shape);
        for (int64_t n : {0, 1, 2, 3, 5, 8, 13}) {
          check(*step, exchange, n);
          if (testing::Test::HasFatalFailure())
            return;
        }
      }
  }
  EXPECT_GT(checked, 1000u);
}

TEST(SymbolicExchange, CopiesShareOutWhatTheySend) {
  Mesh mesh({{"a", 4}, {"b", 4}});
  std::string why;
  std::vector<int64_t> shape{kDynamic, 3};
  std::optional<RedistributeStep> step =
      makeStep(StepKind::Exchange, Layout(mesh, {Placement::shard(0), Placement::replicate()}),
               Layout(mesh, {Placement::replicate(), Placement::shard(0)}), shape, why);
  ASSERT_TRUE(step) << why;
  SymbolicExchange exchange(*step, shape);
  for (size_t from = 0; from < exchange.size(); ++from) {
    size_t sent = 0;
    for (size_t to = 0; to < exchange.size(); ++to)
      sent += from != to && exchange.sends(from, to) &&
              exchange.positionOf(0, to) % 4 == static_cast<int64_t>(from) / 4;
    EXPECT_LE(sent, 1u) << "member " << from << " sends its shard to several";
  }
}

TEST(SymbolicExchange, BlocksNeedTheSize) {
  Mesh mesh({{"a", 2}, {"b", 2}});
  std::string why;
  EXPECT_FALSE(makeStep(StepKind::Exchange,
                        Layout(mesh, {Placement::shard(0), Placement::replicate()}),
                        Layout(mesh, {Placement::shard(0, 3), Placement::replicate()}),
                        std::vector<int64_t>{kDynamic, 3}, why));
  EXPECT_EQ(why, "takes blocks only where sizes are known: it needs the size of dim 0");
}

TEST(SymbolicExchange, OneSizeMayBeUnknown) {
  Mesh mesh({{"a", 2}, {"b", 2}});
  std::string why;
  EXPECT_FALSE(makeStep(StepKind::Exchange,
                        Layout(mesh, {Placement::shard(0), Placement::replicate()}),
                        Layout(mesh, {Placement::replicate(), Placement::shard(0)}),
                        std::vector<int64_t>{kDynamic, kDynamic}, why));
  EXPECT_EQ(why, "takes a dim of unknown size only where the other sizes are known: it needs the "
                 "size of dim 0");
}
