// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products of rows with one of several matrices: the experts of a mixture.
#ifndef SHARDC_DIALECTS_ATEN_GROUPED_TD
#define SHARDC_DIALECTS_ATEN_GROUPED_TD

include "dialects/aten/AtenBase.td"

/// Which row belongs to which matrix is known only when the program runs. Rows may come in any order; `sorted` says that those of a
/// matrix are next to each other, so that code need not bring them together. A row whose index names no matrix takes no part.
class Aten_GroupedOp<string mnemonic> : Aten_Op<mnemonic, [DeclareOpInterfaceMethods<CostOpInterface, ["getFlops"]>]> {
  let results = (outs Aten_Tensor:$result);
  let runsAs = "KernelForm::Product";
}

def Aten_IndexedMmOp : Aten_GroupedOp<"indexed_mm"> {
  let summary = "Multiplies each row with the matrix that its index names";
  let description = [{
    `result[s] = self[s] mat2[index[s]]`, and zero where the index is not that of a matrix. ATen's grouped_mm, whose groups of rows
    follow from offsets, and a product with matrices that were looked up for each row, are both this op.

    Rows may be sharded. Where `mat2` is sharded along its first dim, a rank multiplies the rows whose matrix it has, and its result is a
    partial sum: no matrix moves.

    ```mlir
    %y = aten.indexed_mm %x, %w at %i : (tensor<6x8xf32>, tensor<4x8x16xf32>, tensor<6xi64>) -> tensor<6x16xf32>
    ```
  }];
  let arguments = (ins Aten_Tensor:$self, Aten_Tensor:$mat2, Aten_IndexTensor:$index, UnitAttr:$sorted);
  let assemblyFormat = [{
    $self `,` $mat2 `at` $index (`sorted` $sorted^)? attr-dict `:` functional-type(operands, results)
  }];
}

def Aten_IndexedOuterOp : Aten_GroupedOp<"indexed_outer"> {
  let summary = "For each matrix, the sum of the outer products of the rows whose index names it";
  let description = [{
    `result[g]`, for g up to the one number in `groups`, is the sum of `self[s]` times `other[s]` over all s with `index[s] = g`: the gradient of the matrices of
    `aten.indexed_mm`.

    Where rows are sharded, the result is a partial sum. Along the first dim of the result, a rank makes the matrices that it is to have.

    ```mlir
    %gw = aten.indexed_outer %x, %gy at %i groups [4] : (tensor<6x8xf32>, tensor<6x16xf32>, tensor<6xi64>) -> tensor<4x8x16xf32>
    ```
  }];
  let arguments = (ins Aten_Tensor:$self, Aten_Tensor:$other, Aten_IndexTensor:$index, DenseI64ArrayAttr:$static_groups,
                       Variadic<Index>:$groups, UnitAttr:$sorted);
  let assemblyFormat = [{
    $self `,` $other `at` $index `groups` custom<DynamicIndexList>($groups, $static_groups) (`sorted` $sorted^)? attr-dict
    `:` functional-type(operands, results)
  }];
}

/// Rows and where they belong: `owner` has, for each row, the number of one of `parts`. Rows are `batches` blocks of one size, and
/// each block is shared out by itself. A row whose owner is no part belongs nowhere. So many rows as `granule` says (those of a token)
/// stay together where rows are sharded.
class Aten_RowsOp<string mnemonic> : Aten_Op<mnemonic> {
  let arguments = (ins Aten_Tensor:$self, Aten_IndexTensor:$owner, ConfinedAttr<I64Attr, [IntPositive]>:$batches,
                       ConfinedAttr<I64Attr, [IntPositive]>:$parts,
                       DefaultValuedAttr<ConfinedAttr<I64Attr, [IntPositive]>, "1">:$granule);
  let results = (outs Aten_Tensor:$result);
  let assemblyFormat = [{
    $self `at` $owner `batches` $batches `parts` $parts (`granule` $granule^)? attr-dict `:` functional-type(operands, results)
  }];
}

def Aten_DispatchRowsOp : Aten_RowsOp<"dispatch_rows"> {
  let summary = "Takes each row to the part that owns it";
  let description = [{
    For each block of rows, the result has one block for each part, of as many rows: first those that the part owns, in order, then
    zeros. `dist-dispatch-rows` makes the op where the parts are the shares that ranks have of the experts of a mixture. Where rows
    and result are sharded over the axis of as many ranks, a rank has one part, and each row is sent once, to its owner.

    ```mlir
    %p = aten.dispatch_rows %x at %o batches 1 parts 2 : (tensor<6x8xf32>, tensor<6xi64>) -> tensor<12x8xf32>
    ```
  }];
}

def Aten_CollectRowsOp : Aten_RowsOp<"collect_rows"> {
  let summary = "Takes each row back from the part that owns it";
  let description = [{
    The inverse of `aten.dispatch_rows`, with the same owners: row i of the result is what became of row i. A row that belongs nowhere is zero.

    ```mlir
    %x = aten.collect_rows %p at %o batches 1 parts 2 : (tensor<12x8xf32>, tensor<6xi64>) -> tensor<6x8xf32>
    ```
  }];
}

#endif // SHARDC_DIALECTS_ATEN_GROUPED_TD
