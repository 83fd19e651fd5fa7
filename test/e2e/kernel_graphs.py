# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random graphs whose kernels have awkward results: ones that fold into another result or into a constant, equal ones,
ones that nobody uses, other names of one value, arguments as they came, and values that are returned twice."""
import random

import torch

from kernels import dense, mlir_type

F32, I64 = torch.float32, torch.int64
A = torch.ops.aten


class Graph:
    """MLIR text with PyTorch's value of every name in it."""

    def __init__(self, label):
        self.label, self.arguments, self.lines, self.values, self.results = label, [], [], [], []

    def add(self, text, tensor, operands):
        name = f"%g{self.label}_{len(self.values)}"
        form = f"({', '.join(mlir_type(t) for _, t in operands)}) -> " if operands else ""
        self.lines.append(f"{name} = aten.{text.format(*(n for n, _ in operands))} : {form}{mlir_type(tensor)}")
        self.values.append((name, tensor))
        return self.values[-1]

    def input(self, tensor):
        name = f"%x{self.label}_{len(self.arguments)}"
        self.arguments.append((name, tensor))
        self.values.append((name, tensor))

    def constant(self, value, shape, dtype):
        tensor = torch.full(shape, value, dtype=dtype)
        return self.add(f"constant {dense(tensor.flatten()[0])}", tensor, [])

    def pick(self, dtype=None, rank=None):
        found = [v for v in self.values if dtype in (None, v[1].dtype) and (rank is None or v[1].dim() >= rank)]
        return random.choice(found) if found else None


def identity(graph):
    """Another name for a value, or arithmetic that is one."""
    h = graph.pick()
    x, shape = h[1], list(h[1].shape)
    every = [("alias {0}",), ("clone {0}",), (f"view {{0}} {shape}",), (f"expand {{0}} {shape}",),
             (f"permute {{0}} {list(range(x.dim()))}",), ("cat {0} dim 0",) if x.dim() else ("clone {0}",)]
    number = [("mul {0}, {1}", 1), ("add {0}, {1}", 0), ("sub {0}, {1}", 0), ("maximum {0}, {0}",), ("minimum {0}, {0}",)]
    own = [("div {0}, {1}", 1), ("pow {0}, {1}", 1)] if x.dtype == F32 else [("bitwise_and {0}, {0}",), ("bitwise_or {0}, {0}",)]
    text, *value = random.choice(every + number + own)
    operands = [h] + [graph.constant(v, [], x.dtype) for v in value]
    # {0} twice is an operand twice.
    if text.count("{0}") == 2:
        operands, text = [h, h], text.replace("{0}", "{1}", 1).replace("{0}", "{1}").replace("{1}", "{0}", 1)
    graph.add(text, x.clone(), operands)


def elsewhere(graph):
    """There and back: two views or casts that are nothing together."""
    name, x = h = graph.pick()
    if random.random() < 0.5:
        there = graph.add("unsqueeze {0} dim 0", x.unsqueeze(0), [h])
        graph.add("squeeze {0} dim [0]", x.clone(), [there])
    elif x.dim() > 1:
        there = graph.add("transpose {0} [0, 1]", x.transpose(0, 1).contiguous(), [h])
        graph.add("transpose {0} [0, 1]", x.clone(), [there])
    else:
        there = graph.add("neg {0}", -x, [h])
        graph.add("neg {0}", x.clone(), [there])


def nothing(graph):
    """Constants, and what folds into one."""
    h = graph.pick(I64)
    kind = random.randrange(4)
    if kind == 0 or not h:
        shape, dtype = list(graph.pick()[1].shape), random.choice([F32, I64])
        if 0 not in shape:
            graph.constant(random.randint(-2, 3), shape, dtype)
    elif kind == 1:
        graph.add("mul {0}, {1}", h[1] * 0, [h, graph.constant(0, [], I64)])
    elif kind == 2:
        graph.add("sub {0}, {1}", h[1] - h[1], [h, h])
    else:
        graph.add("arange [0 : 7 : 1] i64", torch.arange(7), [])


def elementwise(graph):
    h = graph.pick()
    if h[1].dtype == F32:
        name = random.choice(["tanh", "relu", "sigmoid", "abs", "neg", "sin"])
    else:
        name = random.choice(["abs", "neg", "relu"])
    graph.add(f"{name} {{0}}", getattr(A, name)(h[1]), [h])


def pair(graph):
    a = graph.pick()
    b = random.choice([v for v in graph.values if v[1].dtype == a[1].dtype and v[1].shape == a[1].shape])
    name = random.choice(["add", "sub", "mul", "maximum"])
    graph.add(f"{name} {{0}}, {{1}}", getattr(A, name)(a[1], b[1]), [a, b])


def again(graph):
    """The same op once more."""
    h = graph.pick(F32) or graph.pick()
    for _ in range(2):
        graph.add("relu {0}", A.relu(h[1]), [h])


def rows(graph):
    h = graph.pick(rank=1)
    if not h:
        return
    x, dim = h[1], random.randrange(h[1].dim())
    name = random.choice(["sum", "amax", "cumsum", "softmax"])
    if x.shape[dim] == 0 and name == "amax" or x.dtype != F32 and name == "softmax":
        return
    if name in ("sum", "amax"):
        keep = random.random() < 0.5
        result = getattr(A, name)(x, [dim], keep)
        graph.add(f"{name} {{0}} dim [{dim}]" + " keepdim" * keep, result, [h])
    else:
        graph.add(f"{name} {{0}} dim {dim}", getattr(torch, name)(x, dim), [h])


STEPS = [identity] * 5 + [elsewhere, nothing, elementwise, elementwise, pair, pair, again, rows, rows]
SHAPES = [[], [7], [1], [5, 7], [3, 1], [2, 3, 5], [0, 3], [130, 70]]


def graph(label, seed):
    """One graph; the same for the same seed."""
    random.seed(seed)
    torch.manual_seed(seed)
    while True:
        made = Graph(label)
        for _ in range(random.randint(1, 2)):
            shape, dtype = random.choice(SHAPES), random.choice([F32, F32, I64])
            made.input(torch.randn(shape) if dtype == F32 else torch.randint(-5, 6, shape))
        for _ in range(random.randint(2, 8)):
            random.choice(STEPS)(made)
        returned = [v for v in made.values if random.random() < 0.5] or made.values[-1:]
        returned += [random.choice(returned) for _ in range(random.randint(0, 2))]
        random.shuffle(returned)
        # Sums of large numbers that cancel would need a tolerance of their own.
        if all(v.numel() == 0 or v.abs().max() < 1e4 for _, v in made.values):
            made.results = returned
            return made


def function(graphs):
    """Text of a function that computes all graphs, its arguments, and PyTorch's results with their graphs."""
    arguments = [a for g in graphs for a in g.arguments]
    results = [(name, value, g) for g in graphs for name, value in g.results]
    takes = ", ".join(f"{name}: {mlir_type(t)}" for name, t in arguments)
    body = "\n  ".join(f'{line} loc("graph {g.label}")' for g in graphs for line in g.lines)
    names, types = (", ".join(parts) for parts in zip(*((n, mlir_type(t)) for n, t, _ in results)))
    text = f"func.func @forward({takes}) -> ({types}) {{\n  {body}\n  return {names} : {types}\n}}\n"
    return text, [t for _, t in arguments], results
