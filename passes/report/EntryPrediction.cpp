// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/report/EntryPrediction.h"

#include "passes/collectives/analysis/ProgramGraph.h"
#include "passes/collectives/core/Simulate.h"

using namespace mlir;

namespace shardc {

const RankPrediction &EntryPrediction::slowest() const {
  return *std::max_element(
      ranks.begin(), ranks.end(),
      [](const RankPrediction &a, const RankPrediction &b) { return a.stepUs < b.stepUs; });
}

uint64_t EntryPrediction::peakBytes() const {
  uint64_t peak = 0;
  for (const RankPrediction &rank : ranks)
    peak = std::max(peak, rank.peakBytes);
  return peak;
}

namespace {

struct Simulated {
  collectives::Figures figures;
  std::vector<CollectivePrediction> collectives;
  ModuleTable modules;
};

FailureOr<Simulated> simulateOne(func::FuncOp function, const cost::CostModel &model) {
  FailureOr<ProgramGraph> program = buildProgramGraph(function, model);
  if (failed(program) || failed(checkPrices(*program, model)))
    return failure();
  const collectives::Graph &graph = program->graph;
  std::vector<double> exposed(graph.numNodes());
  Simulated result;
  result.modules = tabulateModules(*program);
  result.figures = collectives::simulate(graph, model, {.exposedOf = &exposed});
  llvm::DenseMap<Operation *, CollectivePrediction> byOp;
  for (auto [node, op] : llvm::enumerate(program->opOf))
    if (graph.isCollective(node))
      byOp[op] = {model.collectiveUs(graph.kindOf(node), graph.group(graph.groupOf(node)).shape(),
                                     graph.fullBytes(node)),
                  exposed[node]};
  // One without tensors is no node.
  function.walk(
      [&](dist::CollectiveOpInterface op) { result.collectives.push_back(byOp.lookup(op)); });
  return result;
}

} // namespace

FailureOr<EntryPrediction> predictEntry(ArrayRef<func::FuncOp> functions,
                                        ArrayRef<int64_t> variantOfDevice,
                                        ArrayRef<int64_t> rankOfDevice,
                                        const cost::CostModel &model,
                                        std::vector<CollectivePrediction> &collectives) {
  std::vector<Simulated> simulated;
  for (func::FuncOp function : functions) {
    FailureOr<Simulated> one = simulateOne(function, model);
    if (failed(one))
      return failure();
    simulated.push_back(std::move(*one));
  }
  EntryPrediction prediction;
  prediction.topology = std::string(model.name());
  const Simulated *slowest = nullptr;
  for (auto [variant, rank] : llvm::zip_equal(variantOfDevice, rankOfDevice)) {
    const Simulated &one = simulated[static_cast<size_t>(variant)];
    prediction.ranks.push_back(
        {rank, one.figures.stepUs, one.figures.totalExposedUs(), one.figures.peakHoldBytes});
    if (!slowest || one.figures.stepUs > slowest->figures.stepUs)
      slowest = &one;
  }
  if (slowest) {
    collectives = slowest->collectives;
    prediction.modules = slowest->modules;
  }
  return prediction;
}

} // namespace shardc
