// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Random programs with random annotations, fixed seeds: whatever is asked, placement ends with
// layouts that satisfy every op's rule, keeps every annotation, and needs only redistributions that
// can be planned.
#include "passes/placement/core/Place.h"
#include "passes/placement/core/TensorStates.h"
#include "passes/redistribute/core/Planner.h"
#include "passes/verify/core/RuleCheck.h"
#include "test/unit/passes/placement/Models.h"

#include <gtest/gtest.h>

#include <random>

using namespace shardc;
using namespace shardc::test;

namespace {
class RandomModel {
public:
  RandomModel(Mesh mesh, unsigned seed) : model(std::move(mesh)), random(seed) {}

  Model build() {
    for (int i = 0; i < 3; ++i)
      values.push_back(input());
    for (int i = 0; i < 14; ++i)
      addOp();
    for (TensorId t : values)
      if (pick(6) == 0)
        model.constrain(t, layout(model.shape(t)).c_str());
    return std::move(model);
  }

private:
  int pick(int n) { return static_cast<int>(random() % n); }
  TensorId any() { return values[pick(static_cast<int>(values.size()))]; }
  /// A random layout that is valid for the shape.
  std::string layout(const Shape &shape) {
    while (true) {
      Layout l(model.graph.mesh);
      for (Placement &p : l.placements) {
        int64_t dim = shape.empty() ? 0 : pick(static_cast<int>(shape.size()));
        int kind = pick(8);
        p = kind < 2    ? Placement::open()
            : kind == 2 ? Placement::replicate()
            : kind == 3 ? Placement::shard(dim, 2)
            : kind == 4 ? Placement::shardGranule(dim, 3)
                        : Placement::shard(dim);
      }
      if (pick(2))
        std::shuffle(l.order.begin(), l.order.end(), random);
      if (l.validate(shape, true).empty())
        return l.str();
    }
  }
  TensorId input() {
    static const Shape shapes[] = {{4, 6, 12}, {24, 12}, {4, 72}, {12, 12}};
    return annotated(shapes[pick(4)]);
  }
  TensorId annotated(const Shape &shape) {
    std::string name = "x" + std::to_string(model.names.size());
    TensorId t = model.input(name, shape);
    if (pick(2)) {
      std::vector<Strength> strengths;
      for (unsigned a = 0; a < model.graph.numAxes(); ++a)
        strengths.push_back(static_cast<Strength>(pick(3)));
      model.annotate(name, layout(shape).c_str(), strengths);
    }
    return t;
  }
  void addOp() {
    TensorId x = any();
    Shape s = model.shape(x);
    if (s.size() < 2)
      return values.push_back(model.gelu(x));
    switch (pick(8)) {
    case 0:
      return values.push_back(model.gelu(x));
    case 1:
      return values.push_back(model.add(x, annotated(s)));
    case 2:
      return values.push_back(model.mul(x, annotated({s.back()})));
    case 3: {
      std::vector<TensorId> operands{x, annotated({12, s.back()}), annotated({12})};
      Shape out = s;
      out.back() = 12;
      std::string batch = std::string("abcd").substr(0, s.size() - 1);
      RuleBuilder b = model.rule(operands, out)
                          .einsum({batch + "i", "oi", "o"}, {batch + "o"})
                          .linearJointly({0, 2})
                          .linearJointly({1, 2})
                          .additive(2);
      return values.push_back(model.op(b, operands, out));
    }
    case 4: {
      Shape to = s;
      if (pick(2) && to.size() > 1) {
        to[0] *= to[1];
        to.erase(to.begin() + 1);
      } else {
        to.back() /= 2;
        to.insert(to.end() - 1, 2);
      }
      if (s.back() % 2 == 0)
        values.push_back(model.view(x, to));
      return;
    }
    case 5: {
      std::vector<int64_t> p(s.size());
      std::iota(p.begin(), p.end(), 0);
      std::shuffle(p.begin(), p.end(), random);
      return values.push_back(model.permute(x, p));
    }
    case 6:
      if (s.back() % 3 == 0)
        for (TensorId part : model.split(x, static_cast<int64_t>(s.size()) - 1, 3))
          values.push_back(part);
      return;
    case 7: {
      Shape out(s.begin(), s.end() - 1);
      RuleBuilder b = model.rule({x}, out).reduce({-1}, pick(2) ? Reduction::Sum : Reduction::Max);
      return values.push_back(model.op(b.linear(0), {x}, out));
    }
    }
  }

  Model model;
  std::mt19937 random;
  std::vector<TensorId> values;
};
} // namespace

static void check(const PropagationGraph &g, const PlacedGraph &placed) {
  for (OpId op = 0; op < g.ops.size(); ++op) {
    if (g.ops[op].isConstraint) { // the identity, whatever the layout
      EXPECT_EQ(placed.operandLayout(g, op, 0), placed.tensorLayout(g.results(op)[0]));
      continue;
    }
    std::vector<PlacedTensor> operands, results;
    for (unsigned i = 0; i < g.ops[op].numOperands; ++i)
      operands.push_back({&placed.operandLayout(g, op, i), g.shape(g.operands(op)[i])});
    for (TensorId t : g.results(op))
      results.push_back({&placed.tensorLayout(t), g.shape(t)});
    for (const std::string &error : checkRule(g.rule(op), operands, results)) {
      ADD_FAILURE() << "op " << op << " " << g.rule(op).str() << ": " << error;
      for (const PlacedTensor &t : operands)
        ADD_FAILURE() << t.layout->str();
      for (const PlacedTensor &t : results)
        ADD_FAILURE() << t.layout->str();
    }
  }
  for (const Annotation &a : g.annotations)
    for (unsigned axis = 0; axis < g.numAxes(); ++axis) {
      const Placement &asked = a.layout.placements[axis];
      const Placement &kept = placed.tensorLayout(a.tensor).placements[axis];
      bool same = asked.isShard() ? kept.isShard(asked.dim) : asked.isOpen() || asked == kept;
      EXPECT_TRUE(same) << a.layout.str() << " became " << placed.tensorLayout(a.tensor).str();
    }
  for (const Redistribution &r : placed.redistributions)
    EXPECT_TRUE(planGreedily(placed.tensorLayout(r.tensor), placed.layouts[r.to], g.shape(r.tensor))
                    .errors.empty());
}

/// States that were written into the IR and read back are placed as those that propagation left.
static void checkThroughText(const Model &model, const PlacedGraph &placed) {
  const PropagationGraph &g = model.graph;
  Propagation propagation = propagate(g), read;
  for (TensorId t = 0; t < g.tensors.size(); ++t) {
    std::span states(propagation.states);
    Sharding written = shardingOf(g.mesh, states.subspan(t * g.numAxes(), g.numAxes()));
    EXPECT_TRUE(written.validate().empty());
    EXPECT_TRUE(written.validateShape(g.shape(t)).empty());
    for (AxisState &state : statesOf(written, read.sizes))
      read.states.push_back(state);
  }
  for (const Refusal &refusal : checkStates(g, read))
    ADD_FAILURE() << refusal.text;
  PlacedGraph again = place(g, read);
  EXPECT_TRUE(again.errors.empty());
  EXPECT_EQ(again.layouts, placed.layouts);
  EXPECT_EQ(again.tensorLayouts, placed.tensorLayouts);
  EXPECT_EQ(again.operandLayouts, placed.operandLayouts);
  EXPECT_EQ(again.redistributions.size(), placed.redistributions.size());
}

TEST(RandomProgram, EveryOpSatisfiesItsRule) {
  int redistributions = 0, refused = 0;
  for (const Mesh &mesh :
       {Mesh({{"a", 4}}), Mesh({{"a", 2}, {"b", 2}}), Mesh({{"a", 3}, {"b", 2}})})
    for (unsigned seed = 0; seed < 1000; ++seed) {
      Model model = RandomModel(mesh, seed).build();
      PlacedGraph placed = placeGraph(model.graph);
      // Blocks inside an axis that does not divide them cannot be kept, and are said.
      if (!placed.errors.empty()) {
        ++refused;
        for (const Refusal &error : placed.errors)
          EXPECT_NE(error.text.find("splits pieces of the blocks of another"), std::string::npos)
              << error.text;
        continue;
      }
      redistributions += static_cast<int>(placed.redistributions.size());
      check(model.graph, placed);
      checkThroughText(model, placed);
      if (testing::Test::HasFailure())
        FAIL() << "seed " << seed << " on " << mesh.str();
    }
  EXPECT_GT(redistributions, 3000);
  EXPECT_LT(refused, 600); // of 3000
}

/// The program from op `begin` on. What was made before, and used from there on, has the layout
/// that it was placed in; some results are redistributed to what they were, as the program may say.
static PropagationGraph restOf(const PropagationGraph &g, const PlacedGraph &placed, OpId begin,
                               std::mt19937 &random) {
  PropagationGraph rest(g.mesh);
  std::map<TensorId, TensorId> renamed;
  auto tensorOf = [&](TensorId t) {
    auto [known, isNew] = renamed.try_emplace(t, kNone);
    if (isNew)
      known->second =
          rest.addPlacedInput(g.shape(t), g.tensors[t].elementSize, placed.tensorLayout(t));
    return known->second;
  };
  for (OpId op = begin; op < g.ops.size(); ++op) {
    std::vector<TensorId> operands;
    for (TensorId t : g.operands(op))
      operands.push_back(tensorOf(t));
    if (g.ops[op].isConstraint) {
      const Layout &layout = placed.tensorLayout(g.results(op)[0]);
      renamed[g.results(op)[0]] =
          rest.addRedistribution(operands[0], random() % 4 ? std::optional(layout) : std::nullopt);
      continue;
    }
    std::vector<Shape> shapes;
    std::vector<int64_t> sizes;
    for (TensorId t : g.results(op)) {
      shapes.push_back(g.shape(t));
      sizes.push_back(g.tensors[t].elementSize);
    }
    TensorId first = rest.addOp(g.rule(op), operands, shapes, sizes);
    for (size_t i = 0; i < shapes.size(); ++i) {
      TensorId was = g.results(op)[i], is = first + static_cast<TensorId>(i);
      renamed[was] = is;
      if (random() % 3 == 0)
        rest.wish(is, wishFor(placed.tensorLayout(was), shapes[i]));
      if (random() % 3 == 0)
        rest.addRedistribution(is, placed.tensorLayout(was));
    }
  }
  return rest;
}

TEST(RandomProgram, TheRestIsPlacedAroundWhatIsPlaced) {
  int partials = 0, redistributions = 0;
  for (const Mesh &mesh :
       {Mesh({{"a", 4}}), Mesh({{"a", 2}, {"b", 2}}), Mesh({{"a", 3}, {"b", 2}})})
    for (unsigned seed = 0; seed < 1000; ++seed) {
      Model model = RandomModel(mesh, seed).build();
      PlacedGraph placed = placeGraph(model.graph);
      if (!placed.errors.empty())
        continue; // said by the test above
      std::mt19937 random(seed);
      PropagationGraph rest =
          restOf(model.graph, placed, static_cast<OpId>(random() % model.graph.ops.size()), random);
      PlacedGraph again = placeGraph(rest);
      ASSERT_TRUE(again.errors.empty()) << again.errors[0].text << " seed " << seed;
      check(rest, again);
      for (auto &[tensor, layout] : rest.finalLayouts) {
        EXPECT_EQ(again.tensorLayout(tensor), layout);
        partials += layout.hasPartial();
      }
      redistributions += static_cast<int>(again.redistributions.size());
      if (testing::Test::HasFailure())
        FAIL() << "seed " << seed << " on " << mesh.str();
    }
  EXPECT_GT(partials, 1000);
  EXPECT_GT(redistributions, 3000);
}
