// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pass that has to know what the passes behind it make of its choice.

#ifndef SHARDC_PIPELINE_PASSES_TD
#define SHARDC_PIPELINE_PASSES_TD

include "mlir/Pass/PassBase.td"

def FitMemory : Pass<"dist-fit-memory", "::mlir::ModuleOp"> {
  let summary = "Recomputes and schedules so that planned memory meets a limit";
  let description = [{
    Form: local -> scheduled. The pass runs `dist-recompute` and `dist-schedule-collectives` so that the functions with a
    backward take at most `memory-limit` bytes on every rank once memory is planned. Both go by an estimate; this pass finds
    the limit that they are given for it: it plans copies of the module, compares their arenas, parameters, inputs and outputs
    with the limit, and moves the estimate's limit by the difference, a few times. Where no choice fits, it fails, or with
    `best-effort` it makes the one that takes least, and says so at the module (`dist.least_memory`) for `exec-check-memory`.
    Where there is no backward, and where memory cannot be planned (sizes that are not known), the two passes run once.

    In the example, the program takes 28,672 bytes as it is.

    `pipeline` has the options of `--shardc-compile`, of which those are read that choose between the local and the planned stage.
    The pass is part of the pipelines wherever they have a memory limit.

    Before, with `pipeline={memory-limit=28000}`:
    ```mlir
    module attributes {dist.mesh = #dist.mesh<["r" = 1]>} {
    func.func @f(%x: tensor<8x64xf32> {dist.kind = "input", dist.name = "x"}, %w: tensor<64x64xf32> {dist.kind = "parameter", dist.name = "w"})
        -> (tensor<8x64xf32> {dist.name = "y"}, tensor<8x64xf32> {dist.kind = "gradient", dist.name = "x"}) {
      %h = aten.exp %x : (tensor<8x64xf32>) -> tensor<8x64xf32> loc(#mlp)
      %u = aten.linear %h, %w : (tensor<8x64xf32>, tensor<64x64xf32>) -> tensor<8x64xf32>
      %v = aten.linear %u, %w : (tensor<8x64xf32>, tensor<64x64xf32>) -> tensor<8x64xf32>
      %y = aten.linear %v, %w : (tensor<8x64xf32>, tensor<64x64xf32>) -> tensor<8x64xf32>
      %dv = aten.mm %y, %w : (tensor<8x64xf32>, tensor<64x64xf32>) -> tensor<8x64xf32> loc(#backward)
      %du = aten.mm %dv, %w : (tensor<8x64xf32>, tensor<64x64xf32>) -> tensor<8x64xf32> loc(#backward)
      %dh = aten.mm %du, %w : (tensor<8x64xf32>, tensor<64x64xf32>) -> tensor<8x64xf32> loc(#backward)
      %g = aten.mul %dh, %h : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<8x64xf32> loc(#backward)
      return %y, %g : tensor<8x64xf32>, tensor<8x64xf32>
    }
    }
    #mlp = loc(fused<"mlp">["model.py":3:0])
    #backward = loc("backward of exp")
    ```
    After, in part:
    ```mlir
    %6 = aten.mm %5, %arg1 : (tensor<8x64xf32>, tensor<64x64xf32>) -> tensor<8x64xf32>
    %7 = dist.after %arg0, %6 : tensor<8x64xf32>, tensor<8x64xf32>
    %8 = aten.exp %7 : (tensor<8x64xf32>) -> tensor<8x64xf32>
    %9 = aten.mul %6, %8 : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<8x64xf32>
    ```
  }];
  let options = [
    Option<"pipeline", "pipeline", "std::string", "",
           "Options of the pipeline that the pass is part of; among them the memory limit">,
  ];
  let statistics = [Statistic<"numTrials", "trials", "Copies of the module whose memory was planned">];
}

def Train : Pass<"dist-train", "::mlir::ModuleOp"> {
  let summary = "Makes the training step that a plan asks for, and places it";
  let description = [{
    Form: placed -> placed. Where the module has `dist.train`, which `dist-apply-plan` writes for a plan with a section `train:`, the pass runs
    `aten-train-step`, and then places the backward around the forward: `dist-propagate`, `dist-place`,
    `dist-rewrite-partial-gradients`, `dist-widen-reductions` and `dist-delay-gradient-sums`. It changes no other module.

    Before:
    ```mlir
    #mesh = #dist.mesh<["dp" = 2]>
    #R = #dist.layout<#mesh, [R]>
    #S = #dist.layout<#mesh, [S(0)]>
    module attributes {dist.mesh = #mesh, dist.train = "{loss: loss}"} {
      func.func @forward(%x: tensor<8x4xf32, #S> {dist.kind = "input", dist.name = "x"},
                         %w: tensor<4xf32, #R> {dist.kind = "parameter", dist.name = "w"})
          -> (tensor<f32, #R> {dist.kind = "output", dist.name = "loss"}) {
        %y = aten.mul %x, %w : (tensor<8x4xf32, #S>, tensor<4xf32, #R>) -> tensor<8x4xf32, #S>
        %p = aten.sum %y : (tensor<8x4xf32, #S>) -> tensor<f32, #dist.layout<#mesh, [P(sum)]>>
        %l = dist.redistribute %p : tensor<f32, #dist.layout<#mesh, [P(sum)]>> to tensor<f32, #R>
        return %l : tensor<f32, #R>
      }
    }
    ```
    After, in part:
    ```mlir
    module attributes {dist.mesh = #mesh, dist.training = {... step = "train_step"}} {
      func.func @forward(...)
      func.func @train_step(...)
      %g = dist.redistribute %p : tensor<4xf32, #Pdp> to tensor<4xf32, #R>
    ```
  }];
  let options = [
    Option<"partialGradients", "partial-gradients", "::shardc::PartialGradients", "::shardc::PartialGradients::Replicate",
           "What a gradient becomes of which the model made the value partial (G3)",
           [{::llvm::cl::values(
             clEnumValN(::shardc::PartialGradients::Off, "off", "partial, which is reduced again later"),
             clEnumValN(::shardc::PartialGradients::Replicate, "replicate", "replicated"),
             clEnumValN(::shardc::PartialGradients::Cheapest, "cheapest", "what moves the fewest bytes"))}]>,
  ];
  let statistics = [Statistic<"numPrograms", "programs", "Programs that got a training step">];
}

#endif // SHARDC_PIPELINE_PASSES_TD
