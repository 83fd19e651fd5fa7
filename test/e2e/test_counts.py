# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Counts of values, scans and what else looks at all elements: whole, and with that dim sharded over more ranks than divide it. Results
that are as long as values say are refused by name, at their place, with what to write instead."""
import json
import sys

import pytest
import torch
from safetensors.torch import load_file, save_file

from conftest import ROOT, run, tool
from plans import places
from test_bad_input import refused

sys.path.insert(0, str(ROOT / "tools/export"))
import shardc_export  # noqa: E402

INF, NAN = float("inf"), float("nan")


class Counts(torch.nn.Module):
    def forward(self, x, n):
        counts, sums = n.flatten().bincount(), n.flatten().bincount(x[:, :, 0].flatten().abs())
        torch._check(counts.shape[0] == 5)
        torch._check(sums.shape[0] == 5)
        repeated = x[:, 0].repeat_interleave(n[:, 0], 0, output_size=9)
        return (counts, sums, torch.histc(x, 7), torch.histc(x, 4, -1, 1), torch.histc(n.float(), 5, 0, 4), repeated,
                torch.nonzero_static(n > 1, size=7), torch.nonzero_static(n, size=30, fill_value=-2))


class Scans(torch.nn.Module):
    def forward(self, x, n):
        return (x.cumprod(0), x.logcumsumexp(0), *x.cummax(0), *x.cummin(0), *n.cummax(0), *n.cummin(0), n.cumprod(0), x.cumsum(0),
                (n > 2).cumprod(0), *(n > 2).cummax(0))


class Orders(torch.nn.Module):
    def forward(self, x, n):
        return (*n.mode(0), *x.mode(0), x.nanmedian(0)[0], x.nanmedian(), x.quantile(0.3, 0), x.nanquantile(torch.tensor([0.1, 0.9]), 0),
                x.nanquantile(0.5), x.nansum(0), x.nanmean(), *torch.aminmax(n, dim=0))


def arguments(model):
    torch.manual_seed(4)
    x, n = torch.randn(5, 3, 4), torch.randint(0, 4, (5, 3))
    n[:, 0] = torch.tensor([2, 0, 4, 1, 2])
    if model is not Counts:
        x[3, 1, 0], x[0, 2], x[1, 0, 0] = NAN, 0.0, -0.0
    if model is Scans:
        x[2, 0], x[1, 1] = torch.tensor([INF, -INF, 0.0, 1.0]), -INF
    return x, n


@pytest.mark.parametrize("mesh", ["tp=1", "tp=2", "tp=4"], ids=lambda m: m.replace("=", ""))
@pytest.mark.parametrize("model", [Counts, Scans, Orders], ids=lambda m: m.__name__)
def test_against_pytorch(model, mesh, tmp_path):
    inputs = arguments(model)
    torch.export.save(shardc_export.export(model(), inputs), tmp_path / "m.pt2")
    run(tool("shardc"), "compile", tmp_path / "m.pt2", "--mesh", mesh, *places("input:x=tp:S(0)", "input:n=tp:S(0)"), "-o",
        tmp_path / "m.so")
    save_file(dict(zip(("x", "n"), inputs)), tmp_path / "in.safetensors")
    run(tool("shard-run"), tmp_path / "m.so", "--inputs", tmp_path / "in.safetensors", "--outputs", tmp_path / "out.safetensors")
    entry = json.loads(run(tool("shard-run"), tmp_path / "m.so", "--manifest").stdout)["entries"][0]
    got = load_file(tmp_path / "out.safetensors")
    for k, (output, want) in enumerate(zip(entry["outputs"], model()(*inputs), strict=True)):
        torch.testing.assert_close(got[output["name"]], want, rtol=2e-6, atol=1e-6, equal_nan=True, msg=lambda m, k=k: f"{k}: {m}")


class Bins(torch.nn.Module):
    def forward(self, n, x):
        counts = n.bincount()
        torch._check(counts.shape[0] == 4)
        return counts, torch.histc(x, 3)


def test_values_that_cannot_be_counted(tmp_path):
    """A value behind the last place, or in front of the first, and a histogram without finite bounds, are errors of the run."""
    inputs = torch.tensor([0, 3, 3]), torch.tensor([1.0, 2.0])
    torch.export.save(shardc_export.export(Bins(), inputs), tmp_path / "m.pt2")
    run(tool("shardc"), "compile", tmp_path / "m.pt2", "--mesh", "tp=1", "-o", tmp_path / "m.so")
    for n, x, fits in ((3, 2.0, True), (4, 2.0, False), (-1, 2.0, False), (3, INF, False), (3, NAN, False)):
        save_file({"n": torch.tensor([0, n, 3]), "x": torch.tensor([1.0, x])}, tmp_path / "in.safetensors")
        done = run(tool("shard-run"), tmp_path / "m.so", "--inputs", tmp_path / "in.safetensors", "--outputs",
                   tmp_path / "out.safetensors", check=False)
        assert (done.returncode == 0) == fits, (n, x, done.stderr)
        assert fits or "out of range" in done.stderr


LENGTHS = {
    "nonzero": (lambda n: n.nonzero(), "torch.nonzero_static"),
    "masked_select": (lambda n: n.masked_select(n > 1), "use torch.where, or multiply by the mask"),
    "_unique2": (lambda n: n.unique(), "compare neighbours"),
    "unique_consecutive": (lambda n: n.unique_consecutive(), "compare neighbours"),
    "unique_dim": (lambda n: n.unique(dim=0), "compare neighbours"),
    "repeat_interleave": (lambda n: n.repeat_interleave(n), "give output_size"),
    "bincount": (lambda n: n.bincount(), "torch._check(counts.shape[0] == N)"),
}


@pytest.mark.parametrize("name", LENGTHS)
def test_lengths_that_values_say(name, tmp_path):
    function, instead = LENGTHS[name]

    class Layer(torch.nn.Module):
        def forward(self, n):
            return function(n)

    model = torch.nn.Sequential(Layer())
    torch.export.save(torch.export.export(model, (torch.tensor([1, 2, 0, 2]),)), tmp_path / "m.pt2")
    refused(tool("shardc"), "compile", tmp_path / "m.pt2", "--mesh", "tp=1", "-o", tmp_path / "m.so",
            says=[f"aten.{name}", "test_counts.py", "depends on", instead])
