// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef SHARDC_DIALECTS_ATEN_ATTENTION_TD
#define SHARDC_DIALECTS_ATEN_ATTENTION_TD

include "dialects/aten/AtenBase.td"

class Aten_AttentionOp<string mnemonic>
    : Aten_Op<mnemonic, [AttrSizedOperandSegments, DeclareOpInterfaceMethods<CostOpInterface, ["getFlops"]>]> {
  let runsAs = "KernelForm::Attention";
  let moreDeclarations = [{
    /// The position of the first query among the keys.
    ::mlir::OpFoldResult getMixedFirst() {
      return getFirst() ? ::mlir::OpFoldResult(getFirst())
                        : ::mlir::OpFoldResult(::mlir::Builder(getContext()).getIndexAttr(getStaticFirst()));
    }
  }];
}

defvar Aten_AttentionOptions = (ins Optional<Aten_Tensor>:$attn_mask, DefaultValuedAttr<F64Attr, "0.0">:$dropout_p,
                                    UnitAttr:$is_causal, OptionalAttr<F64Attr>:$scale, UnitAttr:$enable_gqa,
                                    DefaultValuedAttr<I64Attr, "0">:$static_first, Optional<Index>:$first);

def Aten_ScaledDotProductAttentionOp : Aten_AttentionOp<"scaled_dot_product_attention"> {
  let summary = "Computes attention: softmax(query key^T * scale + mask) value";
  let description = [{
    query is `[..., heads, L, E]`, key `[..., heads, S, E]`, value `[..., heads, S, Ev]`. The mask is
    broadcast to `[..., heads, L, S]`. It is bool (keys where it is true take part) or is added to the scores. `is_causal` lets
    query i see keys j <= first + i: `first`, which is 0 unless given and never negative, is the position of the first query among
    the keys. A query behind the last key sees all. Ranks that have some of the queries differ in this number alone. `scale` is
    1/sqrt(E) unless given. `enable_gqa` repeats each head of key and value heads(query) / heads(key) times.

    ```mlir
    %y = aten.scaled_dot_product_attention %q, %k, %v causal first %i
        : (tensor<2x4x5x8xf32>, tensor<2x4x20x8xf32>, tensor<2x4x20x8xf32>, index) -> tensor<2x4x5x8xf32>
    ```
  }];
  let arguments = !con((ins Aten_FloatTensor:$query, Aten_FloatTensor:$key, Aten_FloatTensor:$value), Aten_AttentionOptions);
  let results = (outs Aten_FloatTensor:$result);
  let assemblyFormat = [{
    $query `,` $key `,` $value (`mask` `(` $attn_mask^ `)`)? (`causal` $is_causal^)?
    custom<FirstQuery>($first, $static_first) (`gqa` $enable_gqa^)? (`scale` $scale^)? attr-dict `:` functional-type(operands, results)
  }];
  let shardBy = "attentionRule(op)";
}

def Aten_ScaledDotProductFlashAttentionOp : Aten_AttentionOp<"scaled_dot_product_flash_attention"> {
  let summary = "Computes attention, and the logarithm of what each softmax divides by";
  let description = [{
    `output` is as in `scaled_dot_product_attention`. `logsumexp`, `[..., heads, L]` in the type in which sums are formed (f32,
    f64 for f64), is log(sum_j exp(score_ij)), from which a backward has the weights again: exp(score - logsumexp). A query
    that sees no key has 0 for both.

    With `partial` the keys are some of those that a query may see, and the results are to be combined with those of other keys: `output` has the
    type of `logsumexp`, and a query that sees none of these keys has a logsumexp of -inf.
  }];
  let arguments = !con((ins Aten_FloatTensor:$query, Aten_FloatTensor:$key, Aten_FloatTensor:$value), Aten_AttentionOptions,
                       (ins UnitAttr:$partial));
  let results = (outs Aten_FloatTensor:$output, Aten_FloatTensor:$logsumexp);
  let assemblyFormat = [{
    $query `,` $key `,` $value (`mask` `(` $attn_mask^ `)`)? (`causal` $is_causal^)?
    custom<FirstQuery>($first, $static_first) (`partial` $partial^)? (`gqa` $enable_gqa^)? (`scale` $scale^)? attr-dict `:` functional-type(operands, results)
  }];
  let shardBy = "flashAttentionRule(op)";
}

def Aten_ScaledDotProductFlashAttentionBackwardOp : Aten_AttentionOp<"scaled_dot_product_flash_attention_backward"> {
  let summary = "Computes the cotangents of query, key and value from that of attention's output";
  let description = [{
    With weights p = exp(scores - logsumexp), which are computed again, and their cotangent g = p * (grad_out value^T -
    rowsum(grad_out * out)): `grad_query` = g key * scale, `grad_key` = g^T query * scale, `grad_value` = p^T grad_out. All of
    query, key, value and out have the same dims in front of the heads. With `enable_gqa`, the query heads that share a
    key add to its cotangent. A mask gets no cotangent. What hides all keys from a query leaves it out.

    With `partial` the keys are some of those that the forward had, `out` and `logsumexp` are those of all, and the results, of which
    `grad_query` is a part of a sum, have the type of `logsumexp`.
  }];
  let arguments = !con((ins Aten_FloatTensor:$grad_out, Aten_FloatTensor:$query, Aten_FloatTensor:$key, Aten_FloatTensor:$value,
                            Aten_FloatTensor:$out, Aten_FloatTensor:$logsumexp), Aten_AttentionOptions,
                       (ins UnitAttr:$partial));
  let results = (outs Aten_FloatTensor:$grad_query, Aten_FloatTensor:$grad_key, Aten_FloatTensor:$grad_value);
  let assemblyFormat = [{
    $grad_out `,` $query `,` $key `,` $value `,` $out `,` $logsumexp (`mask` `(` $attn_mask^ `)`)? (`causal` $is_causal^)?
    custom<FirstQuery>($first, $static_first) (`partial` $partial^)? (`gqa` $enable_gqa^)? (`scale` $scale^)? attr-dict
    `:` functional-type(operands, results)
  }];
  let shardBy = "flashAttentionBackwardRule(op)";
}

#endif // SHARDC_DIALECTS_ATEN_ATTENTION_TD
