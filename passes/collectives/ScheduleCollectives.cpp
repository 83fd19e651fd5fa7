// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/HalfAverages.h"
#include "passes/collectives/OptimizeFunction.h"
#include "passes/collectives/Passes.h"

namespace shardc {
#define GEN_PASS_DEF_SCHEDULECOLLECTIVES
#include "passes/collectives/Passes.h.inc"
} // namespace shardc

using namespace mlir;
using namespace shardc;

namespace {

struct ScheduleCollectives : shardc::impl::ScheduleCollectivesBase<ScheduleCollectives> {
  using ScheduleCollectivesBase::ScheduleCollectivesBase;

  void runOnOperation() override {
    if (scaleHalf)
      for (auto function : getOperation().getOps<func::FuncOp>())
        numScaled += scaleHalfAverages(function);
    collectives::OptimizeOptions options;
    options.bucket = bucket;
    options.flat = flat;
    options.schedule = reorder;
    options.policy = policy;
    options.robust = robust;
    options.ahead = kCollectivesAhead;
    options.buckets.mixedDtype = mixedDtype;
    auto count = [&](func::FuncOp function, const collectives::OptimizeResult &result) {
      numBuckets += result.buckets.size();
      for (const collectives::BucketRecord &bucket : result.buckets)
        numMembers += bucket.members.size();
      numStarts += llvm::count_if(function.getOps<dist::CollectiveOpInterface>(),
                                  [](auto op) { return op.isAsync(); });
      exposedBefore += static_cast<uint64_t>(result.before.totalExposedUs() + 0.5);
      exposedAfter += static_cast<uint64_t>(result.after.totalExposedUs() + 0.5);
      peakBefore += result.before.peakHoldBytes;
      peakAfter += result.after.peakHoldBytes;
    };
    if (failed(optimizeModule(getOperation(), {topology, caps, memoryLimit, sizes}, options,
                              {PlanForm::Scheduled, remarks, bestEffort}, count)))
      signalPassFailure();
  }
};

} // namespace
