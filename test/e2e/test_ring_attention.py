# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention over a sharded sequence as a ring (--ring-attention): PyTorch's outputs and gradients, for queries and keys that ranks have in equal and
unequal shares, causal, masked and grouped, on several axes; and what it saves."""
import functools
import json
import re

import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from torch import nn

from conftest import run, tool
from exported import F64, Exported
from plans import places
from test_sequence_attention import Model


class Cross(nn.Module):
    """Queries of one sequence, keys of another one, which is longer."""

    def __init__(self, width=8, heads=2):
        super().__init__()
        self.heads, self.q, self.kv = heads, nn.Linear(width, width), nn.Linear(width, 2 * width)

    def forward(self, x, memory, mask=None):
        def split(t):
            return t.unflatten(-1, (self.heads, -1)).transpose(1, 2)
        k, v = self.kv(memory).chunk(2, -1)
        y = F.scaled_dot_product_attention(split(self.q(x)), split(k), split(v), mask, scale=0.3)
        return y.square().mean(), y


def hiding(queries, keys):
    """Query 0 sees nothing, and query 1 only what the last rank has."""
    mask = torch.rand(queries, keys) < 0.6
    mask[0], mask[1, :-2] = False, False
    return mask


def added(queries, keys):
    """Likewise, as what is added to the scores, per head."""
    mask = torch.randn(2, queries, keys, dtype=F64)
    return mask.masked_fill(~hiding(queries, keys), -torch.inf)


def sequence(length):
    return torch.randn(2, length, 8, dtype=F64)


MODELS = {
    "causal": lambda: (Model((True,), (True,)), {"x": sequence(16)}),
    "uneven": lambda: (Model((True,), (False,)), {"x": sequence(11)}),
    "plain": lambda: (Model((False,)), {"x": sequence(8)}),
    "grouped": lambda: (Model((True, 2)), {"x": sequence(12)}),
    "masked": lambda: (Model((False, 2)), {"x": sequence(9), "mask": hiding(9, 9)}),
    "added": lambda: (Model((False,)), {"x": sequence(9), "mask": added(9, 9)}),
    "row": lambda: (Model((False,)), {"x": sequence(8), "mask": torch.rand(2, 1, 1, 8) < 0.8}),
    "cross": lambda: (Cross(), {"x": sequence(6), "memory": sequence(13), "mask": hiding(6, 13)}),
}


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    @functools.cache
    def export(name):
        torch.manual_seed(1)
        module, inputs = MODELS[name]()
        return Exported(tmp_path_factory.mktemp(name), module.double(), inputs)
    return export


@pytest.mark.parametrize("name, mesh, plan, how", [
    ("plain", "sp=2", "input:x=sp:S(1)", "all"), ("plain", "sp=8", "input:x=sp:S(1)", "all"),
    ("causal", "sp=2", "input:x=sp:S(1)", "all"), ("causal", "sp=4", "input:x=sp:S(1)", "all"),
    ("causal", "sp=2", "input:x=sp:S(1)", "balanced"), ("causal", "sp=4", "input:x=sp:S(1)", "balanced"),
    ("causal", "sp=8", "input:x=sp:S(1)", "balanced"), ("causal", "dp=2,sp=4", "input:x=dp:S(0),sp:S(1)", "balanced"),
    ("causal", "a=2,b=2", "input:x=a:S(1),b:S(1)", "balanced"),
    ("uneven", "sp=3", "input:x=sp:S(1)", "all"), ("uneven", "sp=4", "input:x=sp:S(1, sizes = [4, 0, 6, 1])", "balanced"),
    ("grouped", "sp=3", "input:x=sp:S(1)", "balanced"), ("grouped", "dp=2,sp=2", "input:x=dp:S(0),sp:S(1)", "all"),
    ("masked", "sp=3", "input:x=sp:S(1)", "all"), ("added", "sp=4", "input:x=sp:S(1)", "all"), ("row", "sp=2", "input:x=sp:S(1)", "all"),
    ("cross", "sp=2", ("input:x=sp:S(1)", "input:memory=sp:S(1)"), "all"), ("cross", "sp=3", ("input:x=R", "input:memory=sp:S(1)"), "all"),
])
def test_gradients(exported, name, mesh, plan, how):
    exported(name).run(mesh, *places(*([plan] if isinstance(plan, str) else plan)), "--ring-attention", how)
