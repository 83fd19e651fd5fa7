# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fourier transforms of sharded fields in f64: values and gradients are PyTorch's on 2 to 8 ranks, and what is exchanged is the frequencies that are kept, or the
field once there and once back."""
import functools
import itertools
import json

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from conftest import run, tool
from exported import Exported
from plans import places

pytestmark = pytest.mark.xdist_group("domain transforms")


class Spectral(nn.Module):
    """Spectral convolutions in one to three dims: complex weights for the lowest frequencies, of either sign in all dims but the last."""

    def __init__(self, modes, channels=4, norm="backward", dtype=torch.float64):
        super().__init__()
        self.modes, self.norm = modes, norm
        self.dims = tuple(range(2, 2 + len(modes)))
        complex_type = torch.complex128 if dtype == torch.float64 else torch.complex64
        self.weights = nn.ParameterList(torch.randn(channels, channels, *modes, dtype=complex_type) / channels for _ in range(2 ** (len(modes) - 1)))
        self.skip = nn.Parameter(torch.randn(channels, channels, dtype=dtype) / channels)

    def corners(self):
        low, high = zip(*((slice(None, m), slice(-m, None)) for m in self.modes), strict=True)
        return itertools.product(*zip(low[:-1], high[:-1], strict=True), [low[-1]])

    def spectral(self, x):
        ft = torch.fft.rfftn(x, dim=self.dims, norm=self.norm)
        out = torch.zeros_like(ft)
        for weight, corner in zip(self.weights, self.corners(), strict=True):
            at = (slice(None), slice(None), *corner)
            out[at] = torch.einsum("bi...,io...->bo...", ft[at], weight)
        return torch.fft.irfftn(out, s=x.shape[2:], dim=self.dims, norm=self.norm)

    def forward(self, x):
        y = F.gelu(self.spectral(x) + torch.einsum("bi...,io->bo...", x, self.skip))
        return y.square().mean(), y


class Filter(nn.Module):
    """All frequencies of some dims, each times a weight. Of complex numbers, where it says so."""

    def __init__(self, shape, dims, norm="ortho", of_complex=False):
        super().__init__()
        self.dims, self.norm, self.of_complex = dims, norm, of_complex
        sizes = [shape[d] if d in dims else 1 for d in range(len(shape))]
        if not of_complex:
            sizes[dims[-1]] = shape[dims[-1]] // 2 + 1
        self.weight = nn.Parameter(torch.randn(*sizes, 2, dtype=torch.float64))

    def forward(self, x):
        w = torch.view_as_complex(self.weight)
        if self.of_complex:
            y = torch.view_as_real(torch.fft.ifftn(torch.fft.fftn(torch.view_as_complex(x), dim=self.dims, norm=self.norm) * w, dim=self.dims, norm=self.norm))
        else:
            y = torch.fft.irfftn(torch.fft.rfftn(x, dim=self.dims, norm=self.norm) * w, s=[x.shape[d] for d in self.dims], dim=self.dims, norm=self.norm)
        return y.square().mean(), y


class LowPass(nn.Module):
    """The lowest frequencies of a complex field on a line, in the middle of a shifted transform."""

    def __init__(self, keep=3):
        super().__init__()
        self.keep, self.weight = keep, nn.Parameter(torch.randn(2, dtype=torch.float64))

    def forward(self, x):
        z = torch.fft.fft(torch.view_as_complex(x) * torch.view_as_complex(self.weight), dim=1)
        kept = torch.fft.fftshift(z, dim=1)[:, x.shape[1] // 2 - self.keep:x.shape[1] // 2 + self.keep + 1]
        return kept.abs().square().sum(), torch.view_as_real(kept)


def field(*shape):
    return {"x": torch.randn(*shape, dtype=torch.float64)}


MODELS = {
    "1d": lambda: (Spectral((5,)), field(2, 4, 21)),
    "1d-even": lambda: (Spectral((4,), norm="ortho"), field(2, 4, 24)),
    "2d": lambda: (Spectral((3, 4), norm="forward"), field(2, 4, 15, 11)),
    "2d-many": lambda: (Spectral((6, 5)), field(2, 4, 12, 10)),
    "1d-long": lambda: (Spectral((5,), norm="ortho"), field(2, 4, 96)),
    "2d-large": lambda: (Spectral((3, 4)), field(2, 4, 48, 40)),
    "3d-large": lambda: (Spectral((2, 3, 2)), field(1, 4, 32, 12, 10)),
    "3d": lambda: (Spectral((2, 3, 2)), field(1, 4, 11, 9, 6)),
    "filter-2d": lambda: (Filter((2, 14, 9, 6), (1, 2)), field(2, 14, 9, 6)),
    "filter-1d": lambda: (Filter((2, 13, 8), (1,), norm="backward"), field(2, 13, 8)),
    "filter-complex": lambda: (Filter((2, 10, 7), (1, 2), "forward", of_complex=True), field(2, 10, 7, 2)),
    "shifted": lambda: (LowPass(), field(3, 17, 2)),
}


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    @functools.cache
    def export(name):
        torch.manual_seed(7)
        return Exported(tmp_path_factory.mktemp(name), *MODELS[name]())
    return export


def both(axes):
    return f"input:x={axes}", f"output:1={axes}"


CASES = [
    *(("1d", f"sp={n}", both("sp:S(2)")) for n in (2, 3, 4, 8)),
    ("1d", "sp=4", both("sp:S(2, sizes = [9, 0, 2, 10])")),
    ("1d", "dp=2,sp=2", both("dp:S(0),sp:S(2)")),
    ("1d", "a=2,b=2", both("a:S(2),b:S(2)")),
    ("1d-even", "sp=3", both("sp:S(2)")),
    *(("2d", f"h={n}", both("h:S(2)")) for n in (2, 3, 4, 8)),
    ("2d", "w=3", both("w:S(3)")),
    ("2d", "h=2,w=2", both("h:S(2),w:S(3)")),
    ("2d", "h=2,w=4", both("h:S(2),w:S(3)")),
    ("2d", "h=3", both("h:S(2, sizes = [7, 0, 8])")),
    ("2d-many", "h=4", both("h:S(2)")),
    ("2d-many", "h=2,w=2", both("h:S(2),w:S(3)")),
    *(("3d", f"h={n}", both("h:S(2)")) for n in (2, 4)),
    ("3d", "h=2,w=2,d=2", both("h:S(2),w:S(3),d:S(4)")),
    ("3d", "d=4", both("d:S(4)")),
    *(("filter-2d", f"h={n}", both("h:S(1)")) for n in (2, 3, 4, 8)),
    ("filter-2d", "h=2,w=2", both("h:S(1),w:S(2)")),
    ("filter-2d", "h=3", both("h:S(1, sizes = [9, 0, 5])")),
    ("filter-1d", "sp=4", both("sp:S(1)")),
    ("filter-1d", "dp=2,sp=2", both("dp:S(0),sp:S(1)")),
    ("filter-complex", "h=2", both("h:S(1)")),
    ("filter-complex", "h=2,w=2", both("h:S(1),w:S(2)")),
    ("shifted", "sp=2", ("input:x=sp:S(1)",)),
    ("shifted", "sp=4", ("input:x=sp:S(1)",)),
]


@pytest.mark.parametrize("name, mesh, plan", CASES)
def test_values_and_gradients(exported, name, mesh, plan):
    exported(name).run(mesh, *places(*plan))


def moved(model, mesh, plan, entry):
    text = run(tool("shardc"), "explain", model.folder / "m.pt2", "--mesh", mesh, *places(*plan), "--gradients", "0", "--format", "json").stdout
    return [(c["kind"], c["bytes_per_rank"]) for c in json.loads(text)["collectives"] if c["entry"] == entry]


@pytest.mark.parametrize("name, mesh, plan, kept", [
    ("1d-long", "sp=4", both("sp:S(2)"), 2 * 4 * 5),
    ("2d-large", "h=4", both("h:S(2)"), 2 * 4 * 6 * 4),
    ("2d-large", "h=2,w=2", both("h:S(2),w:S(3)"), 2 * 4 * 6 * 4),
    ("3d-large", "h=4", both("h:S(2)"), 4 * 4 * 6 * 2),
])
def test_only_kept_frequencies_move(exported, name, mesh, plan, kept):
    """Their partial sums, forward and backward; beside them the loss and the gradient of the skip."""
    ranks = 4
    once = 2 * (ranks - 1) / ranks * 16 * kept
    forward = sum(size for _, size in moved(exported(name), mesh, plan, "forward"))
    assert once <= forward <= once + 32
    both_ways = sum(size for _, size in moved(exported(name), mesh, plan, "gradients"))
    assert 2 * once <= both_ways <= 2 * once + 32 + 2 * (ranks - 1) / ranks * 8 * 16


@pytest.mark.parametrize("mesh, plan", [("h=2", both("h:S(1)")), ("h=3", both("h:S(1)")), ("h=4", both("h:S(1)"))])
def test_filters_move_the_field_there_and_back(exported, mesh, plan):
    assert {kind for kind, _ in moved(exported("filter-2d"), mesh, plan, "forward")} == {"all_to_all", "all_reduce"}
