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

#endif // SHARDC_DIALECTS_ATEN_INDEXING_TD
