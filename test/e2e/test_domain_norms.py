# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Norms, statistics, losses, attention and windows over a domain that is shared out unevenly, forward and gradients, in f64 against PyTorch. Norms are in
training: what they write into their running statistics is compared, too. All cases are one model, each with an image of its own."""
import copy
import json
import sys
from typing import Callable, NamedTuple

import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from torch import nn

from conftest import ROOT, run, tool
from exported import Function
from plans import places

sys.path.insert(0, str(ROOT / "tools/export"))
import shardc_export

pytestmark = pytest.mark.xdist_group("domain norms")  # the model is exported once
F64 = torch.float64
IMAGE, LINE, ROWS = (2, 4, 13, 11), (2, 2, 13), (13, 5)
STEPS = 2  # so that the second begins with what the first wrote


class Case(NamedTuple):
    call: Callable
    shape: tuple
    dim: int = 2  # which the domain shards; beside it the next, on a mesh of two such axes
    norm: Callable = None  # makes a module, which `call` gets behind the image


def norm(make, shape=IMAGE):
    return Case(lambda x, module: module(x).sin(), shape, 2, make)


def mean_of(loss, shape=IMAGE, dim=2, **options):
    """With a target that is computed where the image is."""
    return Case(lambda x: loss(x, x.detach().roll(1, 1) * 2, **options), shape, dim)


def labels(x):
    """A class for each row, or for each place of an image."""
    return (torch.arange(x[:, 0].numel()) * 7 % x.shape[1]).reshape(x[:, 0].shape)


CASES = {
    # Norms.
    "batch norm": norm(lambda: nn.BatchNorm2d(4)),
    "batch norm, with a momentum": norm(lambda: nn.BatchNorm2d(4, momentum=0.3, eps=1e-3)),
    "batch norm of a line": norm(lambda: nn.BatchNorm1d(2), LINE),
    "batch norm without statistics": norm(lambda: nn.BatchNorm2d(4, affine=False, track_running_stats=False)),
    "instance norm": norm(lambda: nn.InstanceNorm2d(4, affine=True, track_running_stats=True)),
    "instance norm of a line": norm(lambda: nn.InstanceNorm1d(2), LINE),
    "layer norm": norm(lambda: nn.LayerNorm(IMAGE[1:])),
    "layer norm of rows and columns": norm(lambda: nn.LayerNorm(IMAGE[2:])),
    "group norm": norm(lambda: nn.GroupNorm(2, 4)),
    "group norm of one group": norm(lambda: nn.GroupNorm(1, 4)),
    "group norm of channels": norm(lambda: nn.GroupNorm(4, 4)),
    "group norm of a line": norm(lambda: nn.GroupNorm(2, 2), LINE),
    # Statistics.
    "sum": Case(lambda x: x.sum((2, 3), keepdim=True), IMAGE),
    "mean": Case(lambda x: x.mean(2, keepdim=True), IMAGE),
    "mean of both dims": Case(lambda x: x - x.mean((2, 3), keepdim=True), IMAGE),
    "mean of everything": Case(lambda x: x.square().mean(), IMAGE),
    "variance": Case(lambda x: x.var((2, 3), keepdim=True), IMAGE),
    "standard deviation, biased": Case(lambda x: x.std(2, correction=0, keepdim=True), LINE),
    "variance and mean": Case(lambda x: sum(torch.var_mean(x, 2, keepdim=True)), LINE),
    "sum of rows": Case(lambda x: x.sum(0, keepdim=True), ROWS, 0),
    "norm": Case(lambda x: torch.linalg.vector_norm(x, dim=(2, 3), keepdim=True), IMAGE),
    "largest": Case(lambda x: x.amax((2, 3), keepdim=True), IMAGE),
    "softmax": Case(lambda x: x.softmax(2), LINE),
    # Losses.
    "mean square error": mean_of(F.mse_loss),
    "mean square error of rows": mean_of(F.mse_loss, ROWS, 0),
    "absolute error": mean_of(F.l1_loss),
    "absolute error of rows": mean_of(F.l1_loss, ROWS, 0),
    "smooth error": mean_of(F.smooth_l1_loss),
    "sum of square errors": mean_of(F.mse_loss, reduction="sum"),
    "cross entropy of rows": Case(lambda x: F.cross_entropy(x, labels(x)), ROWS, 0),
    "cross entropy of an image": Case(lambda x: F.cross_entropy(x, labels(x)), IMAGE),
    "cross entropy, some ignored": Case(lambda x: F.cross_entropy(x, labels(x), ignore_index=1, label_smoothing=0.1), IMAGE),
    # Attention of each row to those before it.
    "causal attention": Case(lambda x: F.scaled_dot_product_attention(x, x.sin(), x.cos(), is_causal=True), (2, 2, 13, 4)),
    # Windows.
    "stride 2 on parts of 5": Case(lambda x: F.conv1d(x, torch.ones(3, 2, 3, dtype=F64), None, 2, 1), (1, 2, 10)),
    "pool across a seam": Case(lambda x: F.max_pool1d(x, 2) + F.avg_pool1d(x, 2), (1, 2, 10)),
    "even kernel": Case(lambda x: F.conv1d(x, torch.ones(3, 2, 4, dtype=F64).cumsum(2), None, 1, 2), LINE),
    "even kernel of an image": Case(lambda x: F.conv2d(x, torch.ones(3, 4, 4, 2, dtype=F64).cumsum(2), padding=(1, 1)), IMAGE),
    "pool whose stride is not its kernel": Case(lambda x: F.max_pool2d(x, 3, 2, 1) + F.avg_pool2d(x, 3, 2, 1, count_include_pad=False), IMAGE),
    "pool of windows apart": Case(lambda x: F.max_pool2d(x, 2, 3) + F.avg_pool2d(x, 2, 3), IMAGE),
    "halo wider than a part": Case(lambda x: F.conv1d(x, torch.ones(3, 2, 11, dtype=F64).cumsum(2), None, 1, 5), LINE),
    "halo wider than a part of a pool": Case(lambda x: F.max_pool1d(x, 11, 1, 5), LINE),
}


class All(nn.Module):
    """A loss, what each case makes, and what its norms have written."""

    def __init__(self):
        super().__init__()
        self.x = nn.ParameterList(torch.randn(case.shape, dtype=F64) for case in CASES.values())
        self.norm = nn.ModuleList(case.norm() if case.norm else nn.Identity() for case in CASES.values())
        for parameter in self.norm.parameters():
            nn.init.uniform_(parameter, 0.5, 1.5)

    def forward(self):
        results = [case.call(x, module) if case.norm else case.call(x) for case, x, module in zip(CASES.values(), self.x, self.norm, strict=True)]
        loss = sum((y * (torch.arange(y.numel(), dtype=F64).reshape(y.shape) * 0.7).cos()).sum() for y in results)
        return loss, *results, *(buffer * 1 for buffer in self.buffers())


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    torch.manual_seed(8)
    folder, module = tmp_path_factory.mktemp("domain"), All().double()
    program = shardc_export.export(copy.deepcopy(module), (), train=True)
    torch.export.save(program, folder / "m.pt2")
    save_file({}, folder / "in.safetensors")
    for _ in range(STEPS):
        outputs = module()
    named = dict(module.named_parameters())
    gradients = dict(zip(named, torch.autograd.grad(outputs[0], list(named.values()))))
    whats = ["loss", *CASES, *(name for name, _ in module.named_buffers())]
    return folder, list(zip(program.graph_signature.user_outputs, whats, outputs, strict=True)), gradients


# Parts of which one is empty and one is shorter than the halo.
UNEVEN = {13: [3, 0, 1, 9], 10: [5, 0, 1, 4]}
MESHES = {
    "sp=1": lambda shape, dim: f"sp:S({dim})",
    "sp=4": lambda shape, dim: f"sp:S({dim}, sizes = {UNEVEN[shape[dim]]})",
    "h=2,w=2": lambda shape, dim: f"h:S({dim})" + (f",w:S({dim + 1})" if len(shape) == 4 else f",w:S({dim})"),
    "dp=2,sp=2": lambda shape, dim: f"sp:S({dim})" + (",dp:S(0)" if dim and shape[0] == 2 else ""),
}


@pytest.mark.parametrize("mesh", MESHES)
def test_values_gradients_and_statistics(model, tmp_path, mesh):
    folder, outputs, gradients = model
    plan = places(*(f"param:x.{i}={MESHES[mesh](case.shape, case.dim)}" for i, case in enumerate(CASES.values())))
    run(tool("shardc"), "compile", folder / "m.pt2", "--mesh", mesh, *plan, "--gradients", 0, "-o", tmp_path / "m.so")
    run(tool("shard-run"), tmp_path / "m.so", "--entry", "gradients", "--weights", folder / "m.pt2", "--inputs", folder / "in.safetensors",
        "--outputs", tmp_path / "out.safetensors", "--steps", STEPS, "--threads", 1, "--timeout", 60)
    got = load_file(tmp_path / "out.safetensors")
    cases = list(CASES)
    wants = [(name, what, want.detach()) for name, what, want in outputs]
    wants += [(name, f"gradient of {name} in {cases[int(name.split('.')[1])]}", want) for name, want in gradients.items()]
    wrong = []
    for name, what, want in wants:
        have = got[name]
        assert have.shape == want.shape and have.dtype == want.dtype, what
        error = float((have - want).abs().max())
        if not error <= 1e-9 * max(1.0, float(want.abs().max())):
            wrong.append(f"{what} differs by {error:.3g}")
    assert not wrong, "\n".join(wrong)


class Volume(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv3d(2, 3, 3, padding=1)

    def forward(self, x):
        y = self.conv(x)
        return y.square().mean(), y


class Circular(nn.Module):
    def __init__(self):
        super().__init__()
        self.x, self.w = nn.Parameter(torch.randn(2, 2, 24)), nn.Parameter(torch.randn(2, 2, 3))

    def forward(self, v):
        y = F.conv1d(F.pad(self.x, (1, 1), "circular"), self.w)
        return (y.sin() * v).sum(), y


class Pool(nn.Module):
    def __init__(self):
        super().__init__()
        self.x = nn.Parameter(torch.randn(2, 2, 48))

    def forward(self, w):
        y = F.avg_pool1d(self.x, 2)
        return (y * w).sum(), y


LEAST = {
    "sizes given at both ends": (Function(lambda x: F.conv1d(x, torch.ones(3, 2, 3), padding=1)), (2, 2, 24), 16,
                                 ["input:0=sp:S(2, sizes = [12, 12])", "output:0=sp:S(2, sizes = [12, 12])"]),
    "roll of a dim that the ranks divide": (Function(lambda x: x.roll(2, 2)), (2, 2, 24), 32, ["input:0=sp:S(2)", "output:0=sp:S(2)"]),
    "two consumers": (Function(lambda x: F.avg_pool1d(x, 3, 1, 1) + F.avg_pool1d(x, 5, 1, 2)), (2, 2, 24), 32, ["input:0=sp:S(2)", "output:0=sp:S(2)"]),
    "batch norm": (Function(lambda x: F.batch_norm(x, None, None, training=True)), (2, 2, 24), 16, ["input:0=sp:S(2)", "output:0=sp:S(2)"]),
    # Two borders of 2 x 8 x 8 elements, and the derivatives by weights.
    "derivative by the weights of a volume": (Volume(), (1, 2, 16, 8, 8), 512 + 4 + 4 * (3 * 2 * 27 + 3), ["input:0=sp:S(2)", "output:1=sp:S(2)"]),
    # Two borders of 4 elements each, and one sum of the loss and the derivatives by weights.
    "circular convolution": (Circular(), (2, 2, 24), 32 + 32 + 4 + 4 * 2 * 2 * 3, ["param:x=sp:S(2)", "input:0=sp:S(2, sizes = [12, 12])"]),
    "laplacian of a ring": (Function(lambda x: x.roll(1, 2) + x.roll(-1, 2) - 2 * x), (2, 2, 24), 32, ["input:0=sp:S(2)", "output:0=sp:S(2)"]),
    "sum from the end": (Function(lambda x: x.flip(2).cumsum(2).flip(2)), (2, 2, 24), 16, ["input:0=sp:S(2)", "output:0=sp:S(2)"]),
    "parts of two sizes": (Function(lambda x: F.adaptive_avg_pool1d(x, 6)), (2, 2, 13), 16, ["input:0=sp:S(2)", "output:0=sp:S(2)"]),
    "pool of a line with a given size": (Pool(), (2, 2, 24), 4, ["param:x=sp:S(2)", "input:0=sp:S(2, sizes = [12, 12])"]),
}


@pytest.mark.parametrize("case", LEAST)
def test_least_bytes(tmp_path, case):
    module, shape, least, plan = LEAST[case]
    torch.export.save(shardc_export.export(module, (torch.randn(shape),)), tmp_path / "m.pt2")
    gradients = ["--gradients", 0] if list(module.parameters()) else []
    text = run(tool("shardc"), "explain", tmp_path / "m.pt2", "--mesh", "sp=2", *places(*plan), *gradients, "--format", "json").stdout
    moved = sum(c["bytes_per_rank"] for c in json.loads(text)["collectives"] if not gradients or c["entry"] == "gradients")
    if moved > least:
        raise AssertionError(f"{case}: {moved} bytes, where {least} would do")
