// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef SHARDC_DIALECTS_DIST_TYPES_TD
#define SHARDC_DIALECTS_DIST_TYPES_TD

include "dialects/dist/DistBase.td"

def Dist_FutureType : Dist_Type<"Future", "future"> {
  let summary = "A tensor that a collective in flight will deliver";
  let description = [{
    The result of an asynchronous collective. Nothing can be done with it but wait for it
    (`dist.wait`), return it or pass it on: a use of the value before its wait does not type-check.

    ```mlir
    !dist.future<tensor<4x16xf32>>
    ```
  }];
  let parameters = (ins "::mlir::RankedTensorType":$tensorType);
  let assemblyFormat = "`<` $tensorType `>`";
  let builders = [TypeBuilderWithInferredContext<(ins "::mlir::RankedTensorType":$tensorType), [{
    return $_get(tensorType.getContext(), tensorType);
  }]>];
}

#endif // SHARDC_DIALECTS_DIST_TYPES_TD
