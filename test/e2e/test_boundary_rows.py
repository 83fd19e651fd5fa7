# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Parts, pads, joins and rolls along a sharded dim move the rows that a rank lacks, and gather no tensor. All sizes are odd, shards are uneven,
and on five ranks some have nothing of a part."""
import json
import sys

import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from torch import nn

from conftest import ROOT, run, tool
from plans import places

sys.path.insert(0, str(ROOT / "tools/export"))
import shardc_export

ROWS, COLUMNS = 13, 7
CASES = {
    "first cut off": lambda x: x[1:] * 2,
    "last cut off": lambda x: x[:-1] * 2,
    "a part from the middle": lambda x: x[3:8].abs(),
    "the last alone": lambda x: x[-1:] * 3,
    "differences": lambda x: x[1:] - x[:-1],
    "second differences": lambda x: x[2:] - 2 * x[1:-1] + x[:-2],
    "parts near and far": lambda x: x[:5] * x[1:6] + x[8:] * x[3:8],
    "padded": lambda x: F.pad(x, (0, 0, 2, 1), value=3.0),
    "padded on both dims": lambda x: F.pad(x, (1, 2, 2, 1)) + 1,
    "padded and cut": lambda x: F.pad(x, (1, -1, -2, 1), value=0.5),
    "cut by a pad": lambda x: F.pad(x, (0, 0, -3, -4)) * 2,
    "padded far": lambda x: F.pad(x, (0, 0, 0, 9)),
    "joined": lambda x: torch.cat([x, x[:3] * 2]),
    "joined thrice": lambda x: torch.cat([x[5:6], x, x[2:] + 1]),
    "rolled": lambda x: x.roll(1, 0),
    "rolled back": lambda x: x.roll(-3, 0) * 2,
    "rolled twice": lambda x: x.roll((2, 3), (0, 1)),
    "rolled around": lambda x: x.roll(ROWS * 2 + 1, 0) + x.roll(ROWS, 0),
    "a pool of what is rolled and padded around": lambda x: F.max_pool1d(F.pad(x.roll(2, 0).t()[None], (2, 1), mode="circular"), 3)[0].t(),
    "integers": lambda x: F.pad((x * 3).long(), (0, 0, 1, 1), value=7)[2:],
    "truths": lambda x: F.pad(x > 0, (0, 0, 1, 2), value=0.5),  # which is true
}
SHARDED = {
    "tp=2": ["tp:S(0)"], "tp=3": ["tp:S(0)"], "tp=5": ["tp:S(0)"],
    "dp=2,tp=2": ["dp:S(0),tp:S(1)", "dp:S(0),tp:S(0)"],
}


class All(nn.Module):
    """Each case of an input of its own, so that none decides how another is sharded."""

    def forward(self, *inputs):
        return tuple(case(x) for case, x in zip(CASES.values(), inputs, strict=True))


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    torch.manual_seed(4)
    folder, inputs = tmp_path_factory.mktemp("rows"), [torch.randn(ROWS, COLUMNS) for _ in CASES]
    program = shardc_export.export(All(), tuple(inputs))
    torch.export.save(program, folder / "model.pt2")
    save_file(dict(zip(program.graph_signature.user_inputs, inputs)), folder / "in.safetensors")
    return folder, All()(*inputs)


@pytest.mark.parametrize("mesh", SHARDED)
def test_values_and_what_is_moved(model, mesh):
    folder, wants = model
    for axes in SHARDED[mesh]:
        plan = ["--mesh", mesh, *places(f"input:*={axes}", f"output:*={axes}")]
        run(tool("shardc"), "compile", folder / "model.pt2", *plan, "-o", folder / "model.so")
        run(tool("shard-run"), folder / "model.so", "--inputs", folder / "in.safetensors", "--outputs", folder / "out.safetensors", "--timeout", 30)
        got = load_file(folder / "out.safetensors")
        manifest = json.loads(run(tool("shard-run"), folder / "model.so", "--manifest").stdout)
        for case, output, want in zip(CASES, manifest["entries"][0]["outputs"], wants, strict=True):
            assert torch.equal(got[output["name"]], want), f"{case} with {axes} on {mesh}"
        if axes == "tp:S(0)":
            moved = json.loads(run(tool("shardc"), "explain", folder / "model.pt2", *plan, "--format", "json").stdout)["totals"]
            assert {kind for kind, entry in moved.items() if entry["count"]} <= {"all_to_all", "all_gather"}
            # One row, which is the last alone, may be gathered.
            assert moved.get("all_gather", {}).get("bytes_per_rank", 0) <= 2 * 4 * COLUMNS


class Rolled(nn.Module):
    def forward(self, x):
        return x.roll((1, -2), (1, 2)), x.roll(3, 0)


def test_rolls_of_a_dynamic_batch(tmp_path):
    """Dims of known sizes are rolled in parts also where another is dynamic."""
    program = shardc_export.export(Rolled(), (torch.randn(4, ROWS, COLUMNS),), dynamic=["x:0=batch:1:64"])
    torch.export.save(program, tmp_path / "model.pt2")
    plan = ["--mesh", "tp=3", *places("input:x=tp:S(1)", "output:0=tp:S(1)", "output:1=tp:S(1)")]
    run(tool("shardc"), "compile", tmp_path / "model.pt2", *plan, "-o", tmp_path / "model.so")
    moved = json.loads(run(tool("shardc"), "explain", tmp_path / "model.pt2", *plan, "--format", "json").stdout)["totals"]
    assert {kind for kind, entry in moved.items() if entry["count"]} == {"all_to_all"}
    for batch in (1, 5):
        x = torch.randn(batch, ROWS, COLUMNS)
        save_file({"x": x}, tmp_path / "in.safetensors")
        run(tool("shard-run"), tmp_path / "model.so", "--inputs", tmp_path / "in.safetensors", "--outputs", tmp_path / "out.safetensors", "--timeout", 30)
        got = load_file(tmp_path / "out.safetensors")
        manifest = json.loads(run(tool("shard-run"), tmp_path / "model.so", "--manifest").stdout)
        for output, want in zip(manifest["entries"][0]["outputs"], Rolled()(x), strict=True):
            assert torch.equal(got[output["name"]], want)


def test_gradients(tmp_path):
    """The derivatives of parts, pads and joins are pads, parts and sums of them."""
    class Loss(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.randn(ROWS, COLUMNS))

        def forward(self, x):
            y = torch.cat([x * self.scale, x[:3]])
            return (F.pad(y[2:].roll(1, 0), (0, 0, 1, 2))[:-1] ** 2).sum()

    torch.manual_seed(5)
    module, x = Loss(), torch.randn(ROWS, COLUMNS)
    module(x).backward()
    torch.export.save(shardc_export.export(module, (x,)), tmp_path / "model.pt2")
    save_file({"x": x}, tmp_path / "in.safetensors")
    for mesh in ("tp=2", "tp=5"):
        run(tool("shardc"), "compile", tmp_path / "model.pt2", "--mesh", mesh, *places("input:x=tp:S(0)", "param:scale=tp:S(0)"),
            "--gradients", "0", "-o", tmp_path / "model.so")
        run(tool("shard-run"), tmp_path / "model.so", "--entry", "gradients", "--weights", tmp_path / "model.pt2", "--inputs", tmp_path / "in.safetensors",
            "--outputs", tmp_path / "out.safetensors", "--timeout", 30)
        got = [t for t in load_file(tmp_path / "out.safetensors").values() if t.shape == x.shape]
        assert any(torch.allclose(t, module.scale.grad, 1e-4, 1e-4) for t in got)
