# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Neighborhood attention: NATTEN's operators by their signatures, so that models which call them can be exported where NATTEN is not installed,
and its definition written out as attention with a mask."""
import functools
import sys

import torch

from conftest import ROOT

sys.path.insert(0, str(ROOT / "test/dialects/aten/Inputs"))
from neighborhood_cases import sees  # noqa: E402

_WINDOW = "int[] kernel_size, int[] stride, int[] dilation, bool[] is_causal, float scale"
_QKV = "Tensor query, Tensor key, Tensor value"
LIBRARY = torch.library.Library("natten", "FRAGMENT")


def attention(query, key, value, kernel_size, stride, dilation, is_causal, scale):
    """[batch, spatial dims, heads, E]: what every query makes of all keys that it sees, and the logarithm of the sum of its exponentials."""
    sizes = query.shape[1:-2]
    mask = functools.reduce(torch.kron, [sees(*one).to(torch.uint8) for one in zip(sizes, kernel_size, stride, dilation, is_causal)]).bool()
    flat = [x.flatten(1, len(sizes)).transpose(1, 2) for x in (query, key, value)]
    scores = (flat[0] @ flat[1].transpose(2, 3) * scale).masked_fill(~mask, float("-inf"))
    output = (scores.softmax(-1) @ flat[2]).transpose(1, 2)
    return output.unflatten(1, sizes), scores.logsumexp(-1).transpose(1, 2).unflatten(1, sizes)


def _register(dims, prefix, more, more_backward, zeros):
    """Forward and backward of one kind. `more`: arguments behind those of the window, `zeros` what stands for those of the backward."""
    forward, backward = f"{prefix}na{dims}d_forward", f"{prefix}na{dims}d_backward"
    LIBRARY.define(f"{forward}({_QKV}, {_WINDOW}{more}) -> (Tensor, Tensor)")
    LIBRARY.define(f"{backward}({_QKV}, Tensor output, Tensor d_output, Tensor logsumexp, {_WINDOW}{more_backward}) -> (Tensor, Tensor, Tensor)")
    is_flat = prefix == "reference_"

    def shaped(tensors, arguments):
        return [x.unflatten(1, arguments[5]) if is_flat else x for x in tensors]

    def run(query, key, value, *arguments):
        output, logsumexp = attention(*shaped((query, key, value), arguments), *arguments[:5])
        logsumexp = logsumexp.to(torch.float32)
        return tuple((x.flatten(1, dims) if is_flat else x).contiguous() for x in (output, logsumexp))

    def run_backward(query, key, value, output, d_output, logsumexp, *arguments):
        with torch.enable_grad():
            inputs = [x.detach().requires_grad_() for x in (query, key, value)]
            made = attention(*shaped(inputs, arguments), *arguments[:5])[0]
            return torch.autograd.grad(made.flatten(1, dims) if is_flat else made, inputs, d_output)

    def fake(query, key, value, *_):
        return query.new_empty(*query.shape[:-1], value.shape[-1]), query.new_empty(query.shape[:-1], dtype=torch.float32)

    def fake_backward(query, key, value, *_):
        return tuple(torch.empty_like(x) for x in (query, key, value))

    def save(ctx, inputs, output):
        ctx.save_for_backward(*inputs[:3], *output)
        ctx.arguments = inputs[3:]

    def differentiate(context, grad, _):
        query, key, value, output, logsumexp = context.saved_tensors
        arguments = context.arguments if is_flat else (*context.arguments, *zeros)
        call = getattr(torch.ops.natten, backward)
        return *call(query, key, value, output, grad, logsumexp, *arguments), *(None for _ in context.arguments)

    for name, implementation, empty in ((forward, run, fake), (backward, run_backward, fake_backward)):
        LIBRARY.impl(name, implementation, "CompositeExplicitAutograd")
        torch.library.register_fake(f"natten::{name}", empty, lib=LIBRARY)
    torch.library.register_autograd(f"natten::{forward}", differentiate, setup_context=save, lib=LIBRARY)


for _dims in (1, 2, 3):
    _tiles = ", int[] q_tile_shape, int[] kv_tile_shape"
    _register(_dims, "", _tiles, _tiles + ", int[] num_kv_splits, bool compute_delta_with_pt", ([1] * _dims, False))
    _shape = ", int[] qkv_shape, int num_extra_kv"
    _register(_dims, "reference_", _shape, _shape, ())


def _all_to_all(query, key, value, is_causal, scale, *_):
    q, k, v = (x.transpose(1, 2) for x in (query, key, value))
    scores = q @ k.transpose(2, 3) * scale
    if is_causal:
        scores = scores.masked_fill(torch.ones(scores.shape[2:], dtype=torch.bool).triu(1), float("-inf"))
    return (scores.softmax(-1) @ v).transpose(1, 2).contiguous(), scores.logsumexp(-1).transpose(1, 2).to(torch.float32).contiguous()


LIBRARY.define("fmha_forward(Tensor query, Tensor key, Tensor value, bool is_causal, float scale, int q_tile_size, int kv_tile_size, "
               "Tensor? cumulative_seqlen_Q, Tensor? cumulative_seqlen_KV, int max_seqlen_Q, int max_seqlen_KV) -> (Tensor, Tensor)")
LIBRARY.impl("fmha_forward", _all_to_all, "CompositeExplicitAutograd")


@functools.partial(torch.library.register_fake, "natten::fmha_forward", lib=LIBRARY)
def _fake_all_to_all(query, key, value, *_):
    return query.new_empty(*query.shape[:-1], value.shape[-1]), query.new_empty(query.shape[:-1], dtype=torch.float32)


def _save_all_to_all(ctx, inputs, output):
    ctx.save_for_backward(*inputs[:3])
    ctx.arguments = inputs[3:5]


def _differentiate_all_to_all(ctx, grad, _):
    with torch.enable_grad():
        inputs = [x.detach().requires_grad_() for x in ctx.saved_tensors]
        return *torch.autograd.grad(_all_to_all(*inputs, *ctx.arguments)[0], inputs, grad), *[None] * 8


torch.library.register_autograd("natten::fmha_forward", _differentiate_all_to_all, setup_context=_save_all_to_all, lib=LIBRARY)


def na(query, key, value, kernel_size, stride, dilation, is_causal, scale=None, reference=False):
    """As natten.na1d, na2d and na3d do: output, and the logsumexp."""
    dims = query.dim() - 3
    scale = query.shape[-1]**-0.5 if scale is None else scale
    if not reference:
        forward, tile = getattr(torch.ops.natten, f"na{dims}d_forward"), [8] * dims
        return forward(query, key, value, kernel_size, stride, dilation, is_causal, scale, tile, tile)
    sizes = list(query.shape[1:-2])
    flat = [x.flatten(1, dims) for x in (query, key, value)]
    forward = getattr(torch.ops.natten, f"reference_na{dims}d_forward")
    output, logsumexp = forward(*flat, kernel_size, stride, dilation, is_causal, scale, sizes, 0)
    return output.unflatten(1, sizes), logsumexp.unflatten(1, sizes)
