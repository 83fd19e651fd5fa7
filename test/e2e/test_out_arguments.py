# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Results that are written into an argument, `out=`, and in-place forms whose functional form has another name: against PyTorch, whole and
sharded."""
import pytest
import torch
from torch import nn

from conftest import run, tool
from exported import Exported

F64 = torch.float64
PLANS = (("r=1",), ("tp=2", "--place", "input:x=tp:S(0)"), ("tp=3", "--place", "input:*=tp:S(1)"))


class Out(nn.Module):
    """Writes into tensors that others look at: a buffer, a part of one, a new one."""

    def __init__(self):
        super().__init__()
        self.register_buffer("kept", torch.zeros(6, 4, dtype=F64))

    def forward(self, x, y):
        torch.div(x, y, out=self.kept)
        made = torch.empty(6, 4, dtype=F64)
        first = made[:3]
        torch.mul(x, 3.0, out=made)
        torch.add(x[:3], y[:3], alpha=2, out=first)
        joined = torch.empty(12, 4, dtype=F64)
        both = torch.cat([x, y], out=joined)
        square = torch.matmul(x, y.T, out=torch.empty(6, 6, dtype=F64))
        diagonal = square.clone().fill_diagonal_(2.5)
        tall = torch.cat([x, y]).fill_diagonal_(-1.5, wrap=True)
        # Bounds that are numbers and such that are tensors are arguments of the same names; so are dims.
        by_numbers, by_tensors, sums, whole = (torch.empty(shape, dtype=F64) for shape in ((6, 4), (6, 4), (4,), ()))
        torch.clamp(x, 0.7, 1.2, out=by_numbers)
        torch.clamp(x, y - 0.2, None, out=by_tensors)
        torch.sum(x, 0, out=sums)
        torch.amax(x, (0, 1), out=whole)
        counts = torch.arange(24).reshape(6, 4).floor_divide_(5)
        return made, both, square, diagonal, tall, self.kept * 2, by_numbers, by_tensors, sums, whole, counts, nn.functional.rrelu(x - 1.0, 0.1, 0.4)


def test_results_in_an_argument(tmp_path):
    torch.manual_seed(5)
    inputs = {"x": torch.rand(6, 4, dtype=F64) + 0.5, "y": torch.rand(6, 4, dtype=F64) + 0.5}
    for form in ("training", "composite"):
        exported = Exported(tmp_path, Out(), inputs, form=form)
        for plan in PLANS:
            exported.run(*plan)


class Several(nn.Module):
    def forward(self, x):
        values, positions = torch.empty(6), torch.empty(6, dtype=torch.int64)
        torch.max(x, 1, out=(values, positions))
        return values, positions


class Overlapping(nn.Module):
    """The elements that are written lie in several places of the view."""

    def forward(self, x):
        y = x.clone()
        y.as_strided((2, 3), (1, 1)).add_(1)
        return y


@pytest.mark.parametrize("model, shape, says", [
    (Several(), (6, 4), "aten.max.dim_max, 1 use"), (Overlapping(), (6,), "in place, which is not supported"),
    (nn.RReLU(), (4,), "'rrelu' in training is not supported")], ids=["several", "overlapping", "rrelu"])
def test_refused(tmp_path, model, shape, says):
    torch.export.save(torch.export.export(model, (torch.randn(shape),)), tmp_path / "m.pt2")
    done = run(tool("shardc"), "compile", tmp_path / "m.pt2", "--mesh", "dp=2", "-o", tmp_path / "m.so", check=False)
    assert done.returncode == 1 and says in done.stderr, done.stderr
