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

    With `precision` a parameter of bf16 or f16 has a state `master.NAME` in f32, which the optimizer updates in its place, with states in
    f32; the parameter is the master rounded. Where it is not, as before the first step, the parameter is
    the master's value. With a dynamic loss scale the backward begins at the state `loss_scale`, and a step with a gradient that is not
    finite is skipped, by the arithmetic of torch.amp.GradScaler.

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

def LowerPrecision : Pass<"aten-lower-precision", "::mlir::ModuleOp"> {
  let summary = "Makes a model of f32 compute its products in bf16 or f16, as torch.autocast does";
  let description = [{
    Form: imported -> imported. The type is `compute` of `precision` in the module's `dist.train`, the section `train:` of a plan
    (docs/training.md), unless the option gives it; without either the pass does nothing. Parameters, inputs and outputs keep their types.

    Each op is of one of torch.autocast's classes (PrecisionPolicy.cpp):
    - products (`linear`, `matmul`, `mm`, `bmm`, `addmm`, `baddbmm`, `tensordot`, `convolution`, attention) take all operands in the short type;
    - ops that lose too much take f32 (`softmax`, `log_softmax`, `layer_norm`, `rms_norm`, `group_norm`, `batch_norm`, `exp`, `log` and
      others like them, `pow`, `softplus`, `sum`, `prod`, `cumsum`, `mean`, `var`, `logsumexp`, vector norms);
    - all others take operands as they are, and the type of the result follows by type promotion. Where an op does not promote, the short
      operands become f32.

    The list is that of autocast on accelerators. `mean`, `var` and `batch_norm` are in it besides, because an export
    takes norms and losses apart, which PyTorch computes in f32 where they are whole. Operands of f64 stay.

    A value is cast once for all that use it, behind its definition. So a weight that is stored in shards is cast
    before it is gathered, and the gather moves half the bytes; the backward uses the same cast.

    A model whose parameters are all of the short type is left as it is: it computes in it already. One that has no parameter of f32
    otherwise is an error.

    Before, with `type=bf16`:
    ```mlir
    func.func @forward(%x: tensor<8x4xf32> {dist.kind = "input", dist.name = "x"},
                       %w: tensor<2x4xf32> {dist.kind = "parameter", dist.name = "w"}) -> tensor<8x2xf32> {
      %y = aten.linear %x, %w : (tensor<8x4xf32>, tensor<2x4xf32>) -> tensor<8x2xf32>
      %r = aten.relu %y : (tensor<8x2xf32>) -> tensor<8x2xf32>
      %s = aten.softmax %r dim 1 : (tensor<8x2xf32>) -> tensor<8x2xf32>
      return %s : tensor<8x2xf32>
    }
    ```
    After, in part:
    ```mlir
    %2 = aten.linear %0, %1 : (tensor<8x4xbf16>, tensor<2x4xbf16>) -> tensor<8x2xbf16>
    %3 = aten.relu %2 : (tensor<8x2xbf16>) -> tensor<8x2xbf16>
    %4 = aten.to_copy %3 to f32 : (tensor<8x2xbf16>) -> tensor<8x2xf32>
    %5 = aten.softmax %4 dim 1 : (tensor<8x2xf32>) -> tensor<8x2xf32>
    ```
  }];
  let options = [
    Option<"function", "function", "std::string", "\"forward\"", "The function that is changed">,
    Option<"type", "type", "std::string", "", "bf16 or f16; default: what the module says">,
  ];
  let statistics = [
    Statistic<"numShort", "products", "Ops that compute in the short type">,
    Statistic<"numWide", "kept", "Ops that got f32 of shorter operands">,
    Statistic<"numCasts", "casts", "Casts that were made">,
  ];
  let dependentDialects = ["::shardc::aten::AtenDialect"];
}

def DelayGradientSums : Pass<"dist-delay-gradient-sums", "::mlir::ModuleOp"> {
  let summary = "Keeps gradients of micro-batches as sums over every axis that they are sums over";
  let description = [{
    Form: placed -> placed. What `aten-train-step` keeps from one micro-batch to the next, the states `gradient.NAME`, are sums over the data
    axes; whether a gradient is a sum over other axes too, such as that of a norm under sequence parallelism, placement decides. Such a
    gradient would be reduced over them for each micro-batch. Where this is so in all functions that add to the state, the state becomes a sum over these axes as well,
    and the step reduces it over all axes at once.

    Before:
    ```mlir
    #mesh = #dist.mesh<["dp" = 2, "tp" = 2]>
    #PR = #dist.layout<#mesh, [P(sum), R]>
    #PP = #dist.layout<#mesh, [P(sum), P(sum)]>
    func.func @accumulate(%g: tensor<4xf32, #PP> {dist.kind = "input", dist.name = "g"},
                          %s: tensor<4xf32, #PR> {dist.initial = 0.0 : f64, dist.kind = "state", dist.name = "gradient.w", dist.unsaved})
        -> (tensor<4xf32, #PR> {dist.kind = "state_mutation", dist.name = "gradient.w"}) {
      %r = dist.redistribute %g : tensor<4xf32, #PP> to tensor<4xf32, #PR>
      %n = aten.add %s, %r : (tensor<4xf32, #PR>, tensor<4xf32, #PR>) -> tensor<4xf32, #PR>
      return %n : tensor<4xf32, #PR>
    }
    ```
    After, in part:
    ```mlir
    %1 = aten.add %arg1, %arg0 : (tensor<4xf32, #Pdp_Ptp>, tensor<4xf32, #Pdp_Ptp>) -> tensor<4xf32, #Pdp_Ptp>
    ```
  }];
  let statistics = [Statistic<"numDelayed", "delayed", "Sums of gradients that are reduced over more axes at once">];
  let dependentDialects = ["::shardc::aten::AtenDialect", "::shardc::dist::DistDialect"];
}

def WidenReductions : Pass<"dist-widen-reductions", "::mlir::func::FuncOp"> {
  let summary = "Sums gradients over ranks in the type that they are updated in";
  let description = [{
    Form: placed -> placed. Placement moves the fewest bytes, so that it sums a gradient of bf16 before the cast to f32, and rounds
    the sum to bf16. `aten-train-step` marks such casts (`dist.widen`) where the plan wants sums in f32; the pass moves the
    reduction behind them. The mark goes.

    Before:
    ```mlir
    #mesh = #dist.mesh<["dp" = 2]>
    #P = #dist.layout<#mesh, [P(sum)]>
    #S = #dist.layout<#mesh, [S(0)]>
    func.func @f(%g: tensor<2x4xbf16, #P>) -> tensor<2x4xf32, #S> {
      %s = dist.redistribute backward %g : tensor<2x4xbf16, #P> to tensor<2x4xbf16, #S>
      %w = aten.to_copy %s to f32 {dist.widen} : (tensor<2x4xbf16, #S>) -> tensor<2x4xf32, #S>
      return %w : tensor<2x4xf32, #S>
    }
    ```
    After, in part:
    ```mlir
    %0 = aten.to_copy %arg0 to f32 : (tensor<2x4xbf16, #Pdp>) -> tensor<2x4xf32, #Pdp>
    %1 = dist.redistribute backward %0 : tensor<2x4xf32, #Pdp> to tensor<2x4xf32, #S0dp>
    ```
  }];
  let statistics = [Statistic<"numWidened", "widened", "Reductions that were moved behind a cast">];
  let dependentDialects = ["::shardc::aten::AtenDialect", "::shardc::dist::DistDialect"];
}

def InitParameters : Pass<"aten-init-parameters", "::mlir::ModuleOp"> {
  let summary = "Makes the function that gives parameters the values that training begins with";
  let description = [{
    Form: placed -> placed. Where `dist.train` has a list `init` (docs/training.md), the pass makes the function `init`, which reads no parameter and
    no input. It returns new values of all parameters and buffers (`parameter_mutation`, `buffer_mutation`), and those that the states of `train_step`
    have before the first run. The first entry of the list counts whose patterns match one of the parameter's names; fans are those
    of whole tensors. Each tensor is made in its own layout, so that a rank makes what it holds.

    Random numbers are a function of the states `random.seed` and `random.offset` and of an element's place in the whole tensor (`aten.random`).
    Each parameter has its own offset behind `random.offset`: the elements of all parameters before it, each count rounded up to a multiple of 4.
    The entry adds the offset behind the last one to `random.offset`, so that later draws, also of a second run, are of other numbers.

    Reported all at once: patterns that match nothing, parameters and buffers without an entry, tensors of one dim that have no
    fans, integers that are to be random.

    Before, with `train={init: [{parameters: w, distribution: normal, std: 0.02}, {parameters: b, distribution: zeros} ]}`:
    ```mlir
    #mesh = #dist.mesh<["tp" = 2]>
    #R = #dist.layout<#mesh, [R]>
    #S = #dist.layout<#mesh, [S(0)]>
    module attributes {dist.mesh = #mesh} {
    func.func @train_step(%w: tensor<6x4xf32, #S> {dist.kind = "parameter", dist.name = "w"},
                          %b: tensor<6xf32, #S> {dist.kind = "parameter", dist.name = "b"},
                          %step: tensor<i64, #R> {dist.kind = "state", dist.name = "train.step", dist.initial = 0.0 : f64}) {
      return
    }
    }
    ```
    After, in part:
    ```mlir
    %1 = aten.add %arg4, %0 : (tensor<i64, #R>, tensor<i64, #R>) -> tensor<i64, #R>
    %2 = aten.random "normal" [6, 4] f32 seed(%arg3) offset(%1) : (tensor<i64, #R>, tensor<i64, #R>) -> tensor<6x4xf32, #S0tp>
    %3 = aten.constant dense<2.000000e-02> : tensor<f32> -> tensor<f32, #R>
    %4 = aten.mul %2, %3 : (tensor<6x4xf32, #S0tp>, tensor<f32, #R>) -> tensor<6x4xf32, #S0tp>
    %6 = aten.expand %5 [6] : (tensor<f32, #R>) -> tensor<6xf32, #S0tp>
    ```
  }];
  let options = [
    Option<"function", "function", "std::string", "\"train_step\"", "The function whose parameters and states are initialised">,
    Option<"train", "train", "std::string", "",
           "The section 'train' of a plan on one line, e.g. {init: [{parameters: \"*\", distribution: normal}]}; default: what the module says">,
  ];
  let statistics = [
    Statistic<"numRandom", "random", "Parameters and buffers that begin with random numbers">,
    Statistic<"numConstant", "constant", "Parameters and buffers that begin with constants, or keep what is loaded">,
    Statistic<"numStates", "states", "States that begin anew">,
  ];
  let dependentDialects = ["::shardc::aten::AtenDialect", "::shardc::dist::DistDialect"];
}

#endif // SHARDC_PASSES_TRAINING_PASSES_TD
