// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/OptimizeFunction.h"
#include "passes/collectives/Passes.h"

namespace shardc {
#define GEN_PASS_DEF_BUCKETCOLLECTIVES
#include "passes/collectives/Passes.h.inc"
} // namespace shardc

using namespace mlir;
using namespace shardc;

namespace {

struct BucketCollectives : shardc::impl::BucketCollectivesBase<BucketCollectives> {
  using BucketCollectivesBase::BucketCollectivesBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    collectives::OptimizeOptions options;
    std::unique_ptr<cost::CostModel> model;
    if (failed(checkUnspecialized(module)) ||
        failed(readOptions(module, {topology, caps, memoryLimit}, options, model)))
      return signalPassFailure();
    options.schedule = false;
    options.flat = flat;
    options.buckets.mixedDtype = mixedDtype;
    options.gathers = gatherOrder;
    options.reduces = reduceOrder;
    for (auto function : module.getOps<func::FuncOp>()) {
      if (function.isExternal())
        continue;
      FailureOr<collectives::OptimizeResult> result =
          optimizeFunction(function, *model, options, {PlanForm::Local, remarks, bestEffort});
      if (failed(result))
        return signalPassFailure();
      numBuckets += result->buckets.size();
      for (const collectives::BucketRecord &bucket : result->buckets)
        numMembers += bucket.members.size();
      numAlone += result->alone.size();
      peakBefore += result->before.peakHoldBytes;
      peakAfter += result->after.peakHoldBytes;
    }
  }
};

} // namespace
