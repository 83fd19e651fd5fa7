# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention over a sharded sequence: ranks have some queries each and gather keys and values; in the backward what their queries make for all keys is a
partial sum, and no rank has the scores of all queries."""
import json

import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import save_file
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


class Cross(nn.Module):
    """Queries of one sequence, keys of another one. Causal, query i sees its keys up to i."""

    def __init__(self, width=8, heads=2, causal=False):
        super().__init__()
        self.causal = causal
        self.heads, self.q, self.kv = heads, nn.Linear(width, width), nn.Linear(width, 2 * width)

    def forward(self, x, memory, mask=None):
        def split(t):
            return t.unflatten(-1, (self.heads, -1)).transpose(1, 2)
        k, v = self.kv(memory).chunk(2, -1)
        y = F.scaled_dot_product_attention(split(self.q(x)), split(k), split(v), mask, is_causal=self.causal, scale=0.3)
        return y.square().mean(), y


def sequence(length):
    return torch.randn(2, length, 8, dtype=F64)


MODELS = {
    "causal": lambda: (Model((True,), (True,)), {"x": sequence(11)}),
    "plain": lambda: (Model((False,)), {"x": sequence(8)}),
    "grouped": lambda: (Model((True, 2)), {"x": sequence(9)}),
    "long": lambda: (Model((True, 2)), {"x": sequence(301)}),
    "short": lambda: (Model((True,)), {"x": sequence(3)}),
    # Queries behind the last key see all, and a rank has no others.
    "more": lambda: (Cross(causal=True), {"x": sequence(13), "memory": sequence(5)}),
    "fewer": lambda: (Cross(causal=True), {"x": sequence(5), "memory": sequence(13)}),
    "masked": lambda: (Model((False, 2)), {"x": sequence(9), "mask": torch.rand(9, 9) < 0.7}),
}

exported = fixture_of(MODELS)


@pytest.mark.parametrize("name, mesh, plan", [
    ("causal", "sp=1", "input:x=sp:S(1)"), ("causal", "sp=2", "input:x=sp:S(1)"), ("causal", "sp=4", "input:x=sp:S(1)"),
    ("causal", "sp=4", "input:x=sp:S(1, sizes = [4, 0, 6, 1])"), ("causal", "dp=2,sp=3", "input:x=dp:S(0),sp:S(1)"), ("causal", "a=2,b=2", "input:x=a:S(1),b:S(1)"),
    ("plain", "sp=3", "input:x=sp:S(1)"), ("grouped", "sp=2", "input:x=sp:S(1)"), ("grouped", "dp=2,sp=2", "input:x=dp:S(0),sp:S(1)"),
    ("grouped", "sp=3", "input:x=sp:S(1, blocks = 3)"), ("long", "sp=4", "input:x=sp:S(1)"), ("short", "sp=4", "input:x=sp:S(1)"),
    ("more", "sp=4", "input:x=sp:S(1)"), ("more", "sp=3", "input:x=sp:S(1, sizes = [1, 0, 12])"), ("fewer", "sp=4", "input:x=sp:S(1)"),
    ("more", "dp=2,sp=2", "input:x=dp:S(0),sp:S(1)"), ("masked", "sp=2", "input:x=sp:S(1)"), ("masked", "sp=4", "input:x=sp:S(1)"),
])
def test_gradients(exported, name, mesh, plan):
    exported(name).run(mesh, *places(plan), "--ring-attention", "off")


@pytest.mark.parametrize("groups", [1, 2])
def test_emulated_device(tmp_path, groups):
    torch.manual_seed(5)
    model = Exported(tmp_path, Model((True, groups)), {"x": torch.randn(1, 13, 8)})
    run(tool("shardc"), "compile", tmp_path / "m.pt2", "--mesh", "sp=4", *places("input:x=sp:S(1)"), "--gradients", 0, "--target", "cuda:emulated",
        "--ring-attention", "off", "-o", tmp_path / "m.so")
    model.answer("--inputs", tmp_path / "in.safetensors", "--device", "emulated", what="on the emulated device")


def test_symbolic_sequence(tmp_path):
    """Where a rank's queries begin is computed when it runs."""
    torch.manual_seed(1)
    model = Exported(tmp_path, Model((True, 2), (True,)).double(), {"x": sequence(13)}, dynamic=["x:1=n"])
    model.run("sp=4", *places("input:x=sp:S(1)"), "--ring-attention", "off")
    x = sequence(3)
    save_file({"x": x}, tmp_path / "short.safetensors")
    loss, y = model.module(x)
    trained = dict(model.module.named_parameters())
    model.outputs, model.grads = [loss.detach(), y.detach()], dict(zip(trained, torch.autograd.grad(loss, trained.values())))
    model.answer("--inputs", tmp_path / "short.safetensors", what="of 3 positions")


def test_ranks_have_one_code(tmp_path):
    """Equal shares of a causal sequence: ranks differ in where their queries begin, which is a number in a table."""
    torch.manual_seed(2)
    model = Exported(tmp_path, Model((True, 2), (True,)), {"x": torch.randn(1, 64, 8)})
    model.run("sp=8", *places("input:x=sp:S(1)"), "--ring-attention", "off")
    for entry in json.loads(run(tool("shard-run"), tmp_path / "m.so", "--manifest").stdout)["entries"]:
        assert len(entry["arena_bytes"]) == 1, entry["arena_bytes"]


def test_no_rank_has_all_scores(tmp_path):
    """Of 2,048 positions, scores in f32 would take 8 MiB for each of two heads on four ranks; the arena is a fraction of that."""
    torch.manual_seed(2)
    module, x = Model((True,)), torch.randn(1, 2048, 8)
    model = Exported(tmp_path, module, {"x": x})
    model.run("sp=4", *places("input:x=sp:S(1)"), "--ring-attention", "off")
    entry = json.loads(run(tool("shard-run"), tmp_path / "m.so", "--manifest").stdout)["entries"][-1]
    assert max(entry["arena_bytes"]) < 3 << 20, entry["arena_bytes"]
    assert model.moved("sp=4", *places("input:x=sp:S(1)"), "--gradients", "0", "--ring-attention", "off") <= {"all_gather", "all_reduce", "reduce_scatter"}
