# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prints random programs of one rank with collectives over several groups of ranks: along axes of meshes whose devices are in
some order, and over lists of ranks; of one tensor or more, along any dim; between elementwise ops and transposes.

    node_programs.py [--seeds FIRST:LAST]"""
import argparse
import math
import random

MESHES = ((4,), (2, 2), (2, 4), (4, 2), (2, 2, 2))
AXES = "abc"


def text(shape):
    return f"tensor<{'x'.join(map(str, (*shape, 'f32')))}>"


class Program:
    def __init__(self, seed):
        self.random = random.Random(seed)
        sizes = self.random.choice(MESHES)
        self.world = math.prod(sizes)
        devices = list(range(self.world))
        order = self.random.choice(("plain", "plain", "transposed", "shuffled"))
        if order == "transposed":
            devices = sorted(devices, key=lambda d: (d % 2, d))
        elif order == "shuffled":
            self.random.shuffle(devices)
        named = ", ".join(f'"{axis}" = {size}' for axis, size in zip(AXES, sizes))
        self.mesh = f"#dist.mesh<[{named}], devices = {devices}>"
        self.sizes = dict(zip(AXES, sizes))
        self.lines, self.values = [], []
        self.arguments = [tuple(self.random.choice((1, 2, 3, 4, 6)) for _ in range(self.random.choice((1, 2, 2, 3))))
                          for _ in range(2)]
        self.values = [(f"%a{i}", shape) for i, shape in enumerate(self.arguments)]
        for _ in range(self.random.randint(2, 6)):
            self.random.choice((self.reduce, self.reduce, self.scatter, self.gather, self.gather, self.unary,
                                self.transpose))(*self.pick())

    def pick(self):
        return self.values[-1] if self.random.random() < 0.7 else self.random.choice(self.values)

    def group(self):
        """Text and size. Along axes of the mesh in any order, or lists of ranks of one size."""
        if self.random.random() < 0.7:
            axes = self.random.sample(list(self.sizes), self.random.randint(1, len(self.sizes)))
            quoted = ", ".join(f'"{axis}"' for axis in axes)
            return f"#dist.axes<{self.mesh}, [{quoted}]>", math.prod(self.sizes[axis] for axis in axes)
        ranks, size = list(range(self.world)), self.random.choice([n for n in (2, 4, 8) if n <= self.world])
        if self.random.random() < 0.5:
            self.random.shuffle(ranks)
        return f"#dist.groups<{[ranks[i:i + size] for i in range(0, self.world, size)]}>", size

    def emit(self, text_of, operands, shapes):
        names = [f"%v{len(self.lines)}"] if len(shapes) == 1 else [f"%v{len(self.lines)}#{i}" for i in range(len(shapes))]
        count = "" if len(shapes) == 1 else f":{len(shapes)}"
        from_ = ", ".join(text(s) for _, s in operands)
        to = text(shapes[0]) if len(shapes) == 1 else f"({', '.join(map(text, shapes))})"
        self.lines.append(f"  %v{len(self.lines)}{count} = {text_of} : ({from_}) -> {to}")
        self.values += zip(names, shapes)

    def several(self, name, shape):
        """The value, and sometimes another beside it."""
        others = [v for v in self.values if v[0] != name]
        return [(name, shape)] + ([self.random.choice(others)] if others and self.random.random() < 0.3 else [])

    def reduce(self, name, shape):
        group, _ = self.group()
        operands = self.several(name, shape)
        names = ", ".join(n for n, _ in operands)
        result = f"%v{len(self.lines)}"
        kind = self.random.choice(("sum", "avg", "max"))
        count = "" if len(operands) == 1 else f":{len(operands)}"
        self.lines.append(f"  {result}{count} = dist.all_reduce {kind} over {group} {names} : "
                          + ", ".join(text(s) for _, s in operands))
        self.values += [(result if not count else f"{result}#{i}", s) for i, (_, s) in enumerate(operands)]

    def scatter(self, name, shape):
        group, size = self.group()
        dims = [i for i, s in enumerate(shape) if s % size == 0 and s >= size]
        if dims:
            dim = self.random.choice(dims)
            to = tuple(s // size if i == dim else s for i, s in enumerate(shape))
            self.emit(f"dist.reduce_scatter {self.random.choice(('sum', 'avg', 'min'))} over {group} {name} dim {dim}",
                      [(name, shape)], [to])

    def gather(self, name, shape):
        group, size = self.group()
        operands = self.several(name, shape)
        dims = [self.random.randrange(len(s)) for _, s in operands]
        if any(math.prod(s) > 2000 for _, s in operands):
            return
        to = [tuple(e * size if i == d else e for i, e in enumerate(s)) for (_, s), d in zip(operands, dims)]
        self.emit(f"dist.all_gather over {group} " + ", ".join(f"{n} dim {d}" for (n, _), d in zip(operands, dims)), operands,
                  to)

    def unary(self, name, shape):
        self.emit(f"aten.{self.random.choice(('tanh', 'neg'))} {name}", [(name, shape)], [shape])

    def transpose(self, name, shape):
        if len(shape) >= 2:
            a, b = self.random.sample(range(len(shape)), 2)
            to = list(shape)
            to[a], to[b] = to[b], to[a]
            self.emit(f"aten.transpose {name} [{a}, {b}]", [(name, shape)], [tuple(to)])

    def __str__(self):
        arguments = ", ".join(f"%a{i}: {text(shape)}" for i, shape in enumerate(self.arguments))
        returned = self.values[-3:]
        types = ", ".join(text(shape) for _, shape in returned)
        return (f"({arguments}) -> ({types}) {{\n" + "\n".join(self.lines)
                + f"\n  return {', '.join(name for name, _ in returned)} : {types}\n}}\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="0:100")
    first, last = map(int, parser.parse_args().seeds.split(":"))
    for seed in range(first, last):
        print(f"func.func @p{seed}{Program(seed)}")


if __name__ == "__main__":
    main()
