# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random graphs of elementwise ops, reductions, views, reads at computed positions and products through exec-form-kernels.
Of each result: the calls come in an order in which everything is defined before it is read (the verifier says so), what
a kernel reads at computed positions are its arguments, and kernels hold each op of the program exactly once.

  fuzz_groups.py SHARD_OPT GRAPHS SEED"""
import collections
import random
import re
import subprocess
import sys

FLOAT, INDEX, MASK = "f32", "i64", "i1"
SHAPES = [(6, 5), (6,), (5,), (6, 1), (6, 5, 1)]
IN_MEMORY = ("gather", "index_select", "flip", "constant_pad_nd")


def text(shape, element):
    return f"tensor<{''.join(f'{n}x' for n in shape)}{element}>"


class Graph:
    def __init__(self, name, rng, ops):
        self.name, self.rng, self.lines = name, rng, []
        self.values = [(f"%arg{i}", shape, element) for i, (shape, element) in
                       enumerate((s, e) for s in SHAPES for e in (FLOAT, INDEX))]
        self.arguments = list(self.values)
        for _ in range(ops):
            self.step()

    def pick(self, element=None, rank=None, shape=None):
        """Mostly one of the last values, so that graphs are deep."""
        fits = [v for v in self.values if (element is None or v[2] == element) and (shape is None or v[1] == shape)
                and (rank is None or len(v[1]) == rank)]
        return self.rng.choice(fits[-4:] if self.rng.random() < 0.6 else fits) if fits else None

    def emit(self, op, operands, shape, element):
        name = f"%{len(self.lines)}"
        types = ", ".join(text(s, e) for _, s, e in operands)
        body = op.format(*(n for n, _, _ in operands))
        self.lines.append(f"{name} = aten.{body} : ({types}) -> {text(shape, element)}")
        self.values.append((name, shape, element))

    def step(self):
        kind = self.rng.choice("unary binary binary where mask view view memory memory reduce row product positions".split())
        a = self.pick(FLOAT)
        shape = a[1]
        b = self.pick(FLOAT, shape=shape)
        if kind == "unary":
            self.emit(self.rng.choice(["exp", "relu", "tanh", "neg"]) + " {0}", [a], shape, FLOAT)
        elif kind == "binary":
            self.emit(self.rng.choice(["add", "mul", "sub"]) + " {0}, {1}", [a, b], shape, FLOAT)
        elif kind == "mask":
            a = self.pick(INDEX)
            self.emit("ne {0}, {1}", [a, self.pick(INDEX, shape=a[1])], a[1], MASK)
        elif kind == "where":
            if not (mask := self.pick(MASK)):
                return
            element = self.rng.choice([FLOAT, INDEX])
            parts = [self.pick(element, shape=mask[1]) for _ in range(2)]
            if all(parts):
                self.emit("where {0}, {1}, {2}", [mask, *parts], mask[1], element)
        elif kind == "view":
            a = self.pick()
            if a[1] and a[1][-1] == 1:
                self.emit(f"squeeze {{0}} dim [{len(a[1]) - 1}]", [a], a[1][:-1], a[2])
            elif len(a[1]) < 3:
                self.emit(f"unsqueeze {{0}} dim {len(a[1])}", [a], (*a[1], 1), a[2])
        elif kind == "memory" and shape:
            at = self.pick(INDEX, rank=1)
            same = self.pick(INDEX, rank=len(shape))
            if self.rng.random() < 0.5:
                dim = self.rng.randrange(len(shape))
                if all(n <= m for d, (n, m) in enumerate(zip(same[1], shape)) if d != dim):
                    self.emit(f"gather {{0}} dim {dim} at {{1}}", [a, same], same[1], FLOAT)
            else:
                self.emit("index_select {0} dim 0 at {1}", [a, at], (*at[1], *shape[1:]), FLOAT)
        elif kind == "positions":
            a = self.pick(INDEX)
            self.emit("add {0}, {1}", [a, self.pick(INDEX, shape=a[1])], a[1], INDEX)
        elif kind == "reduce" and len(shape) > 1:
            self.emit(f"sum {{0}} dim [{len(shape) - 1}]", [a], shape[:-1], FLOAT)
        elif kind == "row" and shape:
            self.emit(f"softmax {{0}} dim {len(shape) - 1}", [a], shape, FLOAT)
        elif kind == "product" and (a := self.pick(FLOAT, shape=(6, 5))):
            self.emit("linear {0}, {1}", [a, self.pick(FLOAT, shape=(6, 5))], (6, 6), FLOAT)

    def module(self):
        used = set(re.findall(r"%\d+\b", " ".join(line.split(" = ", 1)[1] for line in self.lines)))
        out = [v for v in self.values if v not in self.arguments and (v[0] not in used or self.rng.random() < 0.1)]
        arguments = ", ".join(f"{n}: {text(s, e)}" for n, s, e in self.arguments)
        types = ", ".join(text(s, e) for _, s, e in out)
        body = "\n  ".join(self.lines)
        return (f"func.func @{self.name}({arguments}) -> ({types}) {{\n  {body}\n"
                f"  return {', '.join(n for n, _, _ in out)} : {types}\n}}\n")


OP = re.compile(r"aten\.(\w+) (.*?) : \(")
VIEWS = ("squeeze", "unsqueeze")


def problems(before, after):
    """What is wrong with the kernels of one module."""
    found = []
    count = lambda text: collections.Counter(op for op, _ in OP.findall(text) if op not in VIEWS)
    if count(before) != count(after):
        found.append(f"ops {count(before)} became {count(after)}")
    for kernel in after.split("func.func private ")[1:]:
        for op, operands in OP.findall(kernel):
            names = re.findall(r"%\w+", operands)
            if op in IN_MEMORY and not all(n.startswith("%arg") for n in names):
                found.append(f"{op} {operands} reads a value of its kernel")
    return found


def main():
    shard_opt, graphs, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    rng = random.Random(seed)
    texts = [Graph(f"f{i}", rng, rng.randint(4, 60)).module() for i in range(graphs)]
    done = subprocess.run([shard_opt, "-", "--exec-form-kernels", "--split-input-file"], text=True, capture_output=True,
                          input="// -----\n".join(texts))
    if done.returncode:
        sys.exit(f"shard-opt ended with {done.returncode}:\n{done.stderr[-4000:]}")
    modules = done.stdout.split("// -----")
    if len(modules) != graphs:
        sys.exit(f"{len(modules)} modules of {graphs}")
    bad = [(i, found) for i, (b, a) in enumerate(zip(texts, modules)) if (found := problems(b, a))]
    for i, found in bad[:5]:
        print(f"graph {i}: {found}\n{texts[i]}")
    joined = sum(len(re.findall("func.func private", m)) for m in modules)
    print(f"{graphs} graphs, {joined} kernels, {len(bad)} failures")


main()
