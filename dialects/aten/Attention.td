// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef SHARDC_DIALECTS_ATEN_ATTENTION_TD
#define SHARDC_DIALECTS_ATEN_ATTENTION_TD

include "dialects/aten/AtenBase.td"

def Aten_ScaledDotProductAttentionOp : Aten_Op<"scaled_dot_product_attention",
    [DeclareOpInterfaceMethods<CostOpInterface, ["getFlops"]>]> {
  let summary = "Computes attention: softmax(query key^T * scale + mask) value";
  let description = [{
    query is `[..., heads, L, E]`, key `[..., heads, S, E]`, value `[..., heads, S, Ev]`. The mask is
    broadcast to `[..., heads, L, S]`. It is bool (keys where it is true take part) or is added to the scores. `is_causal` lets
    query i see keys j <= i. `scale` is 1/sqrt(E) unless given. `enable_gqa` repeats each head of key
    and value heads(query) / heads(key) times.
  }];
  let arguments = (ins Aten_FloatTensor:$query, Aten_FloatTensor:$key, Aten_FloatTensor:$value,
                       Optional<Aten_Tensor>:$attn_mask, DefaultValuedAttr<F64Attr, "0.0">:$dropout_p,
                       UnitAttr:$is_causal, OptionalAttr<F64Attr>:$scale, UnitAttr:$enable_gqa);
  let results = (outs Aten_FloatTensor:$result);
  let assemblyFormat = [{
    $query `,` $key `,` $value (`mask` `(` $attn_mask^ `)`)? (`causal` $is_causal^)?
    (`gqa` $enable_gqa^)? (`scale` $scale^)? attr-dict `:` functional-type(operands, results)
  }];
  let shardBy = "attentionRule(op)";
  let runsAs = "KernelForm::Attention";
}

#endif // SHARDC_DIALECTS_ATEN_ATTENTION_TD
