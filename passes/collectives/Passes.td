// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// local -> scheduled: fewer, larger and earlier collectives. Rules B1 to B9 and S1 to S4 are those
// of docs/collectives.md.

#ifndef SHARDC_PASSES_COLLECTIVES_PASSES_TD
#define SHARDC_PASSES_COLLECTIVES_PASSES_TD

include "mlir/Pass/PassBase.td"

def SimplifyCollectives : Pass<"dist-simplify-collectives", "::mlir::ModuleOp"> {
  let summary = "Removes, merges and strengthens collectives by algebra";
  let description = [{
    Form: local -> local. Works on synchronous collectives of one tensor, wherever they come from: run it
    before collectives are bucketed. What is known about ranks: the slice that each takes (`dist.extent`,
    `dist.axis_index` and arithmetic on them are evaluated for every rank), and which values all ranks of
    a group hold alike (replicated arguments, constants, what was reduced or gathered, and what is
    computed from these).

    | rule | before | after |
    |---|---|---|
    | `gather-slices` | own slice of an all-gather | what was gathered |
    | `gathers-of-replicated` | all-gather of a replicated value | copies side by side |
    | `reduces-of-replicated` | sum over n ranks of a replicated value | n times the value |
    | `scattered` | own slices of an all-reduce | reduce-scatter |
    | `narrowed` | all-reduce, then a narrower type | reduce-scatter, cast, all-gather, where cheaper |
    | `sums` | sum of reduces (siblings, micro-batches) | one reduce of the sum |
    | `chains` | all-reduce over one axis, then another | one over both |
    | `casts` | gather then narrow; widen then gather | the narrow type moves |
    | `views` | all-gather of a transposed or reshaped shard | the view of the all-gather |
    | `permutes` | permute of a permute | one permute |
    | `duplicates` | the same collective of the same value twice | once |

    No rule reduces in a narrower type than the program asks for. Two partial input gradients of sibling
    column-parallel layers:

    ```mlir
    %a = dist.all_reduce sum over #tp %dq : tensor<8x64xf32>
    %b = dist.all_reduce sum over #tp %dk : tensor<8x64xf32>
    %g = aten.add %a, %b : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<8x64xf32>
    // becomes
    %s = aten.add %dq, %dk : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<8x64xf32>
    %g = dist.all_reduce sum over #tp %s : tensor<8x64xf32>
    ```
  }];
  let options = [
    Option<"topology", "topology", "std::string", "\"h100-64\"",
           "Cost model that says what is cheaper: a built-in one (h100-8, h100-64, h200-8, cpu-local) or "
           "the file of a target description">,
  ];
  let statistics = [
    Statistic<"numGatherSlices", "gather-slices", "Own slices of all-gathers that were there already">,
    Statistic<"numGatherReplicated", "gathers-of-replicated", "All-gathers of replicated values">,
    Statistic<"numReduceReplicated", "reduces-of-replicated", "Reductions of replicated values">,
    Statistic<"numScattered", "scattered", "All-reduces that became reduce-scatters">,
    Statistic<"numNarrowed", "narrowed", "All-reduces whose way back takes a narrower type">,
    Statistic<"numSums", "sums", "Sums of two reduces that became one reduce">,
    Statistic<"numCasts", "casts", "Casts that traded places with a collective">,
    Statistic<"numViews", "views", "Views that traded places with an all-gather">,
    Statistic<"numPermutes", "permutes", "Permutes that became one with the one before">,
    Statistic<"numChains", "chains", "All-reduces that became one with the one before">,
    Statistic<"numDuplicates", "duplicates", "Tensors that a collective delivered before">,
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::shardc::aten::AtenDialect",
                           "::shardc::dist::DistDialect"];
}

#endif // SHARDC_PASSES_COLLECTIVES_PASSES_TD
