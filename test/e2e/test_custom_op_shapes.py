# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Registered operators on dims that repeat, that are products, and whose sizes the run knows; arguments that a program leaves out; names of
functions that are taken."""
import shutil

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

import geometry  # noqa: F401 (registers the operators)
from conftest import ROOT, run, tool
from exported import F64, Exported
from plans import places

COMPILER = shutil.which("cc") or shutil.which("clang-22")
SOURCE = """
#include "shardrt_op.h"
#define REALS(tensor) ((double *)(tensor).data)
int32_t geometry_scaled(const shardrt_op_call *call) {
  int64_t power = 0, rows = call->outputs[0].sizes[0], columns = call->outputs[0].sizes[1];
  int64_t repeats = call->inputs[1].sizes[0] == 1;
  if (!shardrt_op_integer(call, "power", &power))
    return call->fail(call, "power is missing");
  for (int64_t i = 0; i < rows * columns; ++i) {
    double by = REALS(call->inputs[1])[repeats ? i % columns : i], factor = 1;
    for (int64_t k = 0; k < power; ++k)
      factor *= by;
    REALS(call->outputs[0])[i] = REALS(call->inputs[0])[i] * factor;
  }
  return 0;
}
int32_t geometry_repeated(const shardrt_op_call *call) {
  int64_t columns = call->outputs[0].sizes[1];
  for (int64_t i = 0; i < call->outputs[0].sizes[0] * columns; ++i)
    REALS(call->outputs[0])[i] = REALS(call->inputs[0])[i % columns];
  return 0;
}
int32_t geometry_per_group(const shardrt_op_call *call) {
  for (int64_t i = 0; i < call->outputs[0].sizes[0]; ++i)
    REALS(call->outputs[0])[i] = REALS(call->inputs[0])[i] * REALS(call->inputs[1])[i % call->inputs[1].sizes[0]];
  return 0;
}
int geometry_numbers[4];
"""
OPS = """
ops:
  geometry::scaled: {rule: "n d, n d -> n d", symbol: geometry_scaled, library: ops.so, defaults: {power: 2}}
  geometry::repeated: {rule: "n d -> n d", symbol: geometry_repeated, library: ops.so}
  geometry::per_group: {rule: "(h d), d -> (h d)", symbol: geometry_per_group, library: ops.so}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ops")
    (folder / "ops.c").write_text(SOURCE)
    (folder / "ops.yaml").write_text(OPS)
    run(COMPILER, "-O1", "-shared", "-fPIC", "-I", ROOT / "runtime/include", folder / "ops.c", "-o", folder / "ops.so")
    return folder


class Scaled(nn.Module):
    def forward(self, x, by):
        return torch.ops.geometry.scaled(x, by).sum(0), torch.ops.geometry.scaled(x, by, 3)


SHARDED = places("input:x=sp:S(0)", "output:1=sp:S(0)")


@pytest.mark.parametrize("mesh,plan", [("sp=1", ()), ("sp=2", ()), ("sp=3", SHARDED), ("sp=3", [*SHARDED, *places("input:by=sp:S(1)")])])
def test_repeated_operands_of_unknown_size(folder, tmp_path, mesh, plan):
    """The size of the run is that of the operand that does not repeat, in either order; the default of the power is filled in."""
    model = Exported(tmp_path, Scaled(), {"x": torch.randn(8, 4, dtype=F64), "by": torch.randn(1, 4, dtype=F64)}, dynamic=["x:0=n"])
    model.run(mesh, "--ops", folder / "ops.yaml", *plan)
    other = {"x": torch.randn(11, 4, dtype=F64), "by": torch.randn(1, 4, dtype=F64)}
    save_file(other, tmp_path / "in.safetensors")
    model.outputs = list(model.module(**other))
    model.answer("--inputs", tmp_path / "in.safetensors")


class Repeated(nn.Module):
    def forward(self, x):
        return torch.ops.geometry.repeated(x, 8)


@pytest.mark.parametrize("mesh,layout", [("sp=2", "S(0)"), ("sp=3", "S(0)"), ("sp=3", "S(0, sizes = [0, 7, 1])"), ("sp=2", "S(1)")])
def test_names_that_operands_only_repeat(folder, tmp_path, mesh, layout):
    model = Exported(tmp_path, Repeated(), {"x": torch.randn(1, 4, dtype=F64)})
    model.run(mesh, "--ops", folder / "ops.yaml", *places(f"output:0=sp:{layout}"))


class PerGroup(nn.Module):
    def forward(self, x, by):
        return torch.ops.geometry.per_group(x, by)


@pytest.mark.parametrize("mesh,plan", [("sp=2", places("input:x=sp:S(0)")), ("sp=4", places("input:x=sp:S(0)", "output:0=sp:S(0)")),
                                       ("sp=3", places("input:by=sp:S(0)"))])
def test_results_that_are_products(folder, tmp_path, mesh, plan):
    model = Exported(tmp_path, PerGroup(), {"x": torch.randn(12, dtype=F64), "by": torch.randn(4, dtype=F64)})
    model.run(mesh, "--ops", folder / "ops.yaml", *plan)


def test_a_library_beside_the_program(folder, tmp_path):
    """It is found there when it is no more where it was."""
    model = Exported(tmp_path, PerGroup(), {"x": torch.randn(12, dtype=F64), "by": torch.randn(4, dtype=F64)})
    (tmp_path / "there").mkdir()
    for name in ("ops.so", "ops.yaml"):
        shutil.copy(folder / name, tmp_path / "there")
    model.run("sp=2", "--ops", tmp_path / "there/ops.yaml")
    shutil.move(tmp_path / "there/ops.so", tmp_path)
    model.answer("--inputs", tmp_path / "in.safetensors")


MISTAKES = [
    ("symbol: geometry_per_group", "symbol: gamma", "'gamma', which computes 'geometry.per_group.default', is a name of the C library"),
    ("symbol: geometry_per_group", "symbol: geometry_numbers", "has no function 'geometry_numbers'"),
    ('rule: "(h d), d -> (h d)"', 'rule: "(h d), k -> (h d); whole k"', ""),
    ('rule: "(h d), d -> (h d)"', 'rule: "(h d), d -> _"', "'_' stands for an operand that is not needed, and a result is"),
    ("ops:\n", "op:\n", "unknown section 'op'; did you mean ops?"),
    (OPS, "\n", "registers no operators"),
    ("defaults: {power: 2}", "defaults: {power: two}", "the default of 'power' is a number, true or false"),
    ("geometry::repeated:", "geometry::scaled:", "'geometry.scaled.default' is registered twice"),
]


@pytest.mark.parametrize("old,new,message", MISTAKES)
def test_mistakes(folder, tmp_path, old, new, message):
    Exported(tmp_path, PerGroup(), {"x": torch.randn(12, dtype=F64), "by": torch.randn(4, dtype=F64)})
    shutil.copy(folder / "ops.so", tmp_path)
    assert old in OPS
    (tmp_path / "ops.yaml").write_text(OPS.replace(old, new))
    done = run(tool("shardc"), "compile", tmp_path / "m.pt2", "--mesh", "sp=2", "--ops", tmp_path / "ops.yaml", "-o", tmp_path / "m.so", check=False)
    assert (done.returncode == 0) == (not message) and message in done.stderr, done.stderr
