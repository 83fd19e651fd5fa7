# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention over a sharded sequence: ranks have some queries each and gather keys and values; in the backward what their queries make for all keys is a
partial sum, and no rank has the scores of all queries."""
import json

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from conftest import run, tool
from exported import F64, Exported, fixture_of
from plans import places


class Block(nn.Module):
    def __init__(self, causal, groups=1, width=8, heads=2):
        super().__init__()
        self.causal, self.groups, self.heads = causal, groups, heads
        self.norm, self.q, self.kv, self.out = nn.LayerNorm(width), nn.Linear(width, width), nn.Linear(width, 2 * width // groups), nn.Linear(width, width)

    def forward(self, x, mask=None):
        h = self.norm(x)
        q = self.q(h).unflatten(-1, (self.heads, -1)).transpose(1, 2)
        k, v = (t.unflatten(-1, (self.heads // self.groups, -1)).transpose(1, 2) for t in self.kv(h).chunk(2, -1))
        y = F.scaled_dot_product_attention(q, k, v, mask, is_causal=self.causal, enable_gqa=self.groups > 1)
        return x + self.out(y.transpose(1, 2).flatten(2))


class Model(nn.Module):
    def __init__(self, *settings):
        super().__init__()
        self.blocks = nn.ModuleList(Block(*one) for one in settings)

    def forward(self, x, mask=None):
        for block in self.blocks:
            x = block(x, mask)
        return x.square().mean(), x


MODELS = {
    "causal": lambda: (Model((True,), (True,)), {"x": torch.randn(2, 11, 8, dtype=F64)}),
    "plain": lambda: (Model((False,)), {"x": torch.randn(2, 8, 8, dtype=F64)}),
    "grouped": lambda: (Model((True, 2)), {"x": torch.randn(2, 9, 8, dtype=F64)}),
    "masked": lambda: (Model((False, 2)), {"x": torch.randn(2, 9, 8, dtype=F64), "mask": torch.rand(9, 9) < 0.7}),
}

exported = fixture_of(MODELS)


@pytest.mark.parametrize("name, mesh, plan", [
    ("causal", "sp=1", "input:x=sp:S(1)"), ("causal", "sp=2", "input:x=sp:S(1)"), ("causal", "sp=4", "input:x=sp:S(1)"),
    ("causal", "sp=4", "input:x=sp:S(1, sizes = [4, 0, 6, 1])"), ("causal", "dp=2,sp=3", "input:x=dp:S(0),sp:S(1)"), ("causal", "a=2,b=2", "input:x=a:S(1),b:S(1)"),
    ("plain", "sp=3", "input:x=sp:S(1)"), ("grouped", "sp=2", "input:x=sp:S(1)"), ("grouped", "dp=2,sp=2", "input:x=dp:S(0),sp:S(1)"),
    ("masked", "sp=2", "input:x=sp:S(1)"), ("masked", "sp=4", "input:x=sp:S(1)"),
])
def test_gradients(exported, name, mesh, plan):
    exported(name).run(mesh, *places(plan), "--ring-attention", "off")


def test_no_rank_has_all_scores(tmp_path):
    """Of 2,048 positions, scores in f32 would take 8 MiB for each of two heads on four ranks; the arena is a fraction of that."""
    torch.manual_seed(2)
    module, x = Model((True,)), torch.randn(1, 2048, 8)
    model = Exported(tmp_path, module, {"x": x})
    model.run("sp=4", *places("input:x=sp:S(1)"), "--ring-attention", "off")
    entry = json.loads(run(tool("shard-run"), tmp_path / "m.so", "--manifest").stdout)["entries"][-1]
    assert max(entry["arena_bytes"]) < 3 << 20, entry["arena_bytes"]
    assert model.moved("sp=4", *places("input:x=sp:S(1)"), "--gradients", "0", "--ring-attention", "off") <= {"all_gather", "all_reduce", "reduce_scatter"}
