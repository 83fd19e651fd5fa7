# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Outputs that are one tensor, inputs, parameters or buffers; a model with constants but no parameters."""
import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file

from conftest import run, tool


class Returned(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.arange(15.0).reshape(5, 3))
        self.register_buffer("table", torch.arange(5.0))

    def forward(self, x):
        y = x * self.weight
        return {"a": y, "b": [y, x], "c": (x, self.weight), "d": self.weight, "e": self.table}


class Constant(torch.nn.Module):
    def forward(self, x):
        return x.index_select(0, torch.tensor([4, 0]))


def outputs_of(module, options, tmp_path):
    x = torch.randn(5, 3, generator=torch.Generator().manual_seed(0))
    model, program = tmp_path / "m.pt2", tmp_path / "m.so"
    torch.export.save(torch.export.export(module, (x,)), model)
    save_file({"x": x.numpy()}, tmp_path / "in")
    run(tool("shardc"), "compile", model, *options, "-o", program)
    run(tool("shard-run"), program, "--weights", model, "--inputs", tmp_path / "in", "--outputs", tmp_path / "out")
    return x, load_file(tmp_path / "out")


@pytest.mark.parametrize("place", ["input:x=tp:S(0)", "param:weight=tp:S(1)"])
def test_outputs_that_are_one_tensor(tmp_path, place):
    module = Returned()
    x, got = outputs_of(module, ("--mesh", "tp=2", "--place", place), tmp_path)
    y, weight, table = (x * module.weight).detach(), module.weight.detach(), module.table
    want = {"mul": y, "mul.b.0": y, "x": x, "x.c.0": x, "p_weight": weight, "p_weight.d": weight, "b_table": table}
    assert got.keys() == want.keys()
    for name, value in want.items():
        np.testing.assert_array_equal(got[name], value.numpy(), err_msg=name)


@pytest.mark.parametrize("world", [1, 2])
def test_constants_of_an_archive_are_not_extra(tmp_path, world):
    x, got = outputs_of(Constant(), ("--mesh", f"tp={world}"), tmp_path)
    np.testing.assert_array_equal(*got.values(), x[[4, 0]].numpy())


class Folding(torch.nn.Module):
    """Pairs of outputs that are one value once a kernel's arithmetic is folded, and some that are three."""

    def forward(self, x):
        e, t, i = torch.exp(x), torch.tanh(x), x.long()
        n, s = i * 3, x.sum(1)
        return (e, e * 1.0, n, n + 0, t, torch.maximum(t, t), torch.where(x > 0, t, t), s, s / 1.0, s[:, None] * 1.0)


@pytest.mark.parametrize("world", [1, 2])
def test_outputs_that_fold_to_one_value(tmp_path, world):
    module = Folding()
    x, got = outputs_of(module, ("--mesh", f"tp={world}", "--place", "input:x=tp:S(0)"), tmp_path)
    for (name, value), want in zip(got.items(), module(x), strict=True):
        np.testing.assert_allclose(value, want.numpy(), rtol=1e-6, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("mesh, options", [("dp=1,tp=2", ()), ("tp=3", ("--place", "param:first.weight=tp:S(0)")),
                                           ("dp=2,tp=2", ("--place", "param:first.weight=tp:S(1)", "--place", "input:x=dp:S(0)"))])
def test_every_kind_of_argument_and_output_at_once(model, tmp_path, mesh, options):
    source, program = model("mixed"), tmp_path / "m.so"
    run(tool("shardc"), "compile", source.path, "--mesh", mesh, *options, "-o", program)
    run(tool("shard-run"), program, "--weights", source.path, "--inputs", source.inputs, "--outputs", tmp_path / "out")
    got, want = load_file(tmp_path / "out"), load_file(source.outputs)
    assert got.keys() == want.keys()
    for name, value in want.items():
        np.testing.assert_allclose(got[name], value, rtol=1e-5, atol=1e-5, err_msg=name)
