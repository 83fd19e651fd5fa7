// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Gradients: the backward of a function.

#ifndef SHARDC_PASSES_GRADIENT_PASSES_TD
#define SHARDC_PASSES_GRADIENT_PASSES_TD

include "mlir/Pass/PassBase.td"

def Differentiate : Pass<"aten-differentiate", "::mlir::ModuleOp"> {
  let summary = "Makes a function that computes the gradients of a loss, or of given cotangents";
  let description = [{
    Form: imported -> imported, or placed -> half-placed. The pass copies a function, its forward, and appends the backward:
    for each op on a way from what is differentiated to the loss, last op first, the ops that make the cotangents of its
    operands from those of its results (DifferentiableOpInterface). The backward reads the forward's own values.

    What is differentiated are all floating-point parameters, or what `wrt` names: parameters, buffers and inputs. Each gets a
    result of kind "gradient" with its name, shape and element type. One that the loss does not depend on gets none, and a
    remark says so; neither does one that is only read detached, compared, or as integers. One that the loss depends on through
    ops alone whose derivative is zero everywhere (`floor`, `sign`) has the gradient zero, as PyTorch's autograd has it. A parameter with several names, or that several ops use, has one gradient: cotangents are added as the
    backward meets them, the last use first. An output that is a parameter as it is has the gradient's name; it is
    called `output_NAME` in this function. The gradients of several losses are those of their sum. With `cotangents`, the
    function gets an argument for each of these outputs instead, its cotangent (a vector-Jacobian product).

    In a placed function every value of the forward keeps its layout, and the values of the backward have none: `dist-propagate`
    and `dist-place` place them around the forward. A cotangent has the sharded dims of the value that it
    belongs to as a wish (`dist.sharding`). The cotangent of a redistribute is a `dist.redistribute backward` to
    the layout of its operand, and each gradient is redistributed to the layout of its parameter.

    The ops of the backward are at the places of their forward's ops in the model, marked as backward.

    Reported all at once, with module and line: ops that have no derivative, a loss that is no 0-dim tensor of floats, names
    that do not exist, and values on the way to the loss that are written back to a buffer or input.

    Before, with `loss=loss`:
    ```mlir
    func.func @forward(%x: tensor<8x4xf32> {dist.kind = "input", dist.name = "x"},
                       %w: tensor<2x4xf32> {dist.kind = "parameter", dist.name = "w"})
        -> (tensor<f32> {dist.kind = "output", dist.name = "loss"}) {
      %y = aten.linear %x, %w : (tensor<8x4xf32>, tensor<2x4xf32>) -> tensor<8x2xf32>
      %l = aten.sum %y : (tensor<8x2xf32>) -> tensor<f32>
      return %l : tensor<f32>
    }
    ```
    After, in part:
    ```mlir
    func.func @gradients(...) -> (tensor<f32> {dist.kind = "output", dist.name = "loss"}, tensor<2x4xf32> {dist.kind = "gradient", dist.name = "w"}) {
      %y = aten.linear %x, %w : (tensor<8x4xf32>, tensor<2x4xf32>) -> tensor<8x2xf32>
      %l = aten.sum %y : (tensor<8x2xf32>) -> tensor<f32>
      %gl = aten.constant dense<1.000000e+00> : tensor<f32>
      %gy = aten.expand %gl [8, 2] : (tensor<f32>) -> tensor<8x2xf32>
      %gw = aten.tensordot %gy, %x dims [0] [0] : (tensor<8x2xf32>, tensor<8x4xf32>) -> tensor<2x4xf32>
      return %l, %gw : tensor<f32>, tensor<2x4xf32>
    }
    ```
  }];
  let options = [
    Option<"function", "function", "std::string", "\"forward\"", "The function that is differentiated">,
    Option<"into", "into", "std::string", "\"gradients\"",
           "Name of the function that is made; that of the forward: the forward itself gets the backward">,
    ListOption<"losses", "loss", "std::string",
               "Outputs, by name or number, whose sum is differentiated; without any, and without cotangents, all outputs of kind loss">,
    ListOption<"cotangents", "cotangents", "std::string",
               "Outputs, by name or number, whose cotangents become arguments of the function">,
    ListOption<"wrt", "wrt", "std::string",
               "Names of arguments, with * and ? as wildcards (default: all floating-point parameters)">,
    Option<"outputs", "outputs", "bool", "true",
           "Keep the outputs of the forward. What is written back to buffers and inputs is kept in any case">,
  ];
  let statistics = [
    Statistic<"numDifferentiated", "differentiated", "Ops that were differentiated">,
    Statistic<"numGradients", "gradients", "Gradients that the function returns">,
    Statistic<"numUnreached", "unreached", "Arguments that the loss does not depend on">,
  ];
  let dependentDialects = ["::shardc::aten::AtenDialect", "::shardc::dist::DistDialect"];
}

#endif // SHARDC_PASSES_GRADIENT_PASSES_TD
