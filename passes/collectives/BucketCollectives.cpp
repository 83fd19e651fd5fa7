// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/HalfAverages.h"
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
    if (scaleHalf)
      for (auto function : getOperation().getOps<func::FuncOp>())
        numScaled += scaleHalfAverages(function);
    collectives::OptimizeOptions options;
    options.schedule = false;
    options.flat = flat;
    options.buckets.mixedDtype = mixedDtype;
    options.gathers = gatherOrder;
    options.reduces = reduceOrder;
    auto count = [&](func::FuncOp function, const collectives::OptimizeResult &result) {
      numBuckets += result.buckets.size();
      for (const collectives::BucketRecord &bucket : result.buckets)
        numMembers += bucket.members.size();
      numAlone += result.alone.size();
      peakBefore += result.before.peakHoldBytes;
      peakAfter += result.after.peakHoldBytes;
    };
    if (failed(optimizeModule(getOperation(), {topology, caps, memoryLimit, sizes}, options,
                              {PlanForm::Local, remarks, bestEffort}, count)))
      signalPassFailure();
  }
};

} // namespace
