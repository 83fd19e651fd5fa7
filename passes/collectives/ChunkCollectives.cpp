// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/OptimizeFunction.h"
#include "passes/collectives/Passes.h"
#include "passes/collectives/chunk/ApplyChunks.h"
#include "passes/collectives/chunk/core/ChooseChunks.h"
#include "passes/collectives/simplify/Pairs.h"

namespace shardc {
#define GEN_PASS_DEF_CHUNKCOLLECTIVES
#include "passes/collectives/Passes.h.inc"
} // namespace shardc

using namespace mlir;
using namespace shardc;
using namespace shardc::dist;
using namespace shardc::collectives;

namespace {

struct ChunkCollectives : shardc::impl::ChunkCollectivesBase<ChunkCollectives> {
  using ChunkCollectivesBase::ChunkCollectivesBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto move = readMove<ChunkMode>(module, "chunks", chunks.getValue(), ChunkMode::parse,
                                    {topology, caps, memoryLimit, sizes},
                                    moveOptions(bucket, policy, robust, flat, mixedDtype));
    if (failed(move))
      return signalPassFailure();
    if (!move->mode.enabled)
      return;
    if (move->mode.ring && !move->input.model->supports(CollectiveKind::Permute)) {
      module.emitError() << "chunks: " << describeNoRings(*move->input.model);
      return signalPassFailure();
    }
    for (auto function : module.getOps<func::FuncOp>())
      if (!function.isExternal() && mayGain(function) &&
          failed(chunk(function, move->input, move->mode)))
        return signalPassFailure();
  }

private:
  /// Without a product or a collective there is nothing to look for.
  static bool mayGain(func::FuncOp function) {
    bool hasCollective = false, hasProduct = false;
    function.walk([&](Operation *op) {
      hasCollective |= isa<AllGatherOp, ReduceScatterOp, AllReduceOp>(op);
      auto kernel = dyn_cast<KernelOpInterface>(op);
      hasProduct |= kernel && kernel.getKernelForm() == KernelForm::Product;
    });
    return hasCollective && hasProduct;
  }

  LogicalResult chunk(func::FuncOp function, const OptimizeInput &input, const ChunkMode &mode) {
    return whileSynchronous(function, [&](AsyncPairs &pairs) {
      return chunkSynchronous(function, input, mode, pairs);
    });
  }

  LogicalResult chunkSynchronous(func::FuncOp function, const OptimizeInput &input,
                                 const ChunkMode &mode, AsyncPairs &pairs) {
    FailureOr<ProgramGraph> program = buildProgramGraph(function, *input.model, input.sizes);
    if (failed(program) || failed(checkPrices(*program, *input.model)))
      return failure();
    FunctionRules rules(function, *program);
    const Graph &graph = program->graph;
    std::vector<std::vector<ChunkRegion>> alternatives =
        findChunkRegions(graph, rules, *input.model);
    ChunkOptions options;
    options.optimize = input.options;
    options.pieces = mode.pieces;
    options.ring = mode.ring;
    ChunkDecision decision = chooseChunks(graph, *input.model, alternatives, options);
    count(function, *program, mode, decision);
    if (!decision.choices.empty())
      applyChunks(function, *program, rules, decision.choices,
                  [&](Operation *op) { pairs.forget(op); });
    return success();
  }

  void count(func::FuncOp function, const ProgramGraph &program, const ChunkMode &mode,
             const ChunkDecision &decision) {
    for (auto collective : function.getOps<CollectiveOpInterface>()) {
      WholeReason why = whyWhole(collective);
      numSymbolic += why == WholeReason::Symbolic;
      numUneven += why == WholeReason::Uneven;
      auto scatter = dyn_cast<ReduceScatterOp>(collective.getOperation());
      numInOneSum += mode.ring && why == WholeReason::None && scatter && !mayAddInTurn(scatter);
    }
    numTooCostly += decision.tooCostly;
    numIndivisible += decision.indivisible;
    stepBefore += static_cast<uint64_t>(decision.stepBeforeUs + 0.5);
    stepAfter += static_cast<uint64_t>(decision.stepAfterUs + 0.5);
    numRegions += decision.choices.size();
    for (const ChunkChoice &choice : decision.choices) {
      const ChunkRegion &region = *choice.region;
      for (NodeId node : region.nodes) {
        if (!program.graph.isCollective(node))
          continue;
        bool gathers = program.graph.kindOf(node) == CollectiveKind::AllGather;
        numGathers += gathers;
        numReduces += !gathers;
      }
      numProducts += region.products;
      numRings += region.ring.has_value();
      if (remarks)
        program.opOf[region.nodes.front()]->emitRemark()
            << (region.ring ? "as a ring, in " : "in ") << choice.pieces
            << " pieces from here on: " << region.collectives << " collectives and "
            << region.products << " products";
    }
  }
};

} // namespace
