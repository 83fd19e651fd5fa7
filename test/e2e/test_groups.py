# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Grouped convolutions and group norms whose groups do not divide over the ranks: ranks hold whole groups, some of
them none, or the tensor changes its layout first; exported and TorchScript models, against PyTorch."""
import sys

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from conftest import BUILD, ROOT, run, tool
from plans import DATA_PARALLEL, places

sys.path.insert(0, str(ROOT / "tools/export"))
import shardc_export

PLUGIN = BUILD / "lib/shardc/shardc-torchscript"


class Grouped(nn.Module):
    """A residual block of 12 channels in 3, 6, 12, and 1 groups."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 12, 3, 2, 1)
        self.norm1 = nn.GroupNorm(3, 12)
        self.grouped = nn.Conv2d(12, 12, 3, padding=1, groups=3)
        self.norm2 = nn.GroupNorm(6, 12)
        self.depthwise = nn.Conv2d(12, 12, 3, padding=1, groups=12, bias=False)
        self.norm3 = nn.GroupNorm(1, 12)
        self.pointwise = nn.Conv2d(12, 6, 1)
        self.norm4 = nn.GroupNorm(2, 6)
        self.fc = nn.Linear(6, 5)

    def forward(self, x):
        x = torch.relu(self.norm1(self.stem(x)))
        y = torch.relu(self.norm2(self.grouped(x)))
        x = torch.relu(self.norm3(self.depthwise(y)) + x)
        x = self.norm4(self.pointwise(x))
        return self.fc(torch.flatten(nn.functional.adaptive_avg_pool2d(x, (1, 1)), 1))


def model():
    torch.manual_seed(11)
    made = Grouped().eval()
    for module in made.modules():
        if isinstance(module, nn.GroupNorm):
            nn.init.uniform_(module.weight, 0.5, 1.5)
            nn.init.normal_(module.bias, 0.0, 0.2)
    return made, torch.randn(3, 3, 13, 10)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    target = tmp_path_factory.mktemp("grouped")
    module, x = model()
    with torch.no_grad():
        save_file({"want": module(x)}, target / "want.safetensors")
    save_file({"x": x}, target / "in.safetensors")
    torch.export.save(shardc_export.export(module, (x,)), target / "grouped.pt2")
    torch.jit.script(module).save(str(target / "grouped.pt"))
    return target


STEM = places("module:stem=colwise")
CHANNELS = STEM + places("module:pointwise=rowwise")
PLANS = {
    # 12 channels over 4 are 3 each, but the groups have 4, so a rank holds none.
    "stem": ("tp=4", STEM), "channels": ("tp=4", CHANNELS), "three": ("tp=3", CHANNELS),
    "weight": ("tp=4", places("param:grouped.weight=tp:S(0)")),
    "depthwise": ("tp=5", places("param:depthwise.weight=tp:S(0)", "module:pointwise=rowwise")),
    "last": ("tp=4", places("module:pointwise=colwise", "module:fc=rowwise")),
    "batch": ("dp=4", DATA_PARALLEL), "image": ("tp=2", places("input:*=tp:S(2)")),
    "both": ("dp=2,tp=2", DATA_PARALLEL + CHANNELS),
}


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("form", ["pt2", pytest.param("pt", marks=pytest.mark.skipif(
    not PLUGIN.exists(), reason="built without the TorchScript plugin"))])
def test_groups_that_do_not_divide(folder, tmp_path, form, plan):
    mesh, options = PLANS[plan]
    source, program, out = folder / f"grouped.{form}", tmp_path / "m.so", tmp_path / "out.safetensors"
    shape = ["--input", "x=3x3x13x10xf32"] if form == "pt" else []
    run(tool("shardc"), "compile", source, *shape, "--mesh", mesh, *options, "-o", program)
    world = int(np.prod([int(axis.split("=")[1]) for axis in mesh.split(",")]))
    run(tool("shard-run"), "-n", world, program, "--weights", source, "--inputs", folder / "in.safetensors",
        "--outputs", out)
    (got,), want = load_file(out).values(), load_file(folder / "want.safetensors")["want"]
    torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-4 * float(want.abs().max()))
