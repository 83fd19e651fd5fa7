# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators that run graphs: conditions, maps and scans, graphs under autocast and compile regions, against PyTorch."""
import pytest
import torch
from functorch.experimental.control_flow import map as map_rows
from torch._higher_order_ops.scan import scan

from conftest import run, tool
from exported import F64, Exported

MESHES = [("tp=1", []), ("tp=2", ["--place", "input:x=tp:S(0)"]), ("dp=2,tp=3", ["--place", "input:x=dp:S(0)", "--place", "input:w=tp:S(0)"])]


class Weighted(torch.nn.Module):
    """`body(x, w)` gives a tensor or several; their weighted sum is the loss."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(4, 4, dtype=F64))
        self.bias = torch.nn.Parameter(torch.rand(4, dtype=F64) + 0.5)

    def forward(self, x, w):
        results = self.body(x, w)
        results = results if isinstance(results, tuple) else (results,)
        return (sum((r * r).sum() for r in results), *results)


class Branches(Weighted):
    """What is not chosen has derivatives that are no numbers."""

    def body(self, x, w):
        def yes(x, weight, bias):
            return x @ weight, bias.log()

        def no(x, weight, bias):
            return (x - x).sqrt() @ weight, (bias - bias.detach()).log()

        chosen = torch.cond(w.sum() > 0, yes, no, (x, self.weight, self.bias))
        other = torch.cond(w.sum() < 0, no, yes, (x, self.weight, self.bias))
        return *chosen, *other, torch.cond(w.sum() > 100, lambda x: x.sin(), lambda x: x.cos(), (x,))


class Maps(Weighted):
    def body(self, x, w):
        def row(row, weight, bias):
            return torch.tanh(row @ weight) + bias, row.sum()

        return *map_rows(row, x, self.weight, self.bias), map_rows(lambda a: a.cumsum(0), w)


class Scans(Weighted):
    def body(self, x, w):
        def step(state, row):
            state = torch.tanh(state @ self.weight + row)
            return state, state * self.bias

        state, rows = scan(step, torch.zeros(4, dtype=F64), x)
        back, others = scan(lambda a, b: (a + b, a * b), w[0], w, reverse=True)
        return state, rows, back, others


class Branching(Weighted):
    """A condition in each step of a scan."""

    def body(self, x, w):
        def step(state, row):
            state = torch.cond(row.sum() > 0, lambda s, r: torch.tanh(s @ self.weight) + r, lambda s, r: s * r * self.bias, (state, row))
            return state, state.sum()

        return scan(step, torch.ones(4, dtype=F64), x)


class Regions(Weighted):
    def body(self, x, w):
        region = torch.compiler.nested_compile_region(lambda a, b: (a @ b).cos())
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=False):
            y = torch.nn.functional.linear(x, self.weight, self.bias)
            with torch.autocast("cpu", enabled=False):
                z = y.sigmoid() @ self.weight
        with torch.no_grad():
            scale = z.abs().amax()
        return region(y, self.weight), region(y + 1, self.weight), z / scale


@pytest.mark.parametrize("mesh, plan", MESHES, ids=[mesh for mesh, _ in MESHES])
@pytest.mark.parametrize("module, strict", [(Branches, False), (Maps, False), (Scans, False), (Branching, False), (Regions, False), (Regions, True)])
def test_against_pytorch(module, strict, mesh, plan, exported_programs):
    exported_programs(module, strict).run(mesh, *plan)


@pytest.fixture(scope="module")
def exported_programs(tmp_path_factory):
    made = {}

    def get(module, strict):
        if (module, strict) not in made:
            torch.manual_seed(3)
            inputs = {"x": torch.randn(5, 4, dtype=F64), "w": torch.rand(3, 4, dtype=F64)}
            made[module, strict] = Exported(tmp_path_factory.mktemp(module.__name__), module(), inputs, form="training", strict=strict)
        return made[module, strict]

    return get


def refused(module, inputs, folder, **options):
    torch.export.save(torch.export.export(module, inputs, **options), folder / "m.pt2")
    done = run(tool("shardc"), "compile", folder / "m.pt2", "--mesh", "tp=2", "-o", folder / "m.so", check=False)
    assert done.returncode == 1
    return done.stderr


def test_what_autocast_has_not_cast_is_refused(tmp_path):
    class Cast(torch.nn.Module):
        def forward(self, x):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                return x @ x

    assert "are still to be chosen by torch.autocast: export the model with `shardc export`" in refused(Cast(), (torch.ones(4, 4),), tmp_path)


def test_positions_that_only_the_other_branch_may_look_up(tmp_path):
    class Guarded(torch.nn.Module):
        def forward(self, x, i):
            known = (i < x.shape[0]).all()
            return torch.cond(known, lambda x, i: x[i], lambda x, i: i[:, None] * torch.ones_like(x[0]), (x, i)), torch.cond(
                x.sum().to(torch.int64).reshape(1) * 0, lambda x: x.clone(), lambda x: x + 1, (x,))

    for last in (2, 9):
        folder = tmp_path / str(last)
        folder.mkdir()
        Exported(folder, Guarded(), {"x": torch.randn(4, 3, dtype=F64), "i": torch.tensor([0, 3, last])}).run("tp=2", "--place", "input:x=tp:S(1)")


def test_updates_of_operands_are_refused(tmp_path):
    class Updates(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("total", torch.zeros(3))

        def forward(self, x):
            y = torch.cond(x.sum() > 0, lambda t, x: t.add_(1) * x, lambda t, x: t * x, (self.total, x))
            return y, self.total + 0

    with torch.no_grad():
        message = refused(Updates(), (torch.ones(3),), tmp_path, strict=True)
    assert "'higher_order.cond' in" in message and "updates an operand in place, which is not supported" in message


def test_loops_of_unknown_length_are_refused(tmp_path):
    class Rows(torch.nn.Module):
        def forward(self, x):
            return map_rows(lambda a: a.sin(), x)

    class Loop(torch.nn.Module):
        def forward(self, x):
            return torch._higher_order_ops.while_loop(lambda a: a.sum() < 9, lambda a: (a * 2,), (x,))

    message = refused(Rows(), (torch.ones(4, 4),), tmp_path, dynamic_shapes=({0: torch.export.Dim("n", min=2, max=9)},))
    assert "'higher_order.map_impl' in" in message and "runs over a dim of unknown size" in message
    assert "higher_order.while_loop, 1 use" in refused(Loop(), (torch.ones(3),), tmp_path)
