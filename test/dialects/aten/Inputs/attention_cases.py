# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random calls of attention that keeps its logsumexp, and of its backward, as in pytorch_cases.py. PyTorch has such ops for some
operands only; the formulas of test/reference stand for them, which test/e2e/test_attention.py compares with PyTorch."""
import pathlib
import random
import sys

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "reference"))
import attention_ops  # noqa: E402, F401, adds to OPS
from aten_ops import OPS  # noqa: E402

FORWARD, BACKWARD = "aten.scaled_dot_product_flash_attention", "aten.scaled_dot_product_flash_attention_backward"


def call(name, names, tensors, attributes, results=()):
    operands = dict.fromkeys(names.split()) | dict(zip(names.split(), tensors))
    return OPS[name](operands, attributes, results)


def setting():
    b, h, rows, keys, e, f = (random.choice([1, 2, 3]) for _ in range(6))
    t, group = random.choice([torch.float32, torch.float64]), random.choice([1, 1, 2])
    query, key, value = [b, h * group, rows, e], [b, h, keys, e], [b, h, keys, f]
    scores = [b, h * group, rows, keys]
    mask = random.choice([None, scores, scores[2:], [b, 1, rows, keys], [1, 1, 1, keys]])
    more = [] if mask is None else [(mask, random.choice([torch.bool, t]))]
    causal = not more and random.random() < 0.5
    attributes = ({"is_causal": None} if causal else {}) | ({"enable_gqa": None} if group > 1 else {}) | {"scale": 0.5}
    words = " causal" * causal + " gqa" * (group > 1) + " scale 0.5"
    return [(query, t), (key, t), (value, t)], more, attributes, words


def forward():
    operands, more, attributes, words = setting()
    names = "query key value attn_mask"

    def local(x, results):
        """Query i of the shard is query i + first of all of them."""
        first = getattr(x[0], "starts", {}).get(2, 0)
        rows = torch.arange(first, first + x[0].shape[2]).unsqueeze(1)
        rest = {k: v for k, v in attributes.items() if k != "is_causal"}
        return call(FORWARD, names, (*x, torch.arange(x[1].shape[2]) <= rows), rest)
    return (operands + more, f"{FORWARD} {{0}}, {{1}}, {{2}}" + " mask({3})" * len(more) + words,
            lambda *x: call(FORWARD, names, x, attributes), {"local": local} if "is_causal" in attributes else {})


def backward():
    """The op is a function of `out` and `logsumexp`, whatever they are."""
    (query, key, value), more, attributes, words = setting()
    out, sums = (query[0][:-1] + value[0][-1:], query[1]), (query[0][:-1], query[1])
    names = "grad_out query key value out logsumexp attn_mask"

    def local(x, results):
        first = getattr(x[1], "starts", {}).get(2, 0)
        rows = torch.arange(first, first + x[1].shape[2]).unsqueeze(1)
        rest = {k: v for k, v in attributes.items() if k != "is_causal"}
        return call(BACKWARD, names, (*x, torch.arange(x[2].shape[2]) <= rows), rest, x[1:4])
    return ([out, query, key, value, out, sums] + more,
            f"{BACKWARD} {{0}}, {{1}}, {{2}}, {{3}}, {{4}}, {{5}}" + " mask({6})" * len(more) + words,
            lambda *x: call(BACKWARD, names, x, attributes, x[1:4]), {"local": local} if "is_causal" in attributes else {})


def grouped_mask():
    b, h, rows, keys, e = (random.choice([1, 2, 3]) for _ in range(5))
    mask = random.choice([[b, h * 2, rows, keys], [rows, keys], [b, 1, rows, keys]])
    return ([([b, h * n, m, e], torch.float32) for n, m in ((2, rows), (1, keys), (1, keys))] + [(mask, torch.bool)],
            "aten.scaled_dot_product_attention {0}, {1}, {2} mask({3}) gqa",
            lambda q, k, v, m: torch.ops.aten.scaled_dot_product_attention(q, k, v, m, enable_gqa=True))


FAMILIES = [forward, backward, grouped_mask]
