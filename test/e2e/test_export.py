# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What `shardc export` does where torch.export has two ways, and with tensors that a model keeps and writes."""
import sys

import pytest
import torch
from torch import nn

from conftest import ROOT

sys.path.insert(0, str(ROOT / "tools/export"))
import shardc_export  # noqa: E402


class Decides(nn.Module):
    def forward(self, x):
        return x if x.sum() > 0 else x + 1


class Breaks(nn.Module):
    def forward(self, x):
        torch._dynamo.graph_break()
        return x + 1


class Keeps(nn.Module):
    """A list and an attribute that are no buffers, and a buffer that the forward reaches in another way too."""

    def __init__(self):
        super().__init__()
        self.register_buffer("table", torch.zeros(3), persistent=False)
        self.store, self.count = {"rows": [self.table, torch.full((3,), 7.0)]}, torch.tensor(2)

    def forward(self, x):
        for rows in self.store["rows"]:
            rows.add_(x)
        self.count.add_(1)
        return self.table * self.store["rows"][1] * self.count


def main(factory, tmp_path, capfd, *options):
    """The exit status of `shardc export` and what it prints on standard error."""
    status = shardc_export.main([factory, "-o", str(tmp_path / "model.pt2"), *options])
    return status, capfd.readouterr().err


@pytest.fixture
def factory(monkeypatch):
    def built(kind):
        monkeypatch.setattr(shardc_export, "load_factory", lambda _: lambda: (kind(), (torch.ones(3),)))
        return "model.py:build"
    return built


@pytest.mark.parametrize("options", [(), ("--strict",)])
def test_both_ways_fail(factory, tmp_path, capfd, options):
    status, text = main(factory(Decides), tmp_path, capfd, *options)
    ways = ["strict", "non-strict"] if options else ["non-strict", "strict"]
    assert status == 1 and "Traceback" not in text and "GraphModule" not in text
    lines = text.splitlines()
    assert lines[0] == "shardc export: error: PyTorch cannot export this model."
    for way, line in zip(ways, lines[1:3]):
        assert line.startswith(f"  the {way} way fails at ") and "test_export.py:17: " in line
    assert lines[3].startswith("  What to do: the forward decides by the values of a tensor") and len(lines) == 4


def test_the_other_way(factory, tmp_path, capfd):
    status, text = main(factory(Breaks), tmp_path, capfd, "--strict")
    assert status == 0 and "exported in PyTorch's non-strict way, because the strict way fails at" in text


def test_a_dim_without_a_name(factory, tmp_path, capfd):
    status, text = main(factory(Keeps), tmp_path, capfd, "--dynamic", "x:0=3:4")
    assert status == 1 and text == "shardc export: error: --dynamic 'x:0=3:4' is not of the form ARG:DIM=NAME[:MIN[:MAX]]\n"


@pytest.mark.parametrize("strict", [False, True])
def test_what_a_model_writes_are_buffers(strict):
    model, x = Keeps(), torch.arange(3.0)
    program = shardc_export.export(model, (x,), strict=strict)
    assert model.table.tolist() == [0, 0, 0] and model.store["rows"][1].tolist() == [7, 7, 7] and model.count == 2
    assert set(program.graph_signature.buffers_to_mutate.values()) == {"table", "store.rows.1", "count"}
    exported, other = program.module(), Keeps()
    for _ in range(3):
        torch.testing.assert_close(exported(x), other(x))
