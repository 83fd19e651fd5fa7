# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The attention kernels, forward and backward, against torch.nn.functional.scaled_dot_product_attention and its autograd: sizes
that no tile divides, grouped heads, causal order, masks broadcast in every way, rows that see nothing."""
import random
import sys

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

from conftest import ROOT
from kernels import Case, check
from kernel_cases import BF16, F16, F32, F64, values

sys.path.insert(0, str(ROOT / "test/reference"))
import attention_ops  # noqa: E402, F401, adds to OPS
from aten_ops import OPS  # noqa: E402

LENGTHS = [1, 2, 3, 7, 15, 17, 31, 33, 63, 64, 65, 100, 127, 129, 255, 257, 300]
DEPTHS = [8, 9, 16, 24, 32, 33, 64, 80, 96, 128]
LOOSE = {F32: 8, F64: 200, BF16: 2, F16: 3}


def attention(heads, rows, keys, depth, t, *, batch=(2,), key_heads=None, width=None, mask=None, causal=False, scale=None,
              strided="", mask_values=None):
    """A case; `mask` is "bool" or "add" with the shape `mask_values`."""
    key_heads = key_heads or heads
    operands = [values([*batch, heads, rows, depth], t), values([*batch, key_heads, keys, depth], t),
                values([*batch, key_heads, keys, width or depth], t)]
    words = " causal" * causal + " gqa" * (key_heads != heads) + (f" scale {scale:e}" if scale is not None else "")
    if mask == "bool":
        operands.append(torch.rand(mask_values) < 0.6)
    elif mask == "add":
        hidden = torch.rand(mask_values) < 0.3
        operands.append(values(mask_values, t).masked_fill(hidden, -float("inf")))
    words = " mask({3})" * (mask is not None) + words

    def answer(q, k, v, m=None):
        # In f64: the answer, not the way in which PyTorch's kernel for 16 bits rounds.
        m = m if m is None or m.dtype == torch.bool else m.double()
        return scaled_dot_product_attention(q.double(), k.double(), v.double(), m, is_causal=causal, scale=scale,
                                            enable_gqa=key_heads != heads).to(t)
    return Case(operands, "aten.scaled_dot_product_attention {0}, {1}, {2}" + words, answer, loose=LOOSE[t],
                strided=strided)


def answers(q, k, v, m, causal, scale):
    """In f64: output, logsumexp (0 where a query sees nothing), and a function from the output's cotangent to the others."""
    q, k, v = (x.to(F64, copy=True).requires_grad_() for x in (q, k, v))
    m = m if m is None or m.dtype == torch.bool else m.double()
    out = scaled_dot_product_attention(q, k, v, m, is_causal=causal, scale=scale, enable_gqa=q.shape[-3:-2] != k.shape[-3:-2])
    with torch.no_grad():
        scores = q @ k.repeat_interleave(q.shape[-3] // max(k.shape[-3], 1), -3).transpose(-1, -2)
        scores = scores * (q.shape[-1] ** -0.5 if scale is None else scale)
        if causal:
            scores = scores.masked_fill(torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1), -torch.inf)
        if m is not None:
            scores = scores.masked_fill(~m, -torch.inf) if m.dtype == torch.bool else scores + m
        sums = scores.logsumexp(-1)
    return out, sums.masked_fill(sums == -torch.inf, 0), lambda g: torch.autograd.grad(out, (q, k, v), g.double())


# Of what a cotangent adds up.
BACKWARD_LOOSE = {F32: 40, F64: 400, BF16: 2, F16: 3}


def directions(case, causal=False, scale=None):
    """The forward that keeps its logsumexp, and the backward, of a case above."""
    q, k, v, *mask = case.operands
    words = case.text.split("{2}")[1]
    name = "aten.scaled_dot_product_flash_attention"
    t, m = q.dtype, mask[0] if mask else None
    with torch.enable_grad():
        out, sums, gradients = answers(q, k, v, m, causal, scale)
    out, wide = out.detach(), F64 if t == F64 else F32

    def forward(*operands):
        return [out.to(t), sums.to(wide)]

    def backward(*operands):
        if t in (F32, F64):
            return [x.to(t) for x in gradients(operands[0])]
        # `out` is rounded to 16 bits, which cancellation makes large: the formula, from what the op gets.
        names = ("grad_out", "query", "key", "value", "out", "logsumexp", "attn_mask")
        wide = [x.double() if x.dtype.is_floating_point else x for x in operands] + [None] * (not mask)
        attributes = ({"is_causal": None} if causal else {}) | ({} if scale is None else {"scale": scale})
        attributes |= {"enable_gqa": None} if q.shape[-3:-2] != k.shape[-3:-2] else {}
        return [x.to(t) for x in OPS[name + "_backward"](dict(zip(names, wide)), attributes, wide[1:4])]
    yield Case([q, k, v, *mask], f"{name} {{0}}, {{1}}, {{2}}{words}", forward, loose=LOOSE[t], strided=case.strided)
    operands = [values(list(out.shape), t), q, k, v, out.to(t), sums.to(wide)]
    yield Case(operands + mask, f"{name}_backward {{0}}, {{1}}, {{2}}, {{3}}, {{4}}, {{5}}{words.replace('{3}', '{6}')}",
               backward, loose=BACKWARD_LOOSE[t], strided=case.strided)


def masked(count):
    for i in range(count):
        b, h, rows, keys = random.choice([1, 2]), random.choice([1, 2, 3]), random.choice(LENGTHS), random.choice(LENGTHS)
        full = [b, h, rows, keys]
        shape = [n if random.random() < 0.6 else 1 for n in full][random.choice([0, 1, 2]):]
        yield attention(h, rows, keys, random.choice(DEPTHS), [F32, BF16, F64, F16][i % 4], batch=(b,),
                        mask=["bool", "add"][i % 3 != 0], mask_values=shape)


def unmasked(count):
    for i in range(count):
        h, group = random.choice([1, 2, 3]), random.choice([1, 1, 2, 4])
        yield attention(h * group, random.choice(LENGTHS), random.choice(LENGTHS), random.choice(DEPTHS),
                        [F32, F32, BF16, F64, F16][i % 5], key_heads=h, causal=i % 2 == 0,
                        width=random.choice([None, 5, 40]), strided=random.choice(["", "permuted", "sliced"]),
                        scale=random.choice([None, 0.05, 0.3]))


def corners():
    for t in (F32, BF16):
        yield attention(2, 300, 300, 64, t, causal=True)
        yield attention(1, 1, 257, 128, t, causal=True)  # the first query of many keys
        yield attention(2, 65, 3, 16, t, causal=True)
        yield attention(3, 5, 9, 8, t, batch=())
        yield attention(2, 5, 9, 8, t, batch=(2, 3))
        yield attention(2, 0, 9, 8, t)
        nothing = attention(2, 70, 70, 32, t, mask="bool", mask_values=[70, 70])
        nothing.operands[3][3], nothing.operands[3][66] = False, False
        yield nothing
        nothing = attention(2, 70, 300, 32, t, mask="add", mask_values=[2, 1, 70, 300])
        nothing.operands[3][0, 0, 5], nothing.operands[3][1, 0, :, :260] = -float("inf"), -float("inf")
        yield nothing
        low = attention(2, 20, 40, 32, t, mask="add", mask_values=[2, 1, 1, 40])
        low.operands[3][:] = torch.where(torch.arange(40) < 30, 0.0, torch.finfo(t).min)
        yield low
        large = attention(1, 33, 65, 16, t)
        large.operands[0].mul_(100)
        yield large


@pytest.mark.parametrize("cases", [masked, unmasked])
def test_random_sizes(cases, tmp_path):
    random.seed(11)
    torch.manual_seed(11)
    assert check(list(cases(24)), tmp_path) == 24


def test_corners(tmp_path):
    torch.manual_seed(5)
    check(list(corners()), tmp_path)


def described(case):
    """`causal` and `scale` of a case, from its text."""
    words = case.text.split()
    return " causal" in case.text, float(words[words.index("scale") + 1]) if "scale" in words else None


@pytest.mark.parametrize("cases", [masked, unmasked])
def test_backward_of_random_sizes(cases, tmp_path):
    random.seed(12)
    torch.manual_seed(12)
    both = [case for one in cases(24) if one.text.count("mask") == 0 or one.operands[3].dim() >= 2
            for case in directions(one, *described(one))]
    assert check(both, tmp_path) == 48


def test_backward_corners(tmp_path):
    torch.manual_seed(5)
    ones = list(corners())
    check([case for one in ones for case in directions(one, *described(one))], tmp_path)


def test_reference_is_pytorchs(tmp_path):
    """What the tests of inference, rules and local forms compute with, against PyTorch's own ops for the CPU."""
    torch.manual_seed(7)
    q, k, v, g = (torch.randn(2, 3, n, 8, dtype=F64) for n in (5, 7, 7, 5))
    hidden = torch.zeros(2, 1, 5, 7, dtype=F64).masked_fill(torch.rand(2, 1, 5, 7) < 0.4, -torch.inf)
    hidden[0, 0, 2] = -torch.inf
    name = "aten.scaled_dot_product_flash_attention"
    for mask, causal in ((None, False), (None, True), (hidden, False)):
        attributes = {"scale": 0.3} | ({"is_causal": None} if causal else {})
        operands = {"query": q, "key": k, "value": v, "attn_mask": mask}
        out, sums = OPS[name](operands, attributes, [])
        want, want_sums = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(q, k, v, 0.0, causal, attn_mask=mask, scale=0.3)
        torch.testing.assert_close(out, want)
        torch.testing.assert_close(sums, want_sums)
        got = OPS[name + "_backward"](operands | {"grad_out": g, "out": out, "logsumexp": sums}, attributes, [q, k, v])
        wants = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward(
            g, q, k, v, want, want_sums, 0.0, causal, attn_mask=mask, scale=0.3)
        torch.testing.assert_close(got, list(wants))
