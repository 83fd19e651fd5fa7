// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/Passes.h"

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
  explicit Forgetter(SimplifyContext &around) : around(around) {}
  void notifyOperationErased(Operation *op) override {
    around.ranks.forget(op);
    around.uniformity.forget(op);
  }
  SimplifyContext &around;
};

struct SimplifyCollectives : shardc::impl::SimplifyCollectivesBase<SimplifyCollectives> {
  using SimplifyCollectivesBase::SimplifyCollectivesBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    std::string errors;
    std::unique_ptr<cost::CostModel> model = cost::loadModel(topology, errors);
    if (!model) {
      module.emitError() << "topology: " << errors;
      return signalPassFailure();
    }
    for (auto function : module.getOps<func::FuncOp>())
      if (!function.isExternal() && failed(simplify(function, *model)))
        return signalPassFailure();
  }

  LogicalResult simplify(func::FuncOp function, const cost::CostModel &model) {
    // Without known ranks there are still groups with names.
    RankValues ranks(findMesh(function).value_or(Mesh()), &getContext());
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
    Forgetter forgetter(around);
    GreedyRewriteConfig config;
    config.setListener(&forgetter);
    // Before, so that rules see all uses of a value at once; after, for what became equal.
    mergeDuplicatesIn(function);
    if (failed(applyPatternsGreedily(function, std::move(patterns), config)))
      return failure();
    mergeDuplicatesIn(function);
    return success();
  }

  void mergeDuplicatesIn(func::FuncOp function) {
    for (Block &block : function.getBody())
      numDuplicates += mergeDuplicates(block);
  }
};

} // namespace
