# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gradients of models with symbolic sizes: compiled once, run with several sizes, each within 1e-5 of the largest of each
gradient of PyTorch's. There are batches smaller than the number of ranks: then some have nothing."""
import functools
import math
import sys

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn
from torch.nn import functional as F

from conftest import ROOT, run, tool
from model_gradients import Language
from plans import DATA_PARALLEL, GPT2_TP, LLAMA_TP, places

sys.path += [str(ROOT / "test/models"), str(ROOT / "tools/export")]


class TwoLosses(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(12, 20), nn.Linear(20, 5)

    def forward(self, x, target):
        y = self.second(F.relu(self.first(x)))
        return F.mse_loss(y, target), y.abs().sum()


class Images(nn.Module):
    """Windows, sums back to images and lookups whose positions are counted when the program runs."""

    def __init__(self):
        super().__init__()
        self.conv, self.up = nn.Conv2d(3, 4, 3, padding=1), nn.ConvTranspose2d(4, 2, 2, stride=2)

    def forward(self, x):
        y = F.max_pool2d(F.relu(self.conv(x)), 2)
        z = self.up(y)
        smooth = F.interpolate(y, scale_factor=2.0, mode="bilinear")
        wide = F.pad(F.pad(y, (1, 1, 1, 1), mode="reflect"), (2, 0, 2, 3), mode="replicate")
        near = F.interpolate(wide, size=z.shape[2:])
        return F.adaptive_avg_pool2d(z * smooth.mean(1, True) * near.mean(1, True), 2).pow(2).sum()


def images(batch, height):
    return {"x": torch.randn(batch, 3, height, 8)}


def language(name):
    import builders
    return Language(getattr(builders, name)()[0]).eval()


def rows(batch):
    return {"x": torch.randn(batch, 12), "target": torch.randn(batch, 5)}


def ids(batch, sequence):
    return {"input_ids": torch.randint(0, 256, (batch, sequence))}


BATCH = ["x:0=batch:1:64", "target:0=batch:1:64"]
TOKENS = ["input_ids:0=batch:1:64", "input_ids:1=sequence:3:60"]
# The first sizes that a program sees are the largest: later ones must not read what those left behind.
MODELS = {
    "mse": (TwoLosses, rows, BATCH, [(9,), (2,), (3,)], ["--gradients", "0", "--gradients", "1"]),
    "images": (Images, images, ["x:0=batch:1:64", "x:2=height:6:64"], [(4, 12), (3, 8), (1, 6)], ["--gradients", "0"]),
    "gpt2": (lambda: language("gpt2"), ids, TOKENS, [(5, 33), (2, 3), (3, 7)], ["--gradients", "0"]),
    "llama": (lambda: language("llama"), ids, TOKENS, [(5, 33), (2, 3), (3, 7)], ["--gradients", "0"]),
}
CASES = {
    "mse-one": ("mse", "r=1", []),
    "mse-dp4": ("mse", "dp=4", DATA_PARALLEL),
    "mse-dp2-tp2": ("mse", "dp=2,tp=2", places("input:*=dp:S(0)", "module:first=colwise", "module:second=rowwise", "param:*=dp:S(0)")),
    "images-dp2": ("images", "dp=2", DATA_PARALLEL),
    "gpt2-one": ("gpt2", "r=1", []),
    "gpt2-tp4": ("gpt2", "tp=4", GPT2_TP),
    "llama-sharded": ("llama", "dp=2", DATA_PARALLEL + places("param:*=dp:S(0)")),
    "llama-dp2-tp2": ("llama", "dp=2,tp=2", DATA_PARALLEL + [p.replace("module:layers", "module:*layers") for p in LLAMA_TP]),
}


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dynamic-gradients")

    @functools.cache
    def make(name):
        from shardc_export import export
        torch.manual_seed(7)
        build, inputs, dynamic, sizes, _ = MODELS[name]
        model = build()
        path = folder / f"{name}.pt2"
        torch.export.save(export(model, (), inputs(*sizes[0]), dynamic), path)
        return model, path
    return make


@pytest.mark.parametrize("case", CASES)
def test_gradients(exported, tmp_path, case):
    name, mesh, plan = CASES[case]
    _, inputs, _, sizes, losses = MODELS[name]
    model, source = exported(name)
    program = tmp_path / "m.so"
    run(tool("shardc"), "compile", source, "--mesh", mesh, *plan, *losses, "-o", program)
    ranks = math.prod(int(axis.split("=")[1]) for axis in mesh.split(","))
    for size in sizes:
        values = inputs(*size)
        save_file(values, tmp_path / "in.safetensors")
        run(tool("shard-run"), "-n", ranks, program, "--entry", "gradients", "--weights", source, "--inputs", tmp_path / "in.safetensors",
            "--outputs", tmp_path / "out.safetensors")
        got = load_file(tmp_path / "out.safetensors")
        model.zero_grad()
        loss = model(**values)
        (sum(loss) if isinstance(loss, tuple) else loss).backward()
        wrong = []
        for key, parameter in model.named_parameters():
            want = parameter.grad
            error, scale = float((got[key] - want).abs().max()), float(want.abs().max())
            if not error <= 1e-5 * scale:
                wrong.append(f"{key} {error:.3g} of {scale:.3g}")
        assert not wrong, f"sizes {size}"
