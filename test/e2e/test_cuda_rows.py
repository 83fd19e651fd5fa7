# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reductions, what is computed from them, and scans on the emulated device, against PyTorch: all forms of launches (rows in
registers, in shared memory, in several passes, shared by blocks; columns), all element types, odd and empty sizes."""
import itertools

import pytest
import torch
from safetensors.torch import load_file

from conftest import run, tool
from kernel_cases import A, BF16, F16, F32, F64, I64, values
from kernels import EMULATED, SUMS, Case, check, compile_and_run, difference, mlir_type

FLOATS = (F32, BF16, F16, F64)
pytestmark = pytest.mark.usefixtures("all_orders")


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(7)


# Shapes and reduced dims: short rows, many to a warp; a warp or a block to a row; shared memory; passes; few long rows; rows that
# do not begin at multiples of 16 bytes; two reduced dims, one behind the other and apart; columns, few and long ones.
ROWS = [([9, 3], [1]), ([130, 40], [1]), ([5, 1030], [1]), ([2, 5003], [1]), ([140, 16385], [1]), ([1, 24001], [1]), ([2, 50257], [1]),
        ([5, 12, 16], [1, 2]), ([4, 6, 10, 11], [0, 2, 3]), ([0, 7], [1]), ([3, 0], [1]), ([3, 1, 20], [1]),
        ([300, 70], [0]), ([9, 2, 5], [0]), ([2, 4096, 33], [1]), ([3000, 64], [0])]


def sizes():
    for (shape, dims), t in itertools.product(ROWS, (F32, BF16, torch.int8)):
        if shape[0] * shape[-1] > 200000 and t != BF16:
            continue
        x = values(shape, t)
        yield Case([x], f"aten.sum {{0}} dim {dims}", lambda a, k=dims: torch.sum(a, k), loose=SUMS)
        if t.is_floating_point:
            yield Case([x], f"aten.var {{0}} dim {dims} {{{{correction = 0.0}}}}",
                       lambda a, k=dims: A.var.correction(a, k, correction=0.0), loose=SUMS)
        if len(dims) > 1:
            continue
        d = dims[0]
        yield Case([x], f"aten.argmax {{0}} dim {d}", lambda a, k=d: A.argmax(a, k))
        yield Case([x], f"aten.cumsum {{0}} dim {d}", lambda a, k=d: torch.cumsum(a, k), loose=SUMS * 4)
        if t.is_floating_point:
            yield Case([x], f"aten.softmax {{0}} dim {d}", lambda a, k=d: torch.softmax(a, k), loose=8)


def types():
    for t in (F32, F64, BF16, F16, I64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool):
        for (shape, d), how in itertools.product([([7, 333], 1), ([333, 7], 0), ([1, 18001], 1)], ("", "permuted", "sliced")):
            if shape[1] > 9000 and how:
                continue
            x = values(shape, t)
            if t == torch.bool:
                x.select(1 - d, 0).fill_(False)  # a row without any
            for name in ("amax", "amin", "any", "all", "sum"):
                fn = getattr(A, name).dims if name in ("any", "all") else getattr(A, name)
                yield Case([x], f"aten.{name} {{0}} dim [{d}]", lambda a, f=fn, k=d: f(a, [k], False), loose=SUMS, strided=how)
            for name in ("argmax", "argmin"):
                yield Case([x], f"aten.{name} {{0}} dim {d}", lambda a, n=name, k=d: getattr(A, n)(a, k), strided=how)


def ties():
    """Equal elements, in parts of a row that different threads have: the first is the answer, and a NaN beats all."""
    for n, t in itertools.product((40, 1000, 20000), FLOATS):
        x = torch.zeros(4, n, dtype=t)
        x[0, n // 3] = x[0, n - 1] = 2
        x[1, n - 2] = x[1, n - 1] = float("nan")
        x[2] = -float("inf")
        for name in ("argmax", "argmin"):
            yield Case([x], f"aten.{name} {{0}} dim 1", lambda a, k=name: getattr(A, k)(a, 1))
            yield Case([x.t().contiguous()], f"aten.{name} {{0}} dim 0", lambda a, k=name: getattr(A, k)(a, 0))
        yield Case([x], "aten.amax {0} dim [1]", lambda a: torch.amax(a, 1))


@pytest.mark.parametrize("family", (sizes, types, ties), ids=lambda f: f.__name__)
def test_family(family, tmp_path):
    cases = list(family())
    assert check(cases, tmp_path, EMULATED) > len(cases) * 3 // 4


class Graphs:
    """Several ops each, fused into kernels: one program of all of them."""

    def __init__(self):
        self.arguments, self.lines, self.tensors, self.results = [], [], {}, []

    def operand(self, tensor):
        name = f"%x{len(self.arguments)}"
        self.arguments.append(tensor)
        self.tensors[name] = tensor
        return name

    def op(self, text, call, *names):
        name = f"%t{len(self.lines)}"
        operands = [self.tensors[n] for n in names]
        value = self.tensors[name] = call(*operands)
        types = ", ".join(mlir_type(x) for x in operands)
        self.lines.append(f"{name} = aten.{text.format(*names)} : ({types}) -> {mlir_type(value)}")
        return name

    def add(self, x, y):
        return self.op("add {0}, {1}", torch.add, x, y)

    def sub(self, x, y):
        return self.op("sub {0}, {1}", torch.sub, x, y)

    def mul(self, x, y):
        return self.op("mul {0}, {1}", torch.mul, x, y)

    def exp(self, x):
        return self.op("exp {0}", torch.exp, x)

    def sum(self, x, dims, keep=False):
        return self.op(f"sum {{0}} dim {dims}" + " keepdim" * keep, lambda a: torch.sum(a, dims, keep), x)

    def mean(self, x, dims):
        return self.op(f"mean {{0}} dim {dims} keepdim", lambda a: torch.mean(a, dims, True), x)

    def softmax(self, x, d):
        return self.op(f"softmax {{0}} dim {d}", lambda a: torch.softmax(a, d), x)

    def cumsum(self, x, d):
        return self.op(f"cumsum {{0}} dim {d}", lambda a: torch.cumsum(a, d), x)

    def gather(self, x, at):
        return self.op("gather {0} dim 1 at {1}", lambda a, k: torch.gather(a, 1, k), x, at)

    def layer_norm(self, x, w, b):
        n = list(self.tensors[w].shape)
        return self.op(f"layer_norm {{0}} {n} weight({{1}}) bias({{2}})", lambda a, p, q: A.layer_norm(a, n, p, q), x, w, b)

    def want(self, *names, loose=SUMS * 4):
        self.results += [(name, loose) for name in names]

    def text(self):
        arguments = ", ".join(f"%x{i}: {mlir_type(x)}" for i, x in enumerate(self.arguments))
        body, names = "\n  ".join(self.lines), [n for n, _ in self.results]
        types = ", ".join(mlir_type(self.tensors[n]) for n in names)
        return f"func.func @forward({arguments}) -> ({types}) {{\n  {body}\n  return {', '.join(names)} : {types}\n}}\n"


def along_rows(g, t):
    """One launch each: several reductions, results of positions and of rows."""
    for shape in ([6, 40], [5, 33], [3, 1001], [2, 3, 768], [1, 20000]):
        n, last = shape[-1], len(shape) - 1
        x, y = g.operand(values(shape, t)), g.operand(values(shape, t))
        both = g.add(x, y)
        g.want(both, g.layer_norm(both, g.operand(values([n], t)), g.operand(values([n], t))))
        weighted = g.mul(g.softmax(x, last), y)
        total = g.sum(weighted, [last], True)
        g.want(weighted, total, g.mul(weighted, total))


def not_of_one_form(g, t):
    """Reductions of different dims, scans, and what lies between: several launches."""
    for shape in ([64, 48], [37, 5], [1500, 33], [5, 7, 33]):
        last, first = len(shape) - 1, list(range(len(shape) - 1))
        x, y = g.operand(values(shape, t)), g.operand(values(shape, t))
        g.want(g.sum(g.mul(x, y), first), g.sum(y, first))
        soft = g.softmax(x, last)
        g.want(soft, g.sum(soft, first))
        rows = g.sum(x, [last])
        g.want(rows, g.softmax(rows, last - 1))
        g.want(g.exp(g.sub(g.cumsum(soft, 0), g.cumsum(soft, last))))
        everything = g.sum(x, list(range(len(shape))), True)
        g.want(everything, g.mul(x, everything))
    for shape in ([2, 3, 5, 7], [3, 4, 50, 52]):
        x = g.operand(values(shape, t))
        mean = g.mean(x, [0, 2, 3])
        centered = g.sub(x, mean)
        variance = g.mean(g.mul(centered, centered), [0, 2, 3])
        g.want(mean, variance, g.mul(centered, variance), loose=SUMS * 16)


def lookups(g, t):
    """Reads at computed positions beside reductions."""
    for rows, n in ((21, 13), (5, 1000), (2, 50257)):
        x, at = g.operand(values([rows, n], t)), g.operand(torch.randint(0, n, (rows, 1)))
        logits = g.op("log_softmax {0} dim 1", lambda a: torch.log_softmax(a, 1), x)
        g.want(logits, g.gather(logits, at))
        whole = g.op("logsumexp {0} dim [1] keepdim", lambda a: torch.logsumexp(a, 1, True), x)
        g.want(g.mean(g.sub(whole, g.gather(x, at)), [0, 1]))
    at = g.operand(torch.randint(0, 9, (4, 6)))
    looked = g.op("embedding {0} at {1}", lambda w, k: A.embedding(w, k), g.operand(values([9, 24], t)), at)
    g.want(looked, g.layer_norm(looked, g.operand(values([24], t)), g.operand(values([24], t))))


@pytest.mark.parametrize("t", (F32, BF16, F64), ids=str)
def test_fused(t, tmp_path):
    """Against PyTorch; and a second run has the same bits."""
    g = Graphs()
    for make in (along_rows, not_of_one_form, lookups) if t != F64 else (along_rows,):
        make(g, t)
    done = compile_and_run(g.text(), g.arguments, tmp_path, tools=EMULATED)
    assert done.returncode == 0, done.stderr[-4000:]
    got, problems = load_file(tmp_path / "outputs.safetensors"), []
    for i, (name, loose) in enumerate(g.results):
        wanted = g.tensors[name]
        # What went through 16-bit values in between is as far off as those.
        scale = [wanted, *(x for x in g.arguments if x.dtype == t)]
        if wrong := difference(got[f"output_{i}"], wanted.contiguous(), scale, loose):
            problems.append(f"{name} = {g.lines[int(name[2:])]}: {wrong}")
    assert not problems, "\n".join(problems)
    run(tool("shard-run"), tmp_path / "kernels.so", "--inputs", tmp_path / "inputs.safetensors", "--outputs",
        tmp_path / "again.safetensors", "--device", "emulated")
    again = load_file(tmp_path / "again.safetensors")
    for name, x in got.items():
        assert x.flatten().view(torch.uint8).equal(again[name].flatten().view(torch.uint8)), name
