// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef SHARDC_PASSES_COLLECTIVES_ATTENTIONPASSES_TD
#define SHARDC_PASSES_COLLECTIVES_ATTENTIONPASSES_TD

include "passes/collectives/MovePasses.td"

def RingAttention : Pass<"dist-ring-attention", "::mlir::ModuleOp"> {
  let summary = "Lets blocks of keys and values go around a ring of ranks instead of gathering them";
  let description = [{
    Form: local -> local, scheduled -> scheduled. TODO
  }];
  let options = !listconcat([
    Option<"mode", "mode", "std::string", "\"auto\"",
           "Which attention becomes a ring: auto (where it does not fit otherwise, or the cost model says that it pays), all that "
           "can, balanced (all, and causal attention with the same work on all ranks where that is possible), or off">,
    Option<"topology", "topology", "std::string", "std::string(::shardc::cost::kDefaultModel)",
           "Cost model: a built-in one (h100-8, h100-64, h200-8, cpu-local) or the file of a target description">,
    Option<"memoryLimit", "memory-limit", "std::string", "", "As for dist-schedule-collectives">,
    Option<"caps", "caps", "std::string", "\"auto\"", "As for dist-schedule-collectives">,
    Option<"bucket", "bucket", "bool", "false", "Whether the schedule may merge collectives">,
    Option<"mixedDtype", "mixed-dtype", "bool", "false", "As for dist-schedule-collectives">,
    Option<"flat", "flat", "bool", "false", "As for dist-schedule-collectives">,
    ListOption<"sizes", "sizes", "std::string", "What symbols are taken to be, as for dist-schedule-collectives">,
    Option<"remarks", "remarks", "bool", "false", "Emits a remark at each attention that becomes a ring">],
    OrderOptions.shared);
  let statistics = [
    Statistic<"numRings", "rings", "Attention that became a ring, forward or backward">,
    Statistic<"numBalanced", "balanced", "Of these, causal ones in which all ranks have the same work">,
    Statistic<"numGathered", "gathered", "Attention that could be a ring and gathers its keys and values">,
    Statistic<"numUnknown", "unknown",
              "Attention over gathered keys that stays as it is because sizes or ranks are not known, or what it makes is used otherwise">,
    Statistic<"numUnaligned", "unaligned",
              "Causal attention that stays as it is because ranks have other queries than keys">,
    Statistic<"mostPairs", "most-pairs",
              "Pairs of a query and a key that it sees, of one head, on the rank that has most, over all that could be a ring">,
    Statistic<"meanPairs", "mean-pairs", "The same, the mean of all ranks">,
    Statistic<"stepBefore", "step-us-before", "The scheduled step with all keys gathered, predicted (mode=auto)">,
    Statistic<"stepAfter", "step-us-after", "The scheduled step with rings, predicted (mode=auto)">,
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::shardc::aten::AtenDialect",
                           "::shardc::dist::DistDialect"];
}

#endif // SHARDC_PASSES_COLLECTIVES_ATTENTIONPASSES_TD
