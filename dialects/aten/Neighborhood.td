// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Neighborhood attention: each element of a line, an image or a volume attends to those around it.
#ifndef SHARDC_DIALECTS_ATEN_NEIGHBORHOOD_TD
#define SHARDC_DIALECTS_ATEN_NEIGHBORHOOD_TD

include "dialects/aten/AtenBase.td"

/// What a query sees of each spatial dim (NeighborhoodWindow.h), and, where a rank has a part of the whole, which one: `place` has four numbers for
/// each spatial dim, the size of the whole, the first query, the first key, and how many keys there are here. An empty list stands for
/// the whole. `cut` has one number for each spatial dim, or is not there: of a dim whose windows are cut off at the border, how many of
/// the keys that a query sees are behind it; -1 for any other dim.
class Aten_NeighborhoodOp<string mnemonic, string lhs, string rhs> : Aten_Op<mnemonic, [DeclareOpInterfaceMethods<CostOpInterface, ["getFlops"]>]> {
  let results = (outs Aten_FloatTensor:$result);
  let assemblyFormat = "$" # lhs # " `,` $" # rhs # [{
    `kernel` $kernel_size `stride` $stride `dilation` $dilation `causal` $is_causal
    (`cut` $cut^)? `place` custom<DynamicIndexList>($place, $static_place) attr-dict `:` functional-type(operands, results)
  }];
  let runsAs = "KernelForm::ComputedPositions";
  let moreDeclarations = [{
    /// One for each spatial dim.
    ::shardc::aten::Neighborhoods getNeighborhoods();
    ::llvm::SmallVector<::mlir::OpFoldResult> getMixedPlace() {
      return ::mlir::getMixedValues(getStaticPlace(), getPlace(), getContext());
    }
  }];
}

defvar Aten_NeighborhoodAttributes = (ins DenseI64ArrayAttr:$kernel_size, DenseI64ArrayAttr:$stride, DenseI64ArrayAttr:$dilation,
                                          DenseBoolArrayAttr:$is_causal, OptionalAttr<DenseI64ArrayAttr>:$cut,
                                          DenseI64ArrayAttr:$static_place, Variadic<Index>:$place);
def Aten_NeighborhoodQkOp : Aten_NeighborhoodOp<"neighborhood_qk", "query", "key"> {
  let summary = "Multiplies each query with the keys of its neighborhood";
  let description = [{
    `query` and `key` are `[batch, spatial dims, heads, E]`, with one to three spatial dims, and the result is
    `[batch, spatial dims, heads, kernel sizes]`, in the type in which sums are formed: `result[b, i, h, k] = sum over e of query[b, i, h, e] *
    key[b, neighbor k of i, h, e]`. Where a causal neighborhood, or one that is cut off at the border, has no neighbor k, it is 0. The scores of
    neighborhood attention are these products, scaled, with those of no neighbor left out.

    Batch and heads are sharded freely, `E` into partial sums. Of a sharded spatial dim, ranks exchange the keys that are neighbors of their
    queries.

    ```mlir
    %s = aten.neighborhood_qk %q, %k kernel [3, 3] stride [1, 1] dilation [1, 1] causal [false, false] place []
        : (tensor<1x8x8x2x16xf32>, tensor<1x8x8x2x16xf32>) -> tensor<1x8x8x2x3x3xf32>
    ```
  }];
  let arguments = !con((ins Aten_FloatTensor:$query, Aten_FloatTensor:$key), Aten_NeighborhoodAttributes);
}

def Aten_NeighborhoodAvOp : Aten_NeighborhoodOp<"neighborhood_av", "weights", "value"> {
  let summary = "Sums the values of each neighborhood, weighted";
  let description = [{
    `weights` is as `aten.neighborhood_qk` makes it, `value` is `[batch, spatial dims, heads, E]`, and so is the result:
    `result[b, i, h, e] = sum over k of weights[b, i, h, k] * value[b, neighbor k of i, h, e]`.

    ```mlir
    %y = aten.neighborhood_av %p, %v kernel [3] stride [1] dilation [1] causal [true] place []
        : (tensor<1x8x2x3xf32>, tensor<1x8x2x16xf32>) -> tensor<1x8x2x16xf32>
    ```
  }];
  let arguments = !con((ins Aten_FloatTensor:$weights, Aten_FloatTensor:$value), Aten_NeighborhoodAttributes);
}

def Aten_NeighborhoodAdjointOp : Aten_NeighborhoodOp<"neighborhood_adjoint", "weights", "rows"> {
  let summary = "Adds up, for each key, what the queries that see it have for it";
  let description = [{
    This is the adjoint of `aten.neighborhood_av` in its values, and of `aten.neighborhood_qk` in its keys: `result[b, j, h, e]` is the sum of
    `weights[b, i, h, k] * rows[b, i, h, e]` over all i and k such that j is neighbor k of i. The result has as many keys as there are
    queries, or, for a part of the whole, as `place` says.

    ```mlir
    %gk = aten.neighborhood_adjoint %gs, %q kernel [3] stride [1] dilation [1] causal [false] place []
        : (tensor<1x8x2x3xf32>, tensor<1x8x2x16xf32>) -> tensor<1x8x2x16xf32>
    ```
  }];
  let arguments = !con((ins Aten_FloatTensor:$weights, Aten_FloatTensor:$rows), Aten_NeighborhoodAttributes);
}

#endif // SHARDC_DIALECTS_ATEN_NEIGHBORHOOD_TD
