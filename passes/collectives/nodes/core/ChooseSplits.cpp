// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/nodes/core/ChooseSplits.h"

#include "passes/collectives/core/ProgramTrials.h"

using namespace shardc;
using namespace shardc::collectives;

std::optional<SplitMode> shardc::collectives::parseSplitMode(std::string_view text,
                                                             std::string &error) {
  if (text == "off")
    return SplitMode::Off;
  if (text == "auto")
    return SplitMode::Auto;
  if (text == "all")
    return SplitMode::All;
  error = "'" + std::string(text) + "' is neither off, auto nor all";
  return std::nullopt;
}

std::string shardc::collectives::describeMissingNodes(const cost::CostModel &model) {
  if (model.ranksPerNode())
    return "";
  return "the cost model '" + std::string(model.name()) +
         "' says nothing of nodes: choose a topology that does, such as h100-64 or a target "
         "description with ranks_per_node";
}

namespace {

class Chooser {
public:
  Chooser(const NodeSplits &splits, const SplitOptions &options)
      : splits(splits), graph(splits.graph), model(splits.model), options(options),
        trials(graph, model, options.optimize, options.leastGain) {}

  SplitDecision run() {
    std::vector<NodeId> possible, mayPay;
    for (NodeId node = 0; node != graph.numNodes(); ++node) {
      if (!graph.isCollective(node))
        continue;
      WhyFlat why = splits.whyFlat(node);
      ++decision.counts[static_cast<size_t>(why)];
      if (why != WhyFlat::Splits)
        continue;
      possible.push_back(node);
      SplitCost cost = splits.costOf(node);
      if (std::max(cost.withinUs, cost.betweenUs) < cost.flatUs)
        mayPay.push_back(node);
      else
        ++decision.tooCostly;
    }
    if (options.mode == SplitMode::All) {
      decision.tooCostly = 0;
      decision.choices = std::move(possible);
    } else if (options.mode == SplitMode::Auto && !mayPay.empty()) {
      choose(mayPay);
    }
    return std::move(decision);
  }

private:
  void choose(const std::vector<NodeId> &mayPay) {
    bool isScheduled = trials.begin();
    decision.candidates = trials.count();
    if (!isScheduled) // the scheduler says what is wrong
      return;
    std::vector<NodeId> sure, late;
    for (NodeId node : mayPay) {
      if (isSure(node))
        sure.push_back(node);
      if (trials.exposedUs(node) > 0)
        late.push_back(node);
    }
    attempt(mayPay);
    if (sure.size() != mayPay.size())
      attempt(sure);
    if (late.size() != mayPay.size() && graph.numNodes() <= ProgramTrials::largeGraph)
      attempt(late);
    if (std::optional<size_t> best = trials.best())
      decision.choices = std::move(attempted[*best]);
    decision.stepBeforeUs = trials.stepBeforeUs();
    decision.stepAfterUs = trials.stepAfterUs();
    decision.candidates = trials.count();
  }

  /// Even if nothing runs beside its parts.
  bool isSure(NodeId node) const {
    SplitCost cost = splits.costOf(node);
    return cost.withinUs + cost.betweenUs + cost.copyUs + cost.launches * model.launchUs() <
           cost.flatUs;
  }

  void attempt(const std::vector<NodeId> &choices) {
    if (choices.empty())
      return;
    trials.add(splitGraph(splits, choices).graph);
    attempted.push_back(choices);
  }

  const NodeSplits &splits;
  const Graph &graph;
  const cost::CostModel &model;
  const SplitOptions options;
  ProgramTrials trials;
  /// What the variants of the program take apart.
  std::vector<std::vector<NodeId>> attempted;
  SplitDecision decision;
};

} // namespace

SplitDecision shardc::collectives::chooseSplits(const NodeSplits &splits,
                                                const SplitOptions &options) {
  return Chooser(splits, options).run();
}
