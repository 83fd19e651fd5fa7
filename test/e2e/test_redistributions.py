# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiled redistributions, data in, data out: a program has many, each from an argument in one layout to a result in
another. Every rank's part is made and put together by the reference (test/reference/layout.py), partial ones too."""
import itertools
import random
import sys

import pytest
import torch
from safetensors.torch import load_file, save_file

from conftest import ROOT, run, tool

sys.path.insert(0, str(ROOT / "test/reference"))

from layout import Layout, Mesh, Placement  # noqa: E402

TYPES = {torch.float32: "f32", torch.int64: "i64", torch.bfloat16: "bf16"}


class Case:
    """`symbols`: the name of each dim's size, where it is not a number. `step`: what to do it by, if not by what is cheapest."""

    def __init__(self, shape, source, target, dtype=torch.float32, symbols=None, step=""):
        self.shape, self.source, self.target, self.dtype = shape, source, target, dtype
        self.step = f" by {step}" if step and self.moves() else ""
        self.symbols = symbols or [None] * len(shape)

    def type(self, layout):
        sizes = "".join(f"{'?' if symbol else n}x" for n, symbol in zip(self.shape, self.symbols))
        return f"tensor<{sizes}{TYPES[self.dtype]}, {layout.text()}>"

    def moves(self):
        """Whether some rank is to hold other elements than it does."""
        return any(self.source.held(d, n, c) != self.target.held(d, n, c)
                   for c in self.source.mesh.coordinates() for d, n in enumerate(self.shape))

    def value(self):
        """No two elements are equal."""
        count = torch.Size(self.shape).numel()
        return torch.arange(1, count + 1).reshape(self.shape).to(self.dtype)

    def __str__(self):
        return f"{self.shape} {self.source.text()} -> {self.target.text()}"


def write(cases, symbols=()):
    takes, gives, body = [], [], []
    for i, case in enumerate(cases):
        sizes = ""
        if any(case.symbols):
            sizes = ", dist.sizes = [" + ", ".join(f"#dist.size<{s or n}>" for s, n in zip(case.symbols, case.shape)) + "]"
        source, target = case.type(case.source), case.type(case.target)
        takes.append(f'%x{i}: {source} {{dist.name = "x{i}", dist.kind = "input"{sizes}}}')
        gives.append(f'{target} {{dist.name = "y{i}"{sizes}}}')
        body.append(f"  %y{i} = dist.redistribute %x{i}{case.step} : {source} to {target}")
    results = ", ".join(f"%y{i}" for i in range(len(cases)))
    types = ", ".join(case.type(case.target) for case in cases)
    declared = ", ".join(f"#dist.symbol<{name} in [{low}, {high}]>" for name, low, high in symbols)
    attributes = f" attributes {{dist.symbols = [{declared}]}}" if symbols else ""
    lines = "\n".join(body)
    return (f"module attributes {{dist.mesh = {cases[0].source.mesh.text()}}} {{\n"
            f"func.func @forward({', '.join(takes)})\n    -> ({', '.join(gives)}){attributes} {{\n"
            f"{lines}\n  return {results} : {types}\n}}\n}}\n")


def execute(folder, cases):
    """Runs the program on every rank's part of the values; returns what differs."""
    mesh = cases[0].source.mesh
    world = max(mesh.devices) + 1
    position = {device: p for p, device in enumerate(mesh.devices)}
    generator = torch.Generator().manual_seed(3)
    blocks = [case.source.scatter(case.value(), generator) for case in cases]
    for rank in range(world):
        save_file({f"x{i}": (blocks[i][position[rank]] if rank in position else torch.zeros([0] * len(case.shape), dtype=case.dtype)).contiguous()
                   for i, case in enumerate(cases)}, folder / f"in.{rank}.safetensors")
    run(tool("shard-run"), "-n", world, folder / "p.so", "--local", "--inputs", folder / "in.%r.safetensors",
        "--outputs", folder / "out.%r.safetensors", "--threads", 1)
    results = [load_file(folder / f"out.{rank}.safetensors") for rank in range(world)]
    problems = []
    for i, case in enumerate(cases):
        for rank in range(world):
            if rank not in position and results[rank][f"y{i}"].numel() != 0:
                problems.append(f"{case}: rank {rank} is outside the mesh and holds something")
        try:
            whole, spread = case.target.gather([results[d][f"y{i}"] for d in mesh.devices], case.shape)
        except ValueError as error:
            problems.append(f"{case}: {error}")
            continue
        worst = (whole.double() - case.value().double()).abs().max().item() if whole.numel() else 0
        if worst > 1e-2 or spread > 1e-2:  # elements differ by one; only partial values are rounded
            problems.append(f"{case}: differs by {worst}, replicas by {spread}")
    return problems


def compile_cases(folder, cases, symbols=()):
    (folder / "p.mlir").write_text(write(cases, symbols))
    run(tool("shardc"), "compile", folder / "p.mlir", "-o", folder / "p.so")


def check(folder, cases):
    compile_cases(folder, cases)
    assert not execute(folder, cases)


def shard(dim, **more):
    return Placement("S", dim, **more)


R, PARTIAL = Placement("R"), {op: Placement("P", reduction=op) for op in ("sum", "avg", "min", "max")}


def placements(mesh, axis, shape):
    count = mesh.axes[axis][1]
    yield R
    yield from PARTIAL.values()
    for dim, n in enumerate(shape):
        yield shard(dim)
        if n % 3 == 0:
            yield shard(dim, blocks=3)
        rest = max(n - 1, 0)  # all but one element on the last rank, the others empty
        yield shard(dim, sizes=[n - rest] + [0] * (count - 2) + [rest])


def is_valid(layout):
    """Blocks and sizes on the outermost axis of a dim only; reductions over several axes that commute."""
    seen, reductions = set(), {p.reduction for p in layout.placements if p.kind == "P"}
    if len(reductions - {"avg"}) > 1 or (reductions & {"min", "max"} and "avg" in reductions):
        return False
    for axis in layout.order:
        p = layout.placements[axis]
        if p.kind == "S" and p.dim in seen and (p.blocks > 1 or p.sizes):
            return False
        seen.add(p.dim if p.kind == "S" else None)
    return True


def layouts(mesh, shape):
    result = []
    for chosen in itertools.product(*(list(placements(mesh, axis, shape)) for axis in range(len(mesh.axes)))):
        for order in itertools.permutations(range(len(mesh.axes))):
            dims = [p.dim for p in chosen if p.kind == "S"]
            layout = Layout(mesh, chosen, order)
            if (list(order) == sorted(order) or len(dims) > len(set(dims))) and is_valid(layout):
                result.append(layout)
    return result


def sample(mesh, shape, count, seed):
    """Every other pair has no partial axis, and half of these are made in one exchange, whatever is cheaper."""
    chosen, some = random.Random(seed), layouts(mesh, shape)
    whole = [layout for layout in some if not layout.partial_axes()]
    return [Case(shape, *chosen.sample(whole if i % 2 else some, 2), step="exchange" if i % 4 == 3 else "") for i in range(count)]


SQUARE, WIDE = Mesh([("dp", 2), ("tp", 2)]), Mesh([("dp", 2), ("tp", 4)])
CUBE = Mesh([("dp", 2), ("cp", 2), ("tp", 2)])
TABLE = [(SQUARE, (5, 3), 40), (SQUARE, (8, 12), 40), (SQUARE, (1, 3), 20), (WIDE, (7, 6), 40), (CUBE, (5, 3), 40), (CUBE, (8, 12), 40)]


@pytest.mark.parametrize("mesh, shape, count", TABLE, ids=lambda v: v.text() if isinstance(v, Mesh) else None)
def test_pairs_of_layouts(tmp_path, mesh, shape, count):
    check(tmp_path, sample(mesh, shape, count, seed=sum(shape)))


@pytest.mark.parametrize("mesh", [SQUARE, CUBE], ids=["square", "cube"])
def test_symbolic_sizes(tmp_path, mesh):
    """Rows are as many as the caller passes: what is compiled once is right for all, and along columns blocks are exchanged."""
    def is_open(layout):
        return all(p.kind != "S" or p.dim == 1 or p.blocks == 1 and not p.sizes for p in layout.placements)

    chosen, some = random.Random(7), [layout for layout in layouts(mesh, (5, 6)) if is_open(layout)]
    whole = [layout for layout in some if not layout.partial_axes()]
    pairs = [chosen.sample(whole if i % 3 else some, 2) for i in range(40)]

    def cases(rows):
        return [Case((rows, 6), *pair, symbols=["n", None]) for pair in pairs]

    compile_cases(tmp_path, cases(5), [("n", 0, 64)])
    for rows in (5, 8, 1, 0):
        assert not execute(tmp_path, cases(rows))


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64])
def test_products(tmp_path, dtype):
    """What is partial as a product comes to be whole or sharded; nothing is turned into factors."""
    product = Placement("P", reduction="prod")
    sources = [Layout(SQUARE, [product, R]), Layout(SQUARE, [product, product]), Layout(SQUARE, [shard(0), product])]
    targets = [Layout(SQUARE, [R, R]), Layout(SQUARE, [shard(0), shard(0)]), Layout(SQUARE, [R, shard(1)])]
    check(tmp_path, [Case((5, 3), *pair, dtype) for pair in itertools.product(sources, targets)])


@pytest.mark.parametrize("step", ["", "exchange"])
def test_known_corruption_and_other_types(tmp_path, step):
    """`(5,3) [S(0),S(0)] -> [R,S(0)]`: PyTorch issue 194457. Rank 1 has row 2, and is to have rows 3 and 4."""
    nested, inner = Layout(SQUARE, [shard(0), shard(0)]), Layout(SQUARE, [R, shard(0)])
    turned, whole = Layout(SQUARE, [shard(0), shard(0)], [1, 0]), Layout(SQUARE, [R, R])
    pairs = [(nested, inner), (inner, nested), (nested, turned), (turned, inner), (nested, whole)]
    check(tmp_path, [Case(shape, *pair, dtype, step=step) for dtype in TYPES for shape in ((5, 3), (5,), (0, 3), (1,)) for pair in pairs])


@pytest.mark.parametrize("devices", [[3, 0, 2, 1], [4, 1, 0, 6]])
def test_meshes_that_list_their_devices(tmp_path, devices):
    """Ranks that are not listed hold an empty tensor and take part in nothing (L5)."""
    check(tmp_path, sample(Mesh(SQUARE.axes, devices), (5, 3), 40, seed=devices[0]))
