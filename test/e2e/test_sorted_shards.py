# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sorts of long lists that are sharded: each element is sent once, and values and positions are those of PyTorch's stable sort, with all
that is hard to order among the elements. A short list is gathered."""
import json
import math

import pytest
import torch
from safetensors.torch import load_file, save_file

from conftest import run, tool
from exported import Exported
from plans import places

LENGTH = 200_003


def numbers(dtype, length, generator):
    """Of a type, with many that are equal, and all that has an order of its own."""
    if dtype == torch.bool:
        return torch.randint(0, 2, (length,), generator=generator).bool()
    if not dtype.is_floating_point:
        limits = torch.iinfo(dtype)
        wide = torch.randint(-2**62, 2**62, (length,), generator=generator)
        drawn = (wide if dtype == torch.int64 else wide % (limits.max - limits.min + 1) + limits.min).to(dtype)
        drawn[::7] = torch.tensor([limits.min, limits.max], dtype=dtype)[torch.arange(len(drawn[::7])) % 2]
        drawn[1::5] = 3
        return drawn
    drawn = torch.randn(length, generator=generator, dtype=torch.float64).to(dtype)
    special = torch.tensor([0.0, -0.0, math.inf, -math.inf, math.nan, -math.nan, 1.0, torch.finfo(dtype).tiny / 4], dtype=dtype)
    drawn[::3] = special[torch.randint(0, len(special), drawn[::3].shape, generator=generator)]
    return drawn


class Sorts(torch.nn.Module):
    def __init__(self, descending):
        super().__init__()
        self.descending = descending

    def forward(self, *lists):
        return [part for x in lists for part in torch.sort(x, stable=True, descending=self.descending)]


def check(tmp_path, lists, mesh, place, descending, *options):
    """Compiles, runs and compares; returns the kinds of the collectives."""
    module, inputs = Sorts(descending), {f"lists_{i}": x for i, x in enumerate(lists)}
    torch.export.save(torch.export.export(module, tuple(lists)), tmp_path / "m.pt2")
    save_file(inputs, tmp_path / "x.safetensors")
    run(tool("shardc"), "compile", tmp_path / "m.pt2", "--mesh", mesh, *places(*place), "-o", tmp_path / "m.so")
    run(tool("shard-run"), tmp_path / "m.so", "--inputs", tmp_path / "x.safetensors", "--outputs", tmp_path / "y.safetensors", *options)
    got = load_file(tmp_path / "y.safetensors")
    for i, want in enumerate(module(*lists)):
        name = f"getitem_{i}" if i else "getitem"
        assert torch.equal(got[name].nan_to_num(12345.0), want.nan_to_num(12345.0)), f"output {i}"
        if want.is_floating_point():
            assert torch.equal(got[name].isnan(), want.isnan())
    explained = json.loads(run(tool("shardc"), "explain", tmp_path / "m.pt2", "--mesh", mesh, *places(*place), "--format", "json").stdout)
    return [c["kind"] for c in explained["collectives"]]


UNEVEN = f"tp:S(0, sizes=[0, {LENGTH - 70_000}, 1, 69999])"


@pytest.mark.parametrize("mesh, layout, descending, types", [
    ("tp=3", "tp:S(0)", False, [torch.float32, torch.int64, torch.uint8, torch.bool]),
    ("dp=2,tp=2", "dp:S(0),tp:S(0)", True, [torch.float64, torch.bfloat16, torch.int32]),
    ("tp=4", UNEVEN, True, [torch.float32, torch.float16, torch.int16, torch.int8])])
def test_types(tmp_path, mesh, layout, descending, types):
    generator = torch.Generator().manual_seed(5)
    lists = [numbers(dtype, LENGTH, generator) for dtype in types]
    assert "all_to_all" in check(tmp_path, lists, mesh, [f"input:*={layout}", f"output:*={layout}"], descending)


def test_a_short_list_is_gathered(tmp_path):
    lists = [torch.randn(101), torch.randint(0, 5, (4001,))]
    assert set(check(tmp_path, lists, "tp=4", ["input:*=tp:S(0)", "output:*=tp:S(0)"], True, "--check")) == {"all_gather"}


class Loss(torch.nn.Module):
    """The largest count most."""
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(120_001, 1))

    def forward(self, x):
        ordered = torch.sort(self.weight * x, 0).values
        return (ordered * torch.arange(120_001.0)[:, None] / 120_001).mean(), ordered


def test_gradients(tmp_path):
    torch.manual_seed(2)
    model = Exported(tmp_path, Loss(), dict(x=torch.rand(120_001, 1)))
    plan = places("input:x=tp:S(0)", "param:weight=tp:S(0)", "output:1=tp:S(0)")
    model.run("tp=4", *plan)
    assert "all_to_all" in model.moved("tp=4", *plan)
