# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators that users register: sharded as their rules say, computed by functions in C, against the same operators in PyTorch."""
import json
import shutil

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

import geometry  # noqa: F401 (registers the operators)
from conftest import BUILD, ROOT, run, tool
from exported import F64, Exported
from plans import places

EXAMPLES = ROOT / "runtime/examples"
COMPILER = shutil.which("cc") or shutil.which("clang-22")


@pytest.fixture(scope="module")
def ops(tmp_path_factory):
    """The file that registers the operators, with the library beside it."""
    folder = tmp_path_factory.mktemp("geometry")
    shutil.copy(EXAMPLES / "geometry_ops.yaml", folder)
    run(COMPILER, "-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-I", ROOT / "runtime/include", EXAMPLES / "geometry_ops.c",
        "-o", folder / "geometry_ops.so", "-lm")
    return folder / "geometry_ops.yaml"


class PointCloud(nn.Module):
    """Features of points from their neighbours, on a grid and back."""

    def __init__(self, channels=4, cells=12):
        super().__init__()
        self.cells = cells
        self.shift = nn.Parameter(torch.randn(2, dtype=F64) / 8)
        self.enter, self.leave = nn.Linear(3, channels, dtype=F64), nn.Linear(channels, 1, dtype=F64)

    def forward(self, x, points, cell):
        x = x + self.shift
        distances, neighbours = torch.ops.geometry.knn(x, points * self.shift.exp(), 3)
        near = torch.ops.geometry.ball_query(x, points, 0.7, 4)
        h = self.enter(distances).tanh() + (near >= 0).sum(1, keepdim=True)
        grid = torch.ops.geometry.to_grid(h, cell, self.cells)
        grid = torch.ops.geometry.smooth(grid, 2)
        y = self.leave(torch.ops.geometry.from_grid(grid, cell) + h)
        return y.square().mean(), y, neighbours, near, grid


def cloud(count=13, others=9):
    torch.manual_seed(3)
    module = PointCloud()
    inputs = {"x": torch.randn(count, 2, dtype=F64), "points": torch.randn(others, 2, dtype=F64), "cell": torch.randint(0, 12, (count,))}
    return module, inputs


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    return Exported(tmp_path_factory.mktemp("cloud"), *cloud())


UNEVEN = ("--place", "input:x=sp:S(0, sizes = [7, 0, 6])", "--place", "input:cell=sp:S(0, sizes = [7, 0, 6])")
LAYOUTS = [("sp=1", ()), ("sp=2", places("input:x=sp:S(0)", "input:cell=sp:S(0)")), ("sp=3", UNEVEN),
           ("a=2,b=2", places("input:x=a:S(0)", "input:cell=a:S(0)", "input:points=b:S(0)", "output:4=b:S(0)")),
           ("sp=4", places("input:x=sp:S(0)", "input:cell=sp:S(0)", "output:4=sp:S(0)"))]


@pytest.mark.parametrize("mesh,plan", LAYOUTS)
def test_point_cloud(exported, ops, mesh, plan):
    exported.run(mesh, "--ops", ops, *plan)


def test_as_section_of_a_plan(exported, ops, tmp_path):
    """The operators may stand in the plan; the library is beside it."""
    shutil.copy(ops.parent / "geometry_ops.so", tmp_path)
    text = ops.read_text() + "mesh: {sp: 2}\ninputs:\n  x: {sp: S(0)}\n  cell: {sp: S(0)}\n"
    (tmp_path / "plan.yaml").write_text(text)
    exported.run("sp=2", "--plan", tmp_path / "plan.yaml")


class Smooth(nn.Module):
    def forward(self, x):
        return torch.ops.geometry.smooth(x, 1)


def test_windows_exchange_boundary_rows(ops, tmp_path):
    """Two rows of eight columns come to each rank, and no more."""
    model = Exported(tmp_path, Smooth(), {"x": torch.randn(24, 8, dtype=F64)})
    plan = places("input:x=sp:S(0)", "output:0=sp:S(0)")
    report = json.loads(run(tool("shardc"), "explain", tmp_path / "m.pt2", "--mesh", "sp=4", "--ops", ops, *plan, "--format", "json").stdout)
    assert [c["bytes_per_rank"] for c in report["collectives"]] == [2 * 8 * 8], report["collectives"]
    model.run("sp=4", "--ops", ops, *plan)
    model.run("sp=5", "--ops", ops, *plan)


def test_mistakes_in_the_file(exported, ops, tmp_path):
    """All of them come at once, each with its line."""
    (tmp_path / "ops.yaml").write_text("ops:\n  geometry.knn:\n    rule: n d -> n\n  geometry::smooth:\n    symbole: x\n    rule: y -> y\n"
                                       "    library: none.so\n")
    done = run(tool("shardc"), "compile", exported.folder / "m.pt2", "--mesh", "sp=2", "--ops", tmp_path / "ops.yaml", "-o", tmp_path / "m.so",
               check=False)
    assert done.returncode == 1
    for part in ("ops.yaml:2: an operator is named as PyTorch does", "did you mean symbol?", "'geometry.smooth.default' has no 'symbol'",
                 "there is no file '"):
        assert part in done.stderr, done.stderr


WRONG_RULES = [("n d, m d -> n k", "it has 2 results, but its rule describes 1"),
               ("n d, m e f -> n k, n k", "operand 1 has 2 dims, but its rule says 'm e f'"),
               ("n d, n d -> n k, n k", "dim 0 of operand 1 has 9 elements, but 'n' has 13 elsewhere"),
               ("n d[kernel=2], m d -> n k, n k", "dim 1 of operand 0 has 1 positions, but 'd' has 2 elsewhere"),
               ("n d[kernel=size], m d -> n k, n k", "or an integer argument of the op, not 'size'"),
               ("n d, m d - n k", "expected '->' between operands and results, at character 10"),
               ("n d, m d -> n k, n k; sum n", "'n' is reduced, but a result has it")]


@pytest.mark.parametrize("rule,message", WRONG_RULES)
def test_rules_that_do_not_fit(exported, ops, tmp_path, rule, message):
    shutil.copy(ops.parent / "geometry_ops.so", tmp_path)
    (tmp_path / "ops.yaml").write_text(ops.read_text().replace("n d, m d -> n k, n k; whole d", rule))
    done = run(tool("shardc"), "compile", exported.folder / "m.pt2", "--mesh", "sp=2", "--ops", tmp_path / "ops.yaml", "-o", tmp_path / "m.so",
               check=False)
    assert done.returncode == 1 and message in done.stderr and "geometry.knn.default" in done.stderr, done.stderr


def test_operators_that_nobody_registers(exported, tmp_path):
    done = run(tool("shardc"), "compile", exported.folder / "m.pt2", "--mesh", "sp=2", "-o", tmp_path / "m.so", check=False)
    assert done.returncode == 1 and "operators that are not supported: 5" in done.stderr and "docs/custom-ops.md" in done.stderr, done.stderr


def test_functions_that_are_not_there(exported, ops, tmp_path):
    shutil.copy(ops.parent / "geometry_ops.so", tmp_path)
    (tmp_path / "ops.yaml").write_text(ops.read_text().replace("geometry_knn\n", "nearest\n").replace("symbol: geometry_smooth\n", "symbol: even\n"))
    done = run(tool("shardc"), "compile", exported.folder / "m.pt2", "--mesh", "sp=2", "--ops", tmp_path / "ops.yaml", "-o", tmp_path / "m.so",
               check=False)
    for part in ("has no function 'nearest', which computes 'geometry.knn.default'", "has no function 'even'"):
        assert done.returncode == 1 and part in done.stderr, done.stderr


def test_operators_without_backward(exported, ops, tmp_path):
    shutil.copy(ops.parent / "geometry_ops.so", tmp_path)
    lines = [line for line in ops.read_text().splitlines() if "2*reach] x, _, _" not in line]
    (tmp_path / "ops.yaml").write_text("\n".join(lines))
    done = run(tool("shardc"), "compile", exported.folder / "m.pt2", "--mesh", "sp=2", "--ops", tmp_path / "ops.yaml", "--gradients", 0,
               "-o", tmp_path / "m.so", check=False)
    assert done.returncode == 1 and "'geometry.smooth.default' has no function for its backward" in done.stderr, done.stderr


class ToGrid(nn.Module):
    def forward(self, values, cell):
        return torch.ops.geometry.to_grid(values, cell, 6)


def test_a_function_that_fails(ops, tmp_path):
    """What it says is the message of the run, with the op and its place; all ranks end."""
    model = Exported(tmp_path, ToGrid(), {"values": torch.randn(8, 2, dtype=F64), "cell": torch.arange(8) % 6})
    model.run("sp=2", "--ops", ops, *places("input:values=sp:S(0)", "input:cell=sp:S(0)"))
    save_file({"values": torch.randn(8, 2, dtype=F64), "cell": torch.arange(8)}, tmp_path / "in.safetensors")
    done = run(tool("shard-run"), tmp_path / "m.so", "--inputs", tmp_path / "in.safetensors", "--outputs", tmp_path / "out.safetensors",
               "--timeout", 20, check=False)
    assert done.returncode != 0 and "'geometry.to_grid.default': a point is in no cell of the grid" in done.stderr, done.stderr
    assert "test_custom_ops.py" in done.stderr, done.stderr


class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.zeros(2, dtype=F64))

    def forward(self, values, cell):
        self.total.add_(values.sum(0))
        return torch.ops.geometry.to_grid(values, cell, 6)


def test_calls_come_before_changes_of_state(ops, tmp_path):
    """A function that fails leaves the state as it was."""
    Exported(tmp_path, Counting(), {"values": torch.randn(8, 2, dtype=F64), "cell": torch.arange(8) % 6})
    run(tool("shardc"), "compile", tmp_path / "m.pt2", "--mesh", "sp=2", "--ops", ops, "--save-stages", tmp_path, "-o", tmp_path / "m.so")
    text = next(tmp_path.glob("*planned.mlir")).read_text()
    assert 0 < text.index("exec.call_symbol") < text.index("exec.commit")


def test_sizes_of_the_run(ops, tmp_path):
    """A function learns the sizes of the run."""
    inputs = {"values": torch.randn(8, 2, dtype=F64), "cell": torch.arange(8) % 6}
    model = Exported(tmp_path, ToGrid(), inputs, dynamic=["values:0=points", "cell:0=points"])
    model.run("sp=3", "--ops", ops, *places("input:values=sp:S(0)", "input:cell=sp:S(0)"))
    other = {"values": torch.randn(19, 2, dtype=F64), "cell": torch.arange(19) % 6}
    save_file(other, tmp_path / "in.safetensors")
    model.outputs = [ToGrid()(**other)]
    model.answer("--inputs", tmp_path / "in.safetensors")


ON_STREAM = """
#include "shardrt_op.h"
int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void *stream);
int32_t geometry_halves(const shardrt_op_call *call) {
  uint64_t in = (uint64_t)call->inputs[0].data, out = (uint64_t)call->outputs[0].data;
  int64_t rows = call->inputs[0].sizes[0], half = call->inputs[0].sizes[1] / 2 * sizeof(double);
  if (!call->on_device || !call->stream)
    return call->fail(call, "is for a device");
  for (int64_t i = 0; i < 2 * rows; ++i)
    if (cuMemcpyDtoDAsync_v2(out + i * half, in + (i ^ 1) * half, half, call->stream) != 0)
      return call->fail(call, "cannot copy");
  return 0;
}
"""


class Halves(nn.Module):
    def forward(self, x):
        return (torch.ops.geometry.halves(x.sin()) + torch.ops.geometry.halves(x.cos())).sum(0)


EMULATED = BUILD / "lib/shardrt/libcuda-emulated.so"


@pytest.mark.skipif(not EMULATED.exists(), reason="the emulated device was not built")
def test_on_the_stream_of_a_device(tmp_path):
    """The function gets memory of the device, and its work takes its place in the order of the stream."""
    model = Exported(tmp_path, Halves(), {"x": torch.randn(6, 4, dtype=F64)})
    (tmp_path / "halves.c").write_text(ON_STREAM)
    run(COMPILER, "-shared", "-fPIC", "-I", ROOT / "runtime/include", tmp_path / "halves.c", EMULATED, f"-Wl,-rpath,{EMULATED.parent}",
        "-o", tmp_path / "halves.so")
    (tmp_path / "ops.yaml").write_text("ops:\n  geometry::halves: {rule: n d -> n d, symbol: geometry_halves, library: halves.so}\n")
    run(tool("shardc"), "compile", tmp_path / "m.pt2", "--mesh", "sp=2", "--ops", tmp_path / "ops.yaml", *places("input:x=sp:S(0)"),
        "--target", "cuda:emulated", "-o", tmp_path / "m.so")
    model.answer("--inputs", tmp_path / "in.safetensors", "--device", "emulated", "--steps", 3)
