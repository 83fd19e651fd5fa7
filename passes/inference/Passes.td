// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From training mode to inference mode.

#ifndef SHARDC_PASSES_INFERENCE_PASSES_TD
#define SHARDC_PASSES_INFERENCE_PASSES_TD

include "mlir/Pass/PassBase.td"

def ToInference : Pass<"aten-to-inference", "::mlir::ModuleOp"> {
  let summary = "Makes the inference form of a function that was exported in training mode";
  let description = [{
    Form: imported -> imported, or placed -> placed (half-placed where there is attention that has dropped weights).

    What `module.eval()` would have changed in the exported program:

    - Dropout and attention drop nothing. Attention that drops weights is composed of products and a softmax; one
      `aten.scaled_dot_product_attention` takes its place again. The importer has marked its operands and its result by `aten.alias` ops
      with `aten.training_attention`. In a placed function the op gets no layout, and its result is redistributed to the one that it had.
    - So do the products that PyTorch's decompositions make of a dropout: `x * (kept / q)` and `(kept * x) * (1 / q)`, where `kept` is true
      with the probability `q`. A remark names the first of the random numbers that are drawn for other ends.
    - A batch norm gets its running statistics in place of those of the batch, as they are when the function begins. The
      importer has marked the ops of each norm with `aten.training_norm`. A norm without running statistics (also an instance
      norm) keeps those of the batch, as in PyTorch.
    - Nothing is written back to parameters, buffers and states: results of the kinds "parameter_mutation",
      "buffer_mutation" and "state_mutation" go, and with them what computed them alone. What is written to inputs stays, and so does the new `random.offset` of a
      function that draws random numbers for other ends.

    What a function computes itself of a buffer that it has updated, outside of norms, is as in training: the counter
    `num_batches_tracked` of a batch norm is such a buffer.

    Arguments stay as they are, those that nothing reads any more too, so that the entries of a program have the same.

    The marks are those of an imported function: the pass comes before passes that simplify it. Reported all at once, with
    module and line: a norm without one of its marked ops.

    Before:
    ```mlir
    func.func @forward(%x: tensor<8x4xf32> {dist.kind = "input", dist.name = "x"},
                       %mean: tensor<4xf32> {dist.kind = "buffer", dist.name = "mean"},
                       %variance: tensor<4xf32> {dist.kind = "buffer", dist.name = "variance"})
        -> (tensor<4xf32> {dist.kind = "buffer_mutation", dist.name = "mean"},
            tensor<4xf32> {dist.kind = "buffer_mutation", dist.name = "variance"},
            tensor<8x4xf32> {dist.kind = "output", dist.name = "y"}) {
      %m = aten.mean %x dim [0] : (tensor<8x4xf32>) -> tensor<4xf32>
      %v = aten.var %x dim [0] {correction = 0.000000e+00 : f64} : (tensor<8x4xf32>) -> tensor<4xf32>
      %half = aten.constant dense<5.000000e-01> : tensor<f32>
      %m0 = aten.alias %mean {aten.training_norm = distinct[0]<>, aten.training_part = "old_mean", detached} : (tensor<4xf32>) -> tensor<4xf32>
      %ms = aten.add %m0, %m : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      %mh = aten.mul %ms, %half : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
      %m1 = aten.alias %mh {aten.training_norm = distinct[0]<>, aten.training_part = "new_mean", detached} : (tensor<4xf32>) -> tensor<4xf32>
      %v0 = aten.alias %variance {aten.training_norm = distinct[0]<>, aten.training_part = "old_variance", detached} : (tensor<4xf32>) -> tensor<4xf32>
      %vs = aten.add %v0, %v : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      %vh = aten.mul %vs, %half : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
      %v1 = aten.alias %vh {aten.training_norm = distinct[0]<>, aten.training_part = "new_variance", detached} : (tensor<4xf32>) -> tensor<4xf32>
      %y = aten.batch_norm %x mean(%m) variance(%v) eps 1.000000e-05 {aten.training_norm = distinct[0]<>} : (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
      return %m1, %v1, %y : tensor<4xf32>, tensor<4xf32>, tensor<8x4xf32>
    }
    ```
    After:
    ```mlir
    func.func @forward(%x: tensor<8x4xf32> {dist.kind = "input", dist.name = "x"},
                       %mean: tensor<4xf32> {dist.kind = "buffer", dist.name = "mean"},
                       %variance: tensor<4xf32> {dist.kind = "buffer", dist.name = "variance"})
        -> (tensor<8x4xf32> {dist.kind = "output", dist.name = "y"}) {
      %y = aten.batch_norm %x mean(%mean) variance(%variance) eps 1.000000e-05 : (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
      return %y : tensor<8x4xf32>
    }
    ```
  }];
  let options = [
    Option<"function", "function", "std::string", "\"forward\"", "The function in training mode">,
    Option<"into", "into", "std::string", "\"\"",
           "Name of the function that is made, beside the one in training mode; without it that one is changed itself">,
  ];
  let statistics = [
    Statistic<"numDropouts", "dropouts", "Dropouts that were removed">,
    Statistic<"numAttentions", "attentions", "Compositions that became one op of attention again">,
    Statistic<"numNorms", "norms", "Batch norms that got their running statistics">,
    Statistic<"numMutations", "mutations", "Results that are not written back any more">,
  ];
  let dependentDialects = ["::shardc::aten::AtenDialect"];
}

#endif // SHARDC_PASSES_INFERENCE_PASSES_TD
