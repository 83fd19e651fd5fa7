// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ops that make tensors out of nothing, or out of sizes.
#ifndef SHARDC_DIALECTS_ATEN_CREATION_TD
#define SHARDC_DIALECTS_ATEN_CREATION_TD

include "dialects/aten/AtenBase.td"

def Aten_ConstantOp : Aten_Op<"constant", [ConstantLike]> {
  let summary = "A tensor of known elements";
  let description = [{
    Small tensors and splats only: parameters, buffers and big constants are arguments of the function.
    The value's type has no encoding; the result's may have one, and is printed then:

    ```mlir
    %c = aten.constant dense<0.5> : tensor<f32>
    %d = aten.constant dense<true> : tensor<4xi1> -> tensor<4xi1, #layout>
    ```
  }];
  let arguments = (ins ElementsAttr:$value);
  let results = (outs Aten_Tensor:$result);
  let assemblyFormat = "attr-dict custom<ConstantValue>($value, type($result))";
  let hasFolder = 1;
}

#endif // SHARDC_DIALECTS_ATEN_CREATION_TD
