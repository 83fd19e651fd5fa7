# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Spatial dims shared out over ranks: windows of every kind, and whole models, forward and gradients. Boundary rows are exchanged, and no image is
gathered."""
import json
import sys

import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from torch import nn

from conftest import ROOT, run, tool
from plans import places
from window_cases import BATCH, MESHES, draw, mesh_of, problems_of

sys.path.insert(0, str(ROOT / "tools/export"))
import shardc_export


@pytest.mark.parametrize("number", range(len(MESHES)))
def test_random_windows(tmp_path, number):
    """Of `window_cases.py`, which runs as many as one likes."""
    seeds = range(number * BATCH, (number + 1) * BATCH)
    mesh = mesh_of(seeds[0])
    problems = problems_of([draw(seed, mesh) for seed in seeds], mesh, tmp_path)
    assert not problems, "\n".join(problems.values())


class Block(nn.Module):
    def __init__(self, conv, inside, outside):
        super().__init__()
        self.first, self.second = conv(inside, outside, 3, padding=1), conv(outside, outside, 3, padding=1)
        self.norm = nn.GroupNorm(2, outside)

    def forward(self, x):
        return F.silu(self.norm(self.second(F.silu(self.first(x)))))


class UNet(nn.Module):
    """Down by strided convolutions and pools, up by a transposed convolution and by resizing."""

    def __init__(self, spatial, width=4):
        super().__init__()
        conv, up = ((nn.Conv1d, nn.ConvTranspose1d), (nn.Conv2d, nn.ConvTranspose2d), (nn.Conv3d, nn.ConvTranspose3d))[spatial - 1]
        self.pool = (F.max_pool1d, F.max_pool2d, F.max_pool3d)[spatial - 1]
        self.enter, self.middle, self.deep = Block(conv, 2, width), Block(conv, width, 2 * width), Block(conv, 2 * width, 2 * width)
        self.down = conv(2 * width, 2 * width, 3, stride=2, padding=1)
        self.up = up(2 * width, 2 * width, 2, stride=2)
        self.joined, self.leave = Block(conv, 4 * width, width), Block(conv, 2 * width, width)
        self.last = conv(width, 2, 1)

    def forward(self, x, target):
        first = self.enter(x)
        second = self.middle(self.pool(first, 2))
        third = self.deep(self.down(second))
        back = self.joined(torch.cat([self.up(third), second], 1))
        back = F.interpolate(back, size=first.shape[2:], mode="nearest")
        y = self.last(self.leave(torch.cat([back, first], 1)))
        return F.mse_loss(y, target), y


SIZES = {1: (32,), 2: (24, 20), 3: (8, 12, 8)}


@pytest.fixture(scope="module", params=SIZES)
def unet(request, tmp_path_factory):
    torch.manual_seed(request.param)
    folder = tmp_path_factory.mktemp("unet")
    module, sizes = UNet(request.param).double(), SIZES[request.param]
    inputs = {name: torch.randn(2, 2, *sizes, dtype=torch.float64) for name in ("x", "target")}
    torch.export.save(shardc_export.export(module, tuple(inputs.values())), folder / "model.pt2")
    save_file(inputs, folder / "in.safetensors")
    loss, y = module(*inputs.values())
    loss.backward()
    return folder, module, loss, y


@pytest.mark.parametrize("mesh,axes", [("sp=2", "sp:S(2)"), ("sp=3", "sp:S(2)"), ("dp=2,sp=2", "dp:S(0),sp:S(2)"), ("h=2,w=2", "h:S(2),w:S(3)")])
def test_unet(unet, mesh, axes):
    folder, module, loss, y = unet
    if "w" in mesh and y.dim() == 3:
        pytest.skip("a line has no width")
    plan = ["--mesh", mesh, *places(f"input:*={axes}", f"output:1={axes}")]
    run(tool("shardc"), "compile", folder / "model.pt2", *plan, "--gradients", 0, "-o", folder / "model.so")
    manifest = json.loads(run(tool("shard-run"), folder / "model.so", "--manifest").stdout)["entries"][-1]
    run(tool("shard-run"), folder / "model.so", "--entry", manifest["name"], "--weights", folder / "model.pt2", "--inputs", folder / "in.safetensors",
        "--outputs", folder / "out.safetensors", "--timeout", 30)
    got = load_file(folder / "out.safetensors")
    names = [o["name"] for o in manifest["outputs"] if o["kind"] == "user"]
    assert torch.allclose(got[names[0]], loss.detach(), rtol=1e-9)
    assert torch.allclose(got[names[1]], y.detach(), rtol=1e-9, atol=1e-9)
    for name, parameter in module.named_parameters():
        assert (got[name] - parameter.grad).abs().max() <= 1e-9 * max(1.0, float(parameter.grad.abs().max())), name
