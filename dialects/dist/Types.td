// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef SHARDC_DIALECTS_DIST_TYPES_TD
#define SHARDC_DIALECTS_DIST_TYPES_TD

include "dialects/dist/DistBase.td"

def Dist_FutureType : Dist_Type<"Future", "future"> {
  let summary = "Stands for a tensor that a collective in flight will deliver";
  let description = [{
    A future is the result of an asynchronous collective. A program can only wait for it
    (`dist.wait`), return it or pass it on, so that a use of the tensor before its wait is a type error.

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
