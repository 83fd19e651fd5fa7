// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The training step.

#ifndef SHARDC_PASSES_TRAINING_PASSES_TD
#define SHARDC_PASSES_TRAINING_PASSES_TD

include "mlir/Pass/PassBase.td"

def TrainStep : Pass<"aten-train-step", "::mlir::ModuleOp"> {
  let summary = "Makes the training step of a function: its gradients, and what they do to the parameters";
  let description = [{
    Form: placed -> half-placed. The pass does what the module's `dist.train` says, which is the section `train:` of a plan on one
    line (docs/training.md); without it, or with an option of its own, it takes that instead. It copies the function, its forward,
    appends the backward of the loss as `aten-differentiate` does, and behind it the update of each parameter by an optimizer.

    The function itself is brought into its inference form (`aten-to-inference`): without dropout, with running statistics, and with
    nothing that is written back.

    The function `train_step` takes the forward's arguments, the learning rate as an input, and the optimizer's state as
    arguments of kind `state`. It returns the forward's outputs, and the new values of parameters (`parameter_mutation`) and
    states (`state_mutation`). The state of a parameter has the parameter's layout; with `zero` the data axes shard
    it besides, each on a dim that it divides, within the shards of other axes. A gradient is redistributed to the layout of
    the state, which is one reduction (or reduce-scatter) of what the backward left partial; the update is computed there, and the new
    value is redistributed to the layout of the parameter. All values of the update have layouts; those of
    the backward have none and are placed around them.

    With `micro_batches` above 1 there is a second function, `accumulate`, which adds the gradients to states of kind
    `gradient.NAME`. They are partial over the data axes (with `zero` of 2 and above sharded), so that all micro-batches
    share one reduction, which is in `train_step`.

    With `clip_norm` the step returns `grad_norm`, the 2-norm of all gradients, in which each element counts once whatever the layouts
    are. With `non_finite` of `skip` or `stop` it returns `skipped`: whether a gradient or the loss was not finite, in which case all
    parameters and states stay as they were.

    Reported all at once, with module and line: what `aten-differentiate` reports, patterns that match no parameter, names
    of the model that the step needs itself, and values of `dist.train` that make no sense.

    Before, with `train={loss: loss, optimizer: sgd}`:
    ```mlir
    #mesh = #dist.mesh<["dp" = 2]>
    #R = #dist.layout<#mesh, [R]>
    #S = #dist.layout<#mesh, [S(0)]>
    #P = #dist.layout<#mesh, [P(sum)]>
    module attributes {dist.mesh = #mesh} {
    func.func @forward(%x: tensor<8x4xf32, #S> {dist.kind = "input", dist.name = "x"},
                       %w: tensor<2x4xf32, #R> {dist.kind = "parameter", dist.name = "w"})
        -> (tensor<f32, #R> {dist.kind = "output", dist.name = "loss"}) {
      %y = aten.linear %x, %w : (tensor<8x4xf32, #S>, tensor<2x4xf32, #R>) -> tensor<8x2xf32, #S>
      %l = aten.sum %y : (tensor<8x2xf32, #S>) -> tensor<f32, #P>
      %r = dist.redistribute %l : tensor<f32, #P> to tensor<f32, #R>
      return %r : tensor<f32, #R>
    }
    }
    ```
    After, in part:
    ```mlir
    %gw = aten.tensordot %gy, %x dims [0] [0] ... : (tensor<8x2xf32>, tensor<8x4xf32, #S0dp>) -> tensor<2x4xf32>
    %g = dist.redistribute %gw : tensor<2x4xf32> to tensor<2x4xf32, #R>
    %rate = aten.to_copy %learning_rate to f32 : (tensor<f64, #R>) -> tensor<f32, #R>
    %u = aten.mul %g, %rate : (tensor<2x4xf32, #R>, tensor<f32, #R>) -> tensor<2x4xf32, #R>
    %new = aten.sub %w, %u : (tensor<2x4xf32, #R>, tensor<2x4xf32, #R>) -> tensor<2x4xf32, #R>
    ```
  }];
  let options = [
    Option<"function", "function", "std::string", "\"forward\"", "The function that is trained">,
    Option<"train", "train", "std::string", "",
           "The section 'train' of a plan on one line, e.g. {optimizer: adamw, zero: 1}; default: what the module says">,
  ];
  let statistics = [
    Statistic<"numTrained", "trained", "Parameters that the step updates">,
    Statistic<"numStates", "states", "States that the step keeps">,
    Statistic<"numUnreached", "unreached", "Parameters that the loss does not depend on">,
  ];
  let dependentDialects = ["::shardc::aten::AtenDialect", "::shardc::dist::DistDialect"];
}

#endif // SHARDC_PASSES_TRAINING_PASSES_TD
