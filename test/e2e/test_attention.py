# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The attention kernel against torch.nn.functional.scaled_dot_product_attention: sizes that no tile divides, grouped
heads, causal order, masks broadcast in every way, rows that see nothing."""
import random

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

from kernels import Case, check
from kernel_cases import BF16, F16, F32, F64, values

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
