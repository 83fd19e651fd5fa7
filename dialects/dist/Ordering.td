// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Order without data: in a file of its own, since few passes know of it.

#ifndef SHARDC_DIALECTS_DIST_ORDERING_TD
#define SHARDC_DIALECTS_DIST_ORDERING_TD

include "dialects/dist/DistBase.td"
include "dialects/interfaces/OpInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Dist_AfterOp : Dist_Op<"after", [
    Pure, AllTypesMatch<["input", "result"]>, DeclareOpInterfaceMethods<ResultSizesOpInterface>,
    DeclareOpInterfaceMethods<TensorViewOpInterface>,
    DeclareOpInterfaceMethods<KernelOpInterface, ["getKernelForm"]>]> {
  let summary = "A tensor, not before another one exists (local and scheduled stages)";
  let description = [{
    The op is the identity on its first operand, and shares its memory. What reads the result comes after whatever
    computes the second operand, in every schedule and in every kernel: this is how `dist-recompute` keeps what it
    computes again near its use, and apart from the first computation. (Other compilers call this an optimisation
    barrier.)

    ```mlir
    %late = dist.after %x, %g : tensor<8x64xf32>, tensor<8x32xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$input, AnyRankedTensor:$other);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$input `,` $other attr-dict `:` type($input) `,` type($other)";
}

#endif // SHARDC_DIALECTS_DIST_ORDERING_TD
