# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention as one rank computes it: over some of the keys (partial), and causal, with its first query at any key (first), forward and backward, on
the CPU and on the emulated device: fewer and more keys than queries, queries behind the last key, no keys and no queries, rows that see nothing,
grouped heads, all types."""
import pytest
import torch

from kernels import Case, check
from kernel_cases import BF16, F16, F32, F64, values
from test_attention import BACKWARD_LOOSE, LOOSE, OPS
from test_cuda_attention import Program, compile_text, difference, outputs

NAME = "aten.scaled_dot_product_flash_attention"


def cases(heads, rows, keys, depth, t, words, *, key_heads=None, width=None, mask=False, first=0):
    """The forward and the backward, whose logsumexp is that of these keys and of others, which all rows see. `first`: the key at which the first
    query is."""
    key_heads, sums = key_heads or heads, F64 if t == F64 else F32
    q, k, v = (values([2, n, length, size], t) for n, length, size in
               ((heads, rows, depth), (key_heads, keys, depth), (key_heads, keys, width or depth)))
    masks = [torch.rand(rows, keys) < 0.6] if mask else []
    for one in masks:
        one[rows // 2] = False
    attributes = dict.fromkeys({"causal": "is_causal", "gqa": "enable_gqa"}.get(word, word) for word in words.split())
    attributes["static_first"] = first
    words = words.replace("causal", f"causal first {first}")
    partial = "partial" in attributes
    made = sums if partial else t

    def call(name, names, loose, results):
        def answer(*operands):
            wide = [x.double() if x.dtype.is_floating_point else x for x in operands]
            given = dict(zip([*names, "attn_mask"], [*wide, None]))
            return [x.to(result) for x, result in zip(OPS[name](given, attributes, wide[1:4]), results)]
        return answer
    query_key_value = ("query", "key", "value")
    forward = call(NAME, query_key_value, LOOSE, (made, sums))
    out, total = forward(q, k, v, *masks)
    text = (" mask({%d})" if mask else "") + " " + words
    yield Case([q, k, v, *masks], f"{NAME} {{0}}, {{1}}, {{2}}" + (text % 3 if mask else text), forward, loose=LOOSE[t])
    if partial:
        total = torch.logaddexp(total, values([2, heads, rows], sums))
    operands = [values(list(out.shape), t), q, k, v, out.to(t), total]
    yield Case([*operands, *masks], f"{NAME}_backward " + ", ".join(f"{{{i}}}" for i in range(6)) + (text % 6 if mask else text),
               call(f"{NAME}_backward", ("grad_out", *query_key_value, "out", "logsumexp"), BACKWARD_LOOSE, (made,) * 3), loose=BACKWARD_LOOSE[t])


def some(t):
    yield from cases(2, 70, 133, 32, t, "causal", first=63)
    yield from cases(1, 200, 600, 16, t, "causal", first=190)
    yield from cases(4, 130, 70, 24, t, "causal gqa", key_heads=2, first=5)
    yield from cases(2, 9, 40, 16, t, "causal", first=40)
    yield from cases(2, 3, 300, 16, t, "causal partial", first=297)
    yield from cases(2, 3, 300, 16, t, "causal partial", first=1000)
    yield from cases(2, 5, 0, 16, t, "causal partial", first=2)
    yield from cases(2, 0, 7, 16, t, "causal", first=7)
    yield from cases(2, 70, 70, 33, t, "causal partial", width=40)
    yield from cases(4, 33, 65, 64, t, "partial gqa", key_heads=2, mask=True)
    yield from cases(2, 5, 600, 16, t, "partial", mask=True)
    yield from cases(2, 9, 0, 16, t, "partial")


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(23)


@pytest.mark.parametrize("t", [F32, F64, BF16, F16])
def test_on_the_cpu(t, tmp_path):
    check(list(some(t)), tmp_path)


def few(t):
    """An emulated device is slow."""
    yield from cases(2, 70, 33, 24, t, "causal gqa", key_heads=1, first=7)
    yield from cases(1, 40, 100, 24, t, "causal", first=33)
    yield from cases(1, 3, 290, 16, t, "causal partial", first=287)
    yield from cases(1, 3, 600, 16, t, "causal", first=270)
    yield from cases(1, 3, 40, 16, t, "causal partial", first=50)
    yield from cases(1, 3, 0, 16, t, "causal partial", first=2)
    yield from cases(1, 0, 7, 16, t, "causal", first=7)
    yield from cases(1, 40, 40, 16, t, "causal partial", width=24)
    yield from cases(2, 17, 33, 16, t, "partial gqa", key_heads=1, mask=True)
    yield from cases(1, 9, 0, 16, t, "partial")


@pytest.mark.parametrize("t", [F32, BF16, F16])
def test_on_the_emulated_device(t, tmp_path):
    program, wants = Program(), []
    for case in few(t):
        want = case.call(*case.operands)
        program.add(case, want)
        wants += want
    compile_text(program.text(), tmp_path)
    got, problems = outputs(program.arguments, tmp_path), []
    for i, ((_, _, label), want) in enumerate(zip(program.results, wants, strict=True)):
        case = program.labels[label]
        # Matrix units multiply weights of 16 bits.
        have, want = got[f"output_{i}"], want.contiguous()
        if have.dim() == 4:
            have, want = have.to(t), want.to(t)
        if wrong := difference(have, want, case.operands, case.loose):
            problems.append(f"{case.name}: output {i} {wrong}")
    assert not problems, "\n".join(problems)
