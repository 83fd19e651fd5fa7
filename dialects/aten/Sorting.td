// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ops that sort.
#ifndef SHARDC_DIALECTS_ATEN_SORTING_TD
#define SHARDC_DIALECTS_ATEN_SORTING_TD

include "dialects/aten/AtenBase.td"

def Aten_SortOp : Aten_Op<"sort"> {
  let summary = "Sorts along a dim, and says where the elements were";
  let description = [{
    Equal elements keep their order, and NaN is larger than all other numbers. With `count`, only that many first elements are
    kept: ATen's topk.

    Other dims may be sharded. Along a sharded dim, `count` elements of each rank are gathered and sorted again. Without
    `count`, the dim may be sharded where all others are 1: ranks find the borders of the shards of the result among the
    values, and send each element once, to the rank that it is on in the end (docs/localize.md). Otherwise it must be
    whole.

    ```mlir
    %v, %i = aten.sort %x dim 1 descending count 2 : (tensor<4x8xf32>) -> (tensor<4x2xf32>, tensor<4x2xi64>)
    ```
  }];
  let arguments = (ins Aten_Tensor:$self, Aten_Dim:$dim, UnitAttr:$descending,
                       OptionalAttr<ConfinedAttr<I64Attr, [IntNonNegative]>>:$count);
  let results = (outs Aten_Tensor:$values, Aten_Tensor:$indices);
  let assemblyFormat = [{
    $self `dim` $dim (`descending` $descending^)? (`count` $count^)? attr-dict `:` functional-type(operands, results)
  }];
  let runsAs = "KernelForm::Scatter";
}

#endif // SHARDC_DIALECTS_ATEN_SORTING_TD
