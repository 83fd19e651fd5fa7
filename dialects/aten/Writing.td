// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ops that write at positions, other than sums.
#ifndef SHARDC_DIALECTS_ATEN_WRITING_TD
#define SHARDC_DIALECTS_ATEN_WRITING_TD

include "dialects/aten/AtenBase.td"

/// Values are taken one after the other, in row-major order of the positions: what becomes of an element to which several
/// go is the same on every run. An index that is not in its dim is an error of the run.
class Aten_WritingOp<string mnemonic> : Aten_Op<mnemonic> {
  let results = (outs Aten_Tensor:$result);
  let runsAs = "KernelForm::Scatter";
}

def Aten_ScatterOp : Aten_WritingOp<"scatter"> {
  let summary = "self, with src[..., i, ...] written at [..., index[..., i, ...], ...] along dim";
  let description = [{
    `reduce` says what an element of self and one of src become: "assign" (the element of src; of several, the last one stays),
    "prod", "amax" or "amin". Sums are `aten.scatter_add`. The index may have fewer elements than src and self in each dim; the
    others of src are not used.

    Where self is sharded along `dim`, a rank writes what falls into its part. With `skips`, which local forms have, an index
    that is the size of the dim writes nothing.

    ```mlir
    %y = aten.scatter %x dim 1 at %i of %src reduce "assign" : (tensor<4x8xf32>, tensor<4x2xi64>, tensor<4x2xf32>) -> tensor<4x8xf32>
    ```
  }];
  let arguments = (ins Aten_Tensor:$self, Aten_Dim:$dim, Aten_IndexTensor:$index, Aten_Tensor:$src, StrAttr:$reduce,
                       UnitAttr:$skips);
  let assemblyFormat = [{
    $self `dim` $dim `at` $index `of` $src `reduce` $reduce (`skips` $skips^)? attr-dict `:` functional-type(operands, results)
  }];
}

def Aten_IndexWriteOp : Aten_WritingOp<"index_write"> {
  let summary = "self, with values written to the elements that aten.index reads";
  let description = [{
    This is ATen's index_put without `accumulate`; of several values that are written to one element, the last one stays.
    `indices` and `indices_at` are those of `aten.index`, and `values` broadcasts to what that reads.

    Where self is sharded along an indexed dim, a rank writes what falls into its part. With `skips`, which local forms have,
    an index that is the size of its dim writes nothing.

    ```mlir
    %y = aten.index_write %x dims [1] at %i of %v : (tensor<4x5xf32>, tensor<3xi64>, tensor<4x3xf32>) -> tensor<4x5xf32>
    ```
  }];
  let arguments = (ins Aten_Tensor:$self, Variadic<Aten_IndexTensor>:$indices, Aten_Tensor:$values, Aten_Dims:$indices_at,
                       UnitAttr:$skips);
  let assemblyFormat = [{
    $self `dims` $indices_at `at` $indices `of` $values (`skips` $skips^)? attr-dict `:` functional-type(operands, results)
  }];
}

#endif // SHARDC_DIALECTS_ATEN_WRITING_TD
