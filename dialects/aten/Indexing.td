// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ops that choose elements by position.
#ifndef SHARDC_DIALECTS_ATEN_INDEXING_TD
#define SHARDC_DIALECTS_ATEN_INDEXING_TD

include "dialects/aten/AtenBase.td"

/// Operands are read in memory, at positions that a kernel computes and checks. Sharding rules are written out
/// (RulesIndexing.cpp).
class Aten_IndexingOp<string mnemonic> : Aten_Op<mnemonic> {
  let results = (outs Aten_Tensor:$result);
  let runsAs = "KernelForm::ComputedPositions";
}

def Aten_EmbeddingOp : Aten_IndexingOp<"embedding"> {
  let summary = "Rows of weight, one for each index";
  let description = [{
    `padding_idx` names a row that gets no gradient; the forward does not use it. With sharded rows,
    a rank looks up those that it has and takes zero for the others, so that the result is partial by sum.
  }];
  let arguments = (ins Aten_Tensor:$weight, Aten_IndexTensor:$indices,
                       DefaultValuedAttr<I64Attr, "-1">:$padding_idx);
  let assemblyFormat = "$weight `at` $indices attr-dict `:` functional-type(operands, results)";
}

def Aten_GatherOp : Aten_IndexingOp<"gather"> {
  let summary = "result[..., i, ...] = self[..., index[..., i, ...], ...] along dim";
  let arguments = (ins Aten_Tensor:$self, Aten_Dim:$dim, Aten_IndexTensor:$index);
  let assemblyFormat = "$self `dim` $dim `at` $index attr-dict `:` functional-type(operands, results)";
}

def Aten_IndexSelectOp : Aten_IndexingOp<"index_select"> {
  let summary = "The slices of a dim at the positions of a vector";
  let arguments = (ins Aten_Tensor:$self, Aten_Dim:$dim, Aten_IndexTensor:$index);
  let assemblyFormat = "$self `dim` $dim `at` $index attr-dict `:` functional-type(operands, results)";
}

def Aten_IndexOp : Aten_IndexingOp<"index"> {
  let summary = "Indexes several dims by tensors that are broadcast together";
  let description = [{
    As in NumPy: the broadcast shape of the indices replaces the indexed dims if these are adjacent, else
    it comes first. `indices_at` lists the indexed dims, one for each operand of `indices`; the others
    are kept (None in ATen's list). Indices of bools depend on data and are not supported.

    ```mlir
    %y = aten.index %x[:, %i, %j] : (tensor<4x5x6xf32>, tensor<2x1xi64>, tensor<3xi64>) -> tensor<4x2x3xf32>
    ```
  }];
  let arguments = (ins Aten_Tensor:$self, Variadic<Aten_IndexTensor>:$indices, Aten_Dims:$indices_at);
  let assemblyFormat = [{
    $self `` custom<IndexedDims>($indices, $indices_at) attr-dict `:` functional-type(operands, results)
  }];
}

//===--------------------------------------------------------------------------------------------===//
// Writing at positions
//===--------------------------------------------------------------------------------------------===//

/// Elements are added one after the other, in row-major order of their positions' tensor: what several are added to is the
/// same on every run.
class Aten_ScatterOp<string mnemonic> : Aten_Op<mnemonic> {
  let results = (outs Aten_Tensor:$result);
  let runsAs = "KernelForm::Scatter";
}

def Aten_ScatterAddOp : Aten_ScatterOp<"scatter_add"> {
  let summary = "self, with src[..., i, ...] added at [..., index[..., i, ...], ...] along dim";
  let description = [{
    This is the adjoint of `aten.gather`. The index may have fewer elements than src and self in each dim; the others of src
    are not used. An index that is not in the dim of self is an error of the run.

    Where self is sharded along `dim`, a rank adds what falls into its part. Where src is, its result is a partial sum, and
    self counts once.

    ```mlir
    %y = aten.scatter_add %x dim 1 at %i of %src : (tensor<4x8xf32>, tensor<4x2xi64>, tensor<4x2xf32>) -> tensor<4x8xf32>
    ```
  }];
  let arguments = (ins Aten_NumberTensor:$self, Aten_Dim:$dim, Aten_IndexTensor:$index, Aten_NumberTensor:$src);
  let assemblyFormat = "$self `dim` $dim `at` $index `of` $src attr-dict `:` functional-type(operands, results)";
}

def Aten_IndexPutOp : Aten_ScatterOp<"index_put"> {
  let summary = "self, with values added to the elements that aten.index reads";
  let description = [{
    `indices` and `indices_at` are those of `aten.index`, and `values` broadcasts to what that reads. This is the adjoint of
    index, index_select and embedding. Only the form with `accumulate` is supported: without it values replace elements, which
    is `aten.index_write`.

    Where self is sharded along an indexed dim, a rank adds what falls into its part. Where indices and values are sharded,
    the result is a partial sum, and self counts once.

    ```mlir
    %y = aten.index_put %x[:, %i] of %v accumulate : (tensor<4x5xf32>, tensor<3xi64>, tensor<4x3xf32>) -> tensor<4x5xf32>
    ```
  }];
  let arguments = (ins Aten_NumberTensor:$self, Variadic<Aten_IndexTensor>:$indices, Aten_NumberTensor:$values,
                       Aten_Dims:$indices_at, UnitAttr:$accumulate);
  let assemblyFormat = [{
    $self `` custom<IndexedDims>($indices, $indices_at) `of` $values (`accumulate` $accumulate^)? attr-dict
    `:` functional-type(operands, results)
  }];
}

#endif // SHARDC_DIALECTS_ATEN_INDEXING_TD
