# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Windows, slices, splits, joins, pads and resampling over sharded dims of symbolic size (symbolic_windows.py), and that they gather nothing."""
import json

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn
from torch.nn import functional as F

import symbolic_windows
from conftest import BUILD, run, tool

# A seed for each kind, of which the layouts differ, and one of all kinds together.
SEEDS = {"convolution": 0, "transposed": 3, "pool": 2, "pad": 1, "padded": 22, "resampled": 101, "part": 4, "difference": 0, "moved": 1, "joined": 20, "adaptive": 3, "cut": 5, "halves": 6, None: 7}


@pytest.mark.parametrize("kind", SEEDS)
def test_against_pytorch(tmp_path, kind):
    wrong, _ = symbolic_windows.check(tmp_path, SEEDS[kind], kind, count=5)
    assert not wrong


@pytest.mark.skipif(not (BUILD / "lib/shardrt/libcuda-emulated.so").exists(), reason="the emulated device was not built")
@pytest.mark.parametrize("kind", ["convolution", "transposed", "pool", "part", "padded", "resampled", "adaptive", "halves"])
def test_on_the_emulated_device(tmp_path, monkeypatch, kind):
    monkeypatch.setenv("SHARDC_TEST_DEVICE", "emulated")
    wrong, _ = symbolic_windows.check(tmp_path, SEEDS[kind], kind, count=1)
    assert not wrong


@pytest.mark.parametrize("rows", (64, 12, 13))
def test_roll_as_pytorch_exports_it(rows, rolled):
    folder, model = rolled
    x = torch.randn(2, rows, 5)
    save_file({"x": x}, folder / "in.safetensors")
    run(tool("shard-run"), folder / "m.so", "--inputs", folder / "in.safetensors", "--outputs", folder / "out.safetensors", "--timeout", 60)
    got = load_file(folder / "out.safetensors")
    wanted = model(x)
    assert len(got) == len(wanted)
    for name, want in zip(sorted(got), wanted):
        assert torch.equal(got[name], want), name


@pytest.fixture(scope="module")
def rolled(tmp_path_factory):
    """Also by more than there are rows."""
    folder = tmp_path_factory.mktemp("rolled")
    model = symbolic_windows.Function(lambda x: tuple(torch.roll(x, by, 1) * (n + 2) for n, by in enumerate((1, -3, 97, -130))))
    program = torch.export.export(model, (torch.randn(2, 17, 5),), dynamic_shapes=({1: torch.export.Dim("rows", min=12)},))
    torch.export.save(program, folder / "m.pt2")
    run(tool("shardc"), "compile", folder / "m.pt2", "--mesh", "h=4", "--place", "input:x=h:S(1)", "-o", folder / "m.so")
    return folder, model


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.down, self.up = nn.Conv2d(4, 8, 3, stride=2, padding=1), nn.ConvTranspose2d(8, 4, 2, stride=2)

    def forward(self, x):
        y = F.max_pool2d(F.relu(self.down(x)), 3, 1, 1)
        return self.up(y)[:, :, 1:] + F.pad(y.mean(1, keepdim=True), (0, 0, 1, 0)).sum()


class Resampled(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.rand(4, 1, 1))

    def forward(self, x):
        x = x * self.scale
        corners = F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=True)
        ups = (F.interpolate(x, scale_factor=1.5), F.interpolate(x, scale_factor=(2, 1), mode="bicubic"), corners)
        return sum(y.square().sum() for y in ups) + F.pad(x, (0, 0, 2, 1), mode="replicate").square().sum()


@pytest.mark.parametrize("model, rows", [(Net, 6), (Resampled, 40)])
def test_moves_halos_only(tmp_path, model, rows):
    """Of an image that is assumed to have 128 rows, of 1 KiB each, a few; where there is a gradient, in both directions."""
    dims = {"x": {2: torch.export.Dim("height", min=16, max=1 << 20)}}
    torch.export.save(torch.export.export(model().eval(), (torch.randn(1, 4, 64, 64),), dynamic_shapes=dims), tmp_path / "m.pt2")
    gradients = ("--gradients", 0, "--entry", "gradients") if model is Resampled else ()
    text = run(tool("shardc"), "explain", tmp_path / "m.pt2", "--mesh", "h=4", "--place", "input:x=h:S(2)", *gradients, "--format", "json").stdout
    totals = json.loads(text)["totals"]
    assert totals["all_to_all"]["count"] and not any(totals.get(kind, {"count": 0})["count"] for kind in ("all_gather", "reduce_scatter"))
    assert totals.get("all_reduce", {"bytes_per_rank": 0})["bytes_per_rank"] < 1024
    assert totals["all_to_all"]["bytes_per_rank"] <= rows * 1024
