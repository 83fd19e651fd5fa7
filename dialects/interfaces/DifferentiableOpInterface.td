// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef SHARDC_DIALECTS_INTERFACES_DIFFERENTIABLEOPINTERFACE_TD
#define SHARDC_DIALECTS_INTERFACES_DIFFERENTIABLEOPINTERFACE_TD

include "mlir/IR/OpBase.td"

def DifferentiableOpInterface : OpInterface<"DifferentiableOpInterface"> {
  let cppNamespace = "::shardc";
  let description = [{
    How the cotangents of an op's results become those of its operands (reverse mode). An op attaches an implementation (an
    external model, one file for each family, in passes/gradient/differentiate); an op that has none cannot be on the way from
    a parameter to a loss.
  }];
  let methods = [
    InterfaceMethod<[{
        Whether the derivative by this operand is zero wherever there is one: nothing is computed for the operand, and a
        parameter that the loss depends on through such operands alone has the gradient zero.
      }],
      "bool", "hasZeroDerivative", (ins "unsigned":$operand), [{}], [{ return false; }]>,
    InterfaceMethod<[{
        Whether autograd stops here, as at a detached value: a parameter that is read through this op alone has no gradient,
        which is not zero.
      }],
      "bool", "stopsGradient", (ins), [{}], [{ return false; }]>,
    InterfaceMethod<[{
        Builds the cotangents of the operands that `context` asks for, out of tensor ops on the forward's own values, and
        hands them to it. An operand may get several, which are added, or none, if its derivative is zero
        everywhere. Fails after a diagnostic (`context.refuse()`).
      }],
      "::llvm::LogicalResult", "differentiate",
      (ins "::mlir::OpBuilder &":$builder, "::shardc::GradientContext &":$context)>,
  ];
}

#endif // SHARDC_DIALECTS_INTERFACES_DIFFERENTIABLEOPINTERFACE_TD
