// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/Passes.h"

#include "dialects/dist/FindMesh.h"
#include "passes/collectives/simplify/Pairs.h"
#include "passes/collectives/simplify/Rules.h"
#include "passes/cost/core/TargetDescription.h"

#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace shardc {
#define GEN_PASS_DEF_SIMPLIFYCOLLECTIVES
#include "passes/collectives/Passes.h.inc"
} // namespace shardc

using namespace mlir;
using namespace shardc;

namespace {

/// What is known of values goes when their ops go.
struct Forgetter : RewriterBase::Listener {
  Forgetter(SimplifyContext &around, AsyncPairs &pairs) : around(around), pairs(pairs) {}
  void notifyOperationErased(Operation *op) override {
    around.ranks.forget(op);
    around.uniformity.forget(op);
    pairs.forget(op);
  }
  SimplifyContext &around;
  AsyncPairs &pairs;
};

struct SimplifyCollectives : shardc::impl::SimplifyCollectivesBase<SimplifyCollectives> {
  using SimplifyCollectivesBase::SimplifyCollectivesBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    std::string errors;
    std::unique_ptr<cost::CostModel> model = cost::loadModel(topology, errors);
    if (!model) {
      module.emitError() << "topology: " << StringRef(errors).rtrim();
      return signalPassFailure();
    }
    for (auto function : module.getOps<func::FuncOp>())
      if (!function.isExternal() && failed(simplify(function, *model)))
        return signalPassFailure();
  }

  LogicalResult simplify(func::FuncOp function, const cost::CostModel &model) {
    // Without known ranks there are still groups with names.
    RankValues ranks(dist::findMesh(function).value_or(Mesh()), &getContext());
    Uniformity uniformity(ranks);
    SimplifyContext around{ranks, uniformity, model};
    SimplifyCounts counts{numGatherSlices,
                          numGatherReplicated,
                          numReduceReplicated,
                          numScattered,
                          numNarrowed,
                          numSums,
                          numAverages,
                          numCasts,
                          numViews,
                          numPermutes,
                          numChains};
    RewritePatternSet patterns(&getContext());
    populateReplicatedRules(patterns, around, counts);
    populateScatterRules(patterns, around, counts);
    populateSumRules(patterns, around, counts);
    populateCommuteRules(patterns, around, counts);
    AsyncPairs pairs(function.getBody());
    Forgetter forgetter(around, pairs);
    IRRewriter rewriter(&getContext(), &forgetter);
    GreedyRewriteConfig config;
    config.setListener(&forgetter);
    pairs.join();
    // Before, so that rules see all uses of a value at once; after, for what became equal.
    mergeDuplicatesIn(function, rewriter);
    if (failed(applyPatternsGreedily(function, std::move(patterns), config)))
      return failure();
    mergeDuplicatesIn(function, rewriter);
    pairs.split();
    return success();
  }

  void mergeDuplicatesIn(func::FuncOp function, IRRewriter &rewriter) {
    for (Block &block : function.getBody())
      numDuplicates += mergeDuplicates(block, rewriter);
  }
};

} // namespace
