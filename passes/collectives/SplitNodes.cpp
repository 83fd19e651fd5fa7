// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/OptimizeFunction.h"
#include "passes/collectives/Passes.h"
#include "passes/collectives/nodes/FunctionSplits.h"
#include "passes/collectives/nodes/SplitCollective.h"
#include "passes/collectives/nodes/core/ChooseSplits.h"
#include "passes/collectives/simplify/Pairs.h"

namespace shardc {
#define GEN_PASS_DEF_SPLITNODES
#include "passes/collectives/Passes.h.inc"
} // namespace shardc

using namespace mlir;
using namespace shardc;
using namespace shardc::dist;
using namespace shardc::collectives;

namespace {

struct SplitNodes : shardc::impl::SplitNodesBase<SplitNodes> {
  using SplitNodesBase::SplitNodesBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto move = readMove<SplitMode>(module, "mode", mode.getValue(), parseSplitMode,
                                    {topology, caps, memoryLimit, sizes},
                                    moveOptions(bucket, policy, robust, flat, mixedDtype));
    if (failed(move))
      return signalPassFailure();
    if (move->mode == SplitMode::Off)
      return;
    if (std::string problem = describeMissingNodes(*move->input.model); !problem.empty()) {
      module.emitError() << "topology: " << problem;
      return signalPassFailure();
    }
    for (auto function : module.getOps<func::FuncOp>())
      if (!function.isExternal() && communicates(function) &&
          failed(split(function, move->input, move->mode)))
        return signalPassFailure();
  }

private:
  static bool communicates(func::FuncOp function) {
    return function.walk([](CollectiveOpInterface) { return WalkResult::interrupt(); })
        .wasInterrupted();
  }

  LogicalResult split(func::FuncOp function, const OptimizeInput &input, SplitMode how) {
    return whileSynchronous(
        function, [&](AsyncPairs &pairs) { return splitSynchronous(function, input, how, pairs); });
  }

  LogicalResult splitSynchronous(func::FuncOp function, const OptimizeInput &input, SplitMode how,
                                 AsyncPairs &pairs) {
    FailureOr<ProgramGraph> program = buildProgramGraph(function, *input.model, input.sizes);
    if (failed(program) || failed(checkPrices(*program, *input.model)))
      return failure();
    SplitFacts facts = splitFacts(*program);
    // Whoever gets a future that the function returns waits for one collective.
    for (NodeId node = 0; node != program->graph.numNodes(); ++node)
      if (auto op = dyn_cast<CollectiveOpInterface>(program->opOf[node]); op && op.isAsync())
        facts.of[node].why = WhyFlat::OtherKind;
    NodeSplits splits(program->graph, *input.model, facts);
    SplitDecision decision = chooseSplits(splits, {input.options, how});
    count(decision);
    for (NodeId node : decision.choices) {
      auto op = cast<CollectiveOpInterface>(program->opOf[node]);
      const NodeGroups &groups = splits.groupsOf(node);
      ++(isa<AllGatherOp>(op) ? numGathers : numReduces);
      if (remarks)
        op->emitRemark() << "within " << groups.nodes << " nodes of " << groups.ranksOnNode
                         << " ranks, and between them";
      splitCollective(op, groups);
      pairs.forget(op);
      op->erase();
    }
    return success();
  }

  void count(const SplitDecision &decision) {
    numTooCostly += decision.tooCostly;
    numOneNode += decision.count(WhyFlat::OneNode);
    numUnequal += decision.count(WhyFlat::Unequal);
    numUnknown += decision.count(WhyFlat::UnknownRank);
    numSymbolic += decision.count(WhyFlat::Symbolic);
    numIndivisible += decision.count(WhyFlat::Indivisible);
    numInexact += decision.count(WhyFlat::Inexact);
    stepBefore += static_cast<uint64_t>(decision.stepBeforeUs + 0.5);
    stepAfter += static_cast<uint64_t>(decision.stepAfterUs + 0.5);
  }
};

} // namespace
