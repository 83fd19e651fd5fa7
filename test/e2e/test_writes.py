# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes at positions, and sorts: whole, and with the dim sharded that is written or sorted along, over more ranks than divide it."""
import json
import sys

import pytest
import torch
from safetensors.torch import load_file, save_file

from conftest import ROOT, run, tool
from plans import places

sys.path.insert(0, str(ROOT / "tools/export"))
import shardc_export  # noqa: E402

INF, NAN = float("inf"), float("nan")
AT = torch.tensor([5, 0, 5, 2, 0])


def last_of(x, index, source):
    """index_copy along dim 0, one after the other."""
    x = x.clone()
    for place, row in zip(index.tolist(), source):
        x[place] = row
    return x


class Writes(torch.nn.Module):
    def forward(self, x, y, n, at, at2):
        put = x.clone()
        put[at[:4], :, -1 - at2[0, :] % 4] = y[0, 0, 0]
        row = x.clone()
        row[x > 0.5] = 2.0
        rows = x.clone()
        rows[x[:, 0, 0] > 0] = y[0]
        return (x.index_copy(0, at, y), torch.index_put(x, [at], y), put, row, rows,
                x.index_fill(0, at, 3.0), x.index_add(0, at, y, alpha=0.5), x.scatter(0, at2, y, reduce="multiply"),
                x.scatter(0, at2, y), x.scatter(0, at2, 7.0), n.scatter_reduce(0, at2[:, :, 0], n[:5], "mean"),
                x.scatter_reduce(0, at2, y, "amax", include_self=False), x.scatter_reduce(0, at2, y, "prod"),
                x.scatter_reduce(0, at2, y, "amin"), x.index_reduce(0, at, y, "mean", include_self=False),
                x.masked_scatter(x > 0, y), x.diagonal_scatter(y[0, :, :3], 1, 0, 2), (n > 2).index_put([at], n[:5] > 3))

    def expected(self, x, y, n, at, at2):
        answers = list(self(x, y, n, at, at2))
        answers[0] = answers[1] = last_of(x, at, y)
        return answers


class Sorts(torch.nn.Module):
    def forward(self, x, y, n, at, at2):
        return (*x.sort(0), *x.sort(0, descending=True), *x.topk(1, 0), *x.topk(4, 0, largest=False), *n.topk(2, 1),
                n.to(torch.uint8).sort(dim=1, stable=True)[0], n.argsort(dim=1, stable=True, descending=True), x.kthvalue(3, 0)[0],
                x.median(0)[0], x.msort(), x.bfloat16().topk(3, 0)[0], torch.searchsorted(y[:, 0, 0].msort(), x[:, :, 0]),
                torch.bucketize(x, y[:, 0, 0].msort(), right=True), x.roll((1, -2), (0, 2)), torch.count_nonzero(n, dim=0),
                torch.tril_indices(4, 3, -1) + n[0, 0], torch.triu_indices(3, 5, 1) + n[0, 0], torch.triu_indices(4, 2, -9) + n[0, 0],
                torch.bucketize(2.5, n.flatten().msort()), torch.searchsorted(n.flatten().msort(), 1.5))

    def expected(self, x, y, n, at, at2):
        answers = list(self(x, y, n, at, at2))
        # The first of equal elements, which PyTorch need not take.
        for first, (t, dim, count, down) in {0: (x, 0, 6, False), 2: (x, 0, 6, True), 4: (x, 0, 1, True), 6: (x, 0, 4, False),
                                             8: (n, 1, 2, True)}.items():
            answers[first:first + 2] = (r.narrow(dim, 0, count) for r in torch.sort(t, dim=dim, descending=down, stable=True))
        return answers


def arguments():
    torch.manual_seed(2)
    x = torch.randn(6, 3, 4)
    x[1, 0], x[3, 0], x[4, 0, 1] = x[0, 0], torch.tensor([INF, NAN, -0.0, -INF]), NAN
    x[2, 1] = torch.tensor([0.0, -0.0, 0.0, -0.0])
    x[5, 1] = -x[2, 1]
    at2 = torch.stack([torch.randperm(6)[:5] for _ in range(12)], 1).reshape(5, 3, 4)
    return x, torch.randn(5, 3, 4), torch.randint(0, 5, (6, 3)), AT, at2


@pytest.mark.parametrize("mesh", ["tp=1", "tp=2", "tp=4"], ids=lambda m: m.replace("=", ""))
@pytest.mark.parametrize("model", [Writes, Sorts], ids=lambda m: m.__name__)
def test_against_pytorch(model, mesh, tmp_path):
    inputs = arguments()
    torch.export.save(shardc_export.export(model(), inputs), tmp_path / "m.pt2")
    run(tool("shardc"), "compile", tmp_path / "m.pt2", "--mesh", mesh, *places("input:x=tp:S(0)", "input:n=tp:S(0)"), "-o",
        tmp_path / "m.so")
    save_file(dict(zip(("x", "y", "n", "at", "at2"), inputs)), tmp_path / "in.safetensors")
    run(tool("shard-run"), tmp_path / "m.so", "--inputs", tmp_path / "in.safetensors", "--outputs", tmp_path / "out.safetensors")
    entry = json.loads(run(tool("shard-run"), tmp_path / "m.so", "--manifest").stdout)["entries"][0]
    got = load_file(tmp_path / "out.safetensors")
    for k, (output, want) in enumerate(zip(entry["outputs"], model().expected(*inputs), strict=True)):
        torch.testing.assert_close(got[output["name"]], want, rtol=1e-6, atol=1e-6, equal_nan=True, msg=lambda m, k=k: f"{k}: {m}")


class Puts(torch.nn.Module):
    def forward(self, x, rows, columns):
        return x.index_put((rows, columns), torch.ones(2))


@pytest.mark.parametrize("mesh", ["tp=1", "tp=2"], ids=lambda m: m.replace("=", ""))
def test_an_index_outside_of_any_dim_is_an_error(mesh, tmp_path):
    """Of a dim that is whole too, where another one is sharded."""
    inputs = torch.zeros(4, 5), torch.tensor([0, 3]), torch.tensor([0, 4])
    torch.export.save(shardc_export.export(Puts(), inputs), tmp_path / "m.pt2")
    run(tool("shardc"), "compile", tmp_path / "m.pt2", "--mesh", mesh, *places("input:x=tp:S(0)"), "-o", tmp_path / "m.so")
    for column, fits in ((-5, True), (4, True), (5, False), (-6, False)):
        tensors = {"x": inputs[0], "rows": inputs[1], "columns": torch.tensor([0, column])}
        save_file(tensors, tmp_path / "in.safetensors")
        done = run(tool("shard-run"), tmp_path / "m.so", "--inputs", tmp_path / "in.safetensors", "--outputs",
                   tmp_path / "out.safetensors", check=False)
        assert (done.returncode == 0) == fits, done.stderr
        assert fits or "index out of range in aten.index_write" in done.stderr
