# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Projections whose features are cut into parts of several sizes, in one step or in several, are sharded in blocks of these sizes, written in the
plan or not: layers communicate what their row-parallel products need, losses, parameters and states of the optimizer are PyTorch's, and checkpoints
are of the whole tensors."""
import json
import sys

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn
from torch.nn import functional as F

from conftest import ROOT, run, tool
from plans import places
from test_checkpoints import load_sharded, save
from test_training import check, train
from training import Trainee

sys.path.insert(0, str(ROOT / "tools/export"))
import shardc_export  # noqa: E402

WIDTH, HEADS, SHARED, SIZE, ROWS, LENGTH = 6, 6, 3, 2, 2, 3
SIZES = [HEADS * SIZE, SHARED * SIZE, SHARED * SIZE]


class Attention(nn.Module):
    """Pairs of heads share keys and values; the parts are slices, or a split."""

    def __init__(self, slices):
        super().__init__()
        self.qkv, self.out, self.slices = nn.Linear(WIDTH, sum(SIZES)), nn.Linear(HEADS * SIZE, WIDTH), slices

    def forward(self, x):
        y, a, b = self.qkv(x), SIZES[0], SIZES[0] + SIZES[1]
        parts = (y[..., :a], y[..., a:b], y[..., b:]) if self.slices else y.clamp(-3, 3).split(SIZES, -1)
        q, k, v = (part.view(*x.shape[:2], -1, SIZE).transpose(1, 2) for part in parts)
        y = F.scaled_dot_product_attention(q, k, v, enable_gqa=True)
        return x + self.out(y.transpose(1, 2).flatten(2))


class Mixer(nn.Module):
    """As in a state-space layer: a gate, features that a convolution mixes in time and that are parts themselves, and a step size of each head."""

    def __init__(self):
        super().__init__()
        self.inner = HEADS * SIZE
        self.fused = nn.Linear(WIDTH, 2 * self.inner + SHARED * 2 + HEADS)
        self.conv = nn.Conv1d(self.inner + SHARED * 2, self.inner + SHARED * 2, 3, groups=self.inner + SHARED * 2, padding=2)
        self.out = nn.Linear(self.inner, WIDTH)

    def forward(self, x):
        gate, mixed, step, none = self.fused(x).split([self.inner, self.inner + SHARED * 2, HEADS, 0], -1)
        mixed = F.silu(self.conv(mixed.transpose(1, 2))[..., :LENGTH]).transpose(1, 2)
        value, left, right = mixed.split([self.inner, SHARED, SHARED], -1)
        value = value.view(*x.shape[:2], HEADS, SIZE) * step.sigmoid()[..., None]
        value = value * (left * right).repeat_interleave(HEADS // SHARED, 2)[..., None]
        return x + self.out(value.flatten(2) * F.silu(gate)) + none.sum()


class Fused(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(Attention(True), Attention(False), Mixer())

    def forward(self, x, target):
        return F.mse_loss(self.layers(x), target)


PLAN = places("module:layers.*.qkv=colwise", "module:layers.2.fused=colwise", "module:layers.*.out=rowwise")
WRITTEN = places("param:layers.*.qkv.weight=tp:S(0, blocks = [12, 6, 6])", "module:layers.2.fused=colwise", "module:layers.*.out=rowwise")


@pytest.fixture(scope="module")
def fused(tmp_path_factory):
    torch.manual_seed(6)
    inputs = {name: torch.randn(ROWS, LENGTH, WIDTH).double() for name in ("x", "target")}
    return Trainee(tmp_path_factory.mktemp("fused"), "fused", Fused().double(), inputs)


# Three groups of heads over 2, 3 and 4 ranks.
@pytest.mark.parametrize("mesh, plan", [("tp=2", PLAN), ("tp=3", WRITTEN), ("tp=4", PLAN), ("dp=2,tp=2", PLAN), ("tp=3,dp=2", PLAN)])
def test_training(fused, tmp_path, mesh, plan):
    program = tmp_path / "fused.so"
    data = places("input:*=dp:S(0)") if "dp" in mesh else ()
    fused.compile(program, "--mesh", mesh, *plan, *data, *train("loss=0", "optimizer=adamw", "zero=1" if "dp" in mesh else "zero=0"))
    log, saved = fused.train(program)
    check(None, mesh, (), fused.pytorch("adamw"), log, saved)
    facts = json.loads(run(tool("shard-run"), "--manifest", program).stdout)
    layouts = {p["names"][0]: p["layout"] for p in facts["parameters"]}
    assert "blocks = [12, 6, 6]" in layouts["layers.0.qkv.weight"] and "blocks = [12, 6, 6]" in layouts["layers.1.qkv.bias"]
    assert "blocks = [12, 12, 3, 3, 6]" in layouts["layers.2.fused.weight"] and "blocks = [12, 3, 3]" in layouts["layers.2.conv.weight"]
    if mesh == "tp=4":  # each element is in one file, and the last rank has none of these
        save(fused, program, tmp_path / "sharded", "--weights", fused.source, steps=5)
        read = load_sharded(tmp_path / "sharded")
        assert read.keys() == saved.keys() and all(torch.equal(read[k], saved[k]) for k in saved)


@pytest.mark.parametrize("mesh", ["tp=2", "tp=3"])
def test_what_is_moved(fused, mesh):
    """Forward and backward each reduce one tensor a layer, of the size of the hidden states; gradients of what all ranks have are theirs already."""
    done = run(tool("shardc"), "explain", fused.source, "--mesh", mesh, *PLAN, *train("loss=0", "optimizer=adamw"), "--format", "json")
    n, collectives = int(mesh[3:]), json.loads(done.stdout)["collectives"]
    assert {entry["kind"] for entry in collectives} == {"all_reduce"}
    # Of the first layer's input no gradient is asked for.
    reduced = sum(entry["bytes_per_rank"] for entry in collectives if entry["entry"] == "train_step")
    assert 0 < reduced <= (3 + 2) * 2 * (n - 1) / n * ROWS * LENGTH * WIDTH * 8 + 64


def test_redistributions_by_plan(tmp_path):
    """A projection's output may be asked for in blocks, too, and weights stay whole: the rows are cut on each rank."""
    module = nn.Linear(5, 11).double()
    x = torch.randn(4, 5).double()
    torch.export.save(shardc_export.export(module, (x,)), tmp_path / "model.pt2")
    save_file({"input": x}, tmp_path / "in.safetensors")
    for mesh, asked in [("tp=2", "tp:S(1, blocks = [6, 5], granule = [3, 1])"), ("tp=4", "tp:S(1, blocks = [1, 7, 3])"),
                        ("dp=2,tp=3", "dp:S(0),tp:S(1, blocks = [9, 2])")]:
        for weight in ("R", "tp:S(0)", "tp:S(1)"):
            plan = places(f"output:*={asked}", f"param:weight={weight}")
            run(tool("shardc"), "compile", tmp_path / "model.pt2", "--mesh", mesh, *plan, "-o", tmp_path / "model.so")
            run(tool("shard-run"), tmp_path / "model.so", "--weights", tmp_path / "model.pt2", "--inputs", tmp_path / "in.safetensors", "--outputs",
                tmp_path / "out.safetensors", "--timeout", 30)
            (got,) = load_file(tmp_path / "out.safetensors").values()
            assert torch.allclose(got, module(x), rtol=1e-12, atol=1e-12), (mesh, asked, weight)
