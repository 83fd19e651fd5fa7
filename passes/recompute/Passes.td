// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the backward keeps of the forward, and what it computes again.

#ifndef SHARDC_PASSES_RECOMPUTE_PASSES_TD
#define SHARDC_PASSES_RECOMPUTE_PASSES_TD

include "mlir/Pass/PassBase.td"

def Recompute : Pass<"dist-recompute", "::mlir::ModuleOp"> {
  let summary = "Computes values of the forward again in the backward, instead of keeping them";
  let description = [{
    Form: local -> local, after the last pass that merges equal ops and before collectives are scheduled. The pass works on functions with a
    backward behind their forward (`aten-differentiate`), and leaves others alone. It clones ops of the forward to where the
    backward first needs them. A clone reads what is kept anyway, through `dist.after`, so that no later pass computes it
    earlier; operands that are gone by then are cloned with it, or are kept where they take at most an eighth of what is saved.

    What is computed again:

    - what the forward of the modules makes that `modules`, or `recompute` of the plan, names (activation checkpointing): all
      but their inputs, and what other modules read of them. A collective of such a module runs again too.
    - with `reshard-after-forward=true`, weights that were gathered: the backward gathers them again.
    - under a memory limit, what saves most bytes * steps for each microsecond among that which holds memory at the peak, until
      the peak is below the limit: first casts and elementwise ops, last products. Weights are among these unless
      `reshard-after-forward=false`.

    Without a limit nothing else is computed again: views share memory, and masks and constants are made in each
    kernel that reads them, so what costs no time takes no memory either. Sizes and times are those of the rank that
    has most to do. Ops with effects, and those that read an argument that the forward writes over, are
    never computed again; parameters that a training step updates behind the backward are read again. Where the limit cannot be met, the program gets as near to it as the pass knows.

    Before, with `modules=mlp`:
    ```mlir
    func.func @f(%x: tensor<8x64xf32>, %w: tensor<64x64xf32>, %u: tensor<64x64xf32>) -> (tensor<8x64xf32>, tensor<64x64xf32>) {
      %h = aten.linear %x, %w : (tensor<8x64xf32>, tensor<64x64xf32>) -> tensor<8x64xf32> loc(#mlp)
      %e = aten.exp %h : (tensor<8x64xf32>) -> tensor<8x64xf32> loc(#mlp)
      %y = aten.linear %e, %u : (tensor<8x64xf32>, tensor<64x64xf32>) -> tensor<8x64xf32> loc(#mlp)
      %g = aten.mm %y, %u : (tensor<8x64xf32>, tensor<64x64xf32>) -> tensor<8x64xf32> loc(#backward)
      %dh = aten.mul %g, %e : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<8x64xf32> loc(#backward)
      %dw = aten.tensordot %dh, %x dims [0] [0] : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<64x64xf32> loc(#backward)
      return %y, %dw : tensor<8x64xf32>, tensor<64x64xf32>
    }
    #mlp = loc(fused<"mlp">["model.py":3:0])
    #backward = loc("backward of exp")
    ```
    After, in part:
    ```mlir
    %e = aten.exp ...
    %y = aten.linear %e, %arg2 : ...
    %g = aten.mm %y, %arg2 : (tensor<8x64xf32>, tensor<64x64xf32>) -> tensor<8x64xf32>
    %x = dist.after %arg0, %g : tensor<8x64xf32>, tensor<8x64xf32>
    %w = dist.after %arg1, %g : tensor<64x64xf32>, tensor<8x64xf32>
    %h = aten.linear %x, %w : (tensor<8x64xf32>, tensor<64x64xf32>) -> tensor<8x64xf32>
    %again = aten.exp %h : (tensor<8x64xf32>) -> tensor<8x64xf32>
    %dh = aten.mul %g, %again : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<8x64xf32>
    ```

    `dist.recomputed` of the function lists the choices, with bytes and time, and the estimated peak before and after. In
    `shardc compile`, planned memory decides under a limit: the pass runs on copies of the module until their planned memory fits.
  }];
  let options = [
    ListOption<"modules", "modules", "::shardc::TextOption",
               "Patterns of paths of modules whose forward the backward computes again, beside those of the plan">,
    Option<"reshardAfterForward", "reshard-after-forward", "::shardc::ReshardAfterForward",
           "::shardc::ReshardAfterForward::Auto", "What the backward does with weights that the forward has gathered",
      [{::llvm::cl::values(
          clEnumValN(::shardc::ReshardAfterForward::Auto, "auto", "as the plan says; else keep them, or gather those again that a memory limit asks for"),
          clEnumValN(::shardc::ReshardAfterForward::True, "true", "gather them again"),
          clEnumValN(::shardc::ReshardAfterForward::False, "false", "keep them"))}]>,
    Option<"memoryLimit", "memory-limit", "std::string", "",
           "Bytes that one rank may hold at once, e.g. 2GiB, by the estimate of this pass; without: no limit">,
    Option<"topology", "topology", "std::string", "std::string(::shardc::cost::kDefaultModel)",
           "Cost model: a built-in one (h100-8, h100-64, h200-8, cpu-local, sim-v1) or the file of a target description">,
    ListOption<"sizes", "sizes", "std::string",
               "What symbols are taken to be (others: what the module notes, else 128, or the nearest in their range)">,
    Option<"remarks", "remarks", "bool", "true", "Emits a remark for each module and op that is computed again">,
  ];
  let statistics = [
    Statistic<"numOps", "ops", "Ops that the backward computes again">,
    Statistic<"numModules", "modules", "Modules whose forward the backward computes again">,
    Statistic<"numGathers", "gathers", "Weights that the backward gathers again">,
    Statistic<"addedUs", "added-us", "Time of what is computed again, predicted">,
    Statistic<"peakBefore", "peak-bytes-before", "Peak memory of a rank before, estimated">,
    Statistic<"peakAfter", "peak-bytes-after", "Peak memory of a rank after, estimated">,
  ];
  let dependentDialects = ["::shardc::dist::DistDialect"];
}

#endif // SHARDC_PASSES_RECOMPUTE_PASSES_TD
