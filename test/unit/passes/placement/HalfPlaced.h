// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Propagation graphs of which a part is placed, and what the rest of them becomes.
#ifndef SHARDC_TEST_UNIT_PASSES_PLACEMENT_HALFPLACED_H
#define SHARDC_TEST_UNIT_PASSES_PLACEMENT_HALFPLACED_H

#include "passes/placement/core/Place.h"
#include "passes/placement/core/TensorStates.h"
#include "passes/redistribute/core/Planner.h"
#include "test/unit/passes/placement/Models.h"

#include <gtest/gtest.h>

namespace shardc::test {

/// A model with values that have layouts.
struct HalfPlaced : Model {
  using Model::Model;

  Layout layout(const char *text) const { return *parseLayout(graph.mesh, text).value; }
  TensorId placed(Shape shape, const char *text) {
    return graph.addPlacedInput(std::move(shape), 4, layout(text));
  }
  TensorId redistribute(TensorId t, const char *text) {
    return graph.addRedistribution(t, layout(text));
  }
  void wish(TensorId t, const char *text) {
    SizesPool sizes;
    std::vector<AxisState> states;
    for (const AxisPlacement &p : decompose(layout(text), sizes))
      states.push_back({p});
    graph.wish(t, shardingOf(graph.mesh, states));
  }
  /// Of y = x w^T: the gradients of x and of w.
  TensorId inputGradient(TensorId dy, TensorId w) {
    Shape to = shape(dy);
    to.back() = shape(w)[1];
    return op(rule({dy, w}, to).einsum({"bso", "oi"}, {"bsi"}).linear(0).linear(1), {dy, w}, to);
  }
  TensorId weightGradient(TensorId dy, TensorId x) {
    Shape to{shape(dy).back(), shape(x).back()};
    return op(rule({dy, x}, to).einsum({"bso", "bsi"}, {"oi"}).linear(0).linear(1), {dy, x}, to);
  }
};

/// The placed graph, with the collectives that it needs.
struct Result {
  explicit Result(const HalfPlaced &model) : model(model), placed(placeGraph(model.graph)) {
    for (const Refusal &error : placed.errors)
      ADD_FAILURE() << error.text;
    if (!placed.errors.empty())
      return;
    for (auto &[tensor, layout] : model.graph.finalLayouts)
      EXPECT_EQ(placed.tensorLayout(tensor).str(), layout.str());
    for (const Redistribution &r : placed.redistributions) {
      RedistributePlan plan = planGreedily(placed.tensorLayout(r.tensor), placed.layouts[r.to],
                                           model.graph.shape(r.tensor));
      EXPECT_TRUE(plan.errors.empty());
      for (const RedistributeStep &step : plan.steps)
        if (collectiveOf(step.kind)) {
          kinds += (kinds.empty() ? "" : ", ") + std::string(stepKindName(step.kind));
          bytes += bytesMoved(step, model.graph.shape(r.tensor), 4);
        }
    }
  }
  std::string layout(TensorId t) const { return placed.tensorLayout(t).str(); }
  std::string operand(TensorId made, unsigned i) const {
    return placed.operandLayout(model.graph, model.graph.tensors[made].producer, i).str();
  }

  const HalfPlaced &model;
  PlacedGraph placed;
  std::string kinds; ///< of collectives, in order
  double bytes = 0;
};

} // namespace shardc::test

#endif // SHARDC_TEST_UNIT_PASSES_PLACEMENT_HALFPLACED_H
