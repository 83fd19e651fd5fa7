# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What attention computes, as in aten_ops.py."""
import torch
import torch.nn.functional as F

from aten_ops import aten, number


@aten("scaled_dot_product_attention", "query", "key", "value", "?attn_mask", "?first")
def attention(o, a, t):
    scale = number(a["scale"]) if "scale" in a else None
    mask = seen(o, a) if first_query(o, a) else o["attn_mask"]
    return F.scaled_dot_product_attention(
        o["query"], o["key"], o["value"], mask, is_causal="is_causal" in a and not first_query(o, a), scale=scale,
        enable_gqa="enable_gqa" in a)


def first_query(o, a):
    """The position of the first query among the keys."""
    first = o.get("first")
    return a.get("static_first", 0) if first is None else first


def seen(o, a):
    """Which keys each query sees in causal order."""
    query, key = o["query"], o["key"]
    return torch.ones(query.shape[-2], key.shape[-2], dtype=torch.bool, device=query.device).tril(first_query(o, a))


def _scores(o, a):
    """Scores as they go into the softmax, in the type of the arithmetic, and the scale; with grouped queries, keys and
    values are repeated."""
    q, k, v = (o[name].double() if o[name].dtype == torch.float64 else o[name].float() for name in ("query", "key", "value"))
    if "enable_gqa" in a:
        k, v = (x.repeat_interleave(q.shape[-3] // max(x.shape[-3], 1), -3) for x in (k, v))
    scale = number(a["scale"]) if "scale" in a else 0 if q.shape[-1] == 0 else q.shape[-1] ** -0.5
    scores = q @ k.transpose(-1, -2) * scale
    if "is_causal" in a:
        scores = scores.masked_fill(~seen(o, a), -torch.inf)
    mask = o["attn_mask"]
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf) if mask.dtype == torch.bool else scores + mask
    return scores, scale, q, k, v


@aten("scaled_dot_product_flash_attention", "query", "key", "value", "?attn_mask", "?first")
def flash_attention(o, a, t):
    scores, _, _, _, v = _scores(o, a)
    sums = scores.logsumexp(-1)
    if "partial" in a:
        return [scores.softmax(-1).nan_to_num(0) @ v, sums]
    return [attention(o, a, t), sums.masked_fill(sums == -torch.inf, 0)]


@aten("scaled_dot_product_flash_attention_backward", "grad_out", "query", "key", "value", "out", "logsumexp", "?attn_mask",
      "?first")
def flash_attention_backward(o, a, t):
    """From `out` and `logsumexp` as they are given, which autograd would not read."""
    scores, scale, q, k, v = _scores(o, a)
    weights = (scores - o["logsumexp"].unsqueeze(-1)).exp()
    grad, out = o["grad_out"].to(q.dtype), o["out"].to(q.dtype)
    slopes = weights * (grad @ v.transpose(-1, -2) - (grad * out).sum(-1, keepdim=True))
    results = [slopes @ k * scale, slopes.transpose(-1, -2) @ q * scale, weights.transpose(-1, -2) @ grad]

    def grouped(x, like):
        if x.shape == like.shape:
            return x
        return x.unflatten(-3, (like.shape[-3], -1)).sum(-3) if like.numel() else x.new_zeros(like.shape)
    return [grouped(x, o[name]).to(like.dtype) for x, name, like in zip(results, ("query", "key", "value"), t)]
