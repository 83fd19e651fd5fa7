# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prints random programs of one rank in which collectives stand beside products, and what else may: elementwise ops, norms,
triangles, sums, views that merge and split dims, transposes, values that are read twice and returned.

    chunk_programs.py [--seeds FIRST:LAST] [--mesh tp=4] [--rings]

With --rings, products have many features, and gathers and scatters are along their rows: what a ring of permutes is for."""
import argparse
import random

EXTENTS = (4, 8, 12, 6)


def text(shape):
    return f"tensor<{'x'.join(map(str, (*shape, 'f32')))}>"


class Program:
    def __init__(self, seed, group=4, rings=False):
        self.random, self.group, self.rings = random.Random(seed), group, rings
        self.arguments, self.lines, self.values = [], [], []
        shape = [self.random.choice(EXTENTS) for _ in range(self.random.choice((2, 2, 3)))]
        if rings:
            shape[-1] *= 16
            shape[0] *= self.random.choice((1, group))
        self.values.append(self.argument(shape))
        for _ in range(self.random.randint(4, 10)):
            self.step()
        # The last one, and some that pieces of others may be read from.
        returned = {len(self.values) - 1, *(self.random.randrange(len(self.values)) for _ in range(2))}
        self.returned = [self.values[i] for i in sorted(returned)]

    def argument(self, shape):
        self.arguments.append(shape)
        return f"%a{len(self.arguments) - 1}", tuple(shape)

    def emit(self, op, operands, shape):
        name = f"%v{len(self.lines)}"
        types = ", ".join(text(s) for _, s in operands)
        self.lines.append(f"  {name} = {op} : ({types}) -> {text(shape)}")
        self.values.append((name, tuple(shape)))

    def pick(self):
        """Mostly the newest value."""
        return self.values[-1] if self.random.random() < 0.8 else self.random.choice(self.values)

    def step(self):
        steps = [self.gather, self.gather, self.scatter, self.scatter, self.reduce, self.product, self.product, self.product,
                 self.unary, self.binary, self.norm, self.sum, self.merge, self.split, self.transpose,
                 self.triangle]
        if self.rings:
            steps += [self.around, self.around]
        self.random.choice(steps)(*self.pick())

    def gather(self, name, shape):
        dim = self.random.randrange(len(shape) - self.rings)
        if shape[dim] > 12:
            return
        to = [s * self.group if i == dim else s for i, s in enumerate(shape)]
        self.emit(f"dist.all_gather over #tp {name} dim {dim}", [(name, shape)], to)

    def around(self, name, shape):
        """A gather, products and a scatter."""
        if shape[-1] < 48:
            name, shape = self.argument([*shape[:-1], 16 * self.random.choice(EXTENTS)])
        self.gather(name, shape)
        for step in self.random.sample([self.product, self.unary, self.binary, self.product], self.random.choice((1, 2))):
            self.product(*self.values[-1])
            step(*self.values[-1])
        if self.random.random() < 0.7:
            self.scatter(*self.values[-1])

    def scatter(self, name, shape):
        dims = [i for i, s in enumerate(shape[:len(shape) - self.rings]) if s % self.group == 0 and s > self.group]
        if dims:
            dim = self.random.choice(dims)
            to = [s // self.group if i == dim else s for i, s in enumerate(shape)]
            self.emit(f"dist.reduce_scatter sum over #tp {name} dim {dim}", [(name, shape)], to)

    def reduce(self, name, shape):
        result = f"%v{len(self.lines)}"
        self.lines.append(f"  {result} = dist.all_reduce {self.random.choice(('sum', 'max'))} over #tp {name} : {text(shape)}")
        self.values.append((result, shape))

    def product(self, name, shape):
        out = self.random.choice(EXTENTS)
        if len(shape) == 2 and self.random.random() < 0.4:
            weight = self.argument((shape[-1], out))
            self.emit(f"aten.mm {name}, {weight[0]}", [(name, shape), weight], (*shape[:-1], out))
        elif len(shape) == 2 and self.random.random() < 0.3:
            added, weight = self.argument((out,)), self.argument((shape[-1], out))
            self.emit(f"aten.addmm {added[0]}, {name}, {weight[0]}", [added, (name, shape), weight], (*shape[:-1], out))
        else:
            weight = self.argument((out, shape[-1]))
            operands = [(name, shape), weight] + [self.argument((out,))] * (self.random.random() < 0.5)
            self.emit("aten.linear " + ", ".join(n for n, _ in operands), operands, (*shape[:-1], out))

    def unary(self, name, shape):
        self.emit(f"aten.{self.random.choice(('silu', 'tanh', 'neg'))} {name}", [(name, shape)], shape)

    def binary(self, name, shape):
        others = [v for v in self.values if v[1] == shape]
        if self.random.random() < 0.3:
            others = [self.argument([1 if self.random.random() < 0.3 else s for s in shape])]
        other = self.random.choice(others)
        self.emit(f"aten.{self.random.choice(('add', 'mul'))} {name}, {other[0]}", [(name, shape), other], shape)

    def norm(self, name, shape):
        self.emit(f"aten.layer_norm {name} [{shape[-1]}]", [(name, shape)], shape)

    def triangle(self, name, shape):
        self.emit(f"aten.{self.random.choice(('tril', 'triu'))} {name}", [(name, shape)], shape)

    def sum(self, name, shape):
        dim = self.random.randrange(len(shape))
        self.emit(f"aten.sum {name} dim [{dim}] keepdim", [(name, shape)],
                  [1 if i == dim else s for i, s in enumerate(shape)])

    def merge(self, name, shape):
        if len(shape) == 3:
            to = (shape[0] * shape[1], shape[2])
            self.emit(f"aten.view {name} [{to[0]}, {to[1]}]", [(name, shape)], to)

    def split(self, name, shape):
        if len(shape) == 2 and shape[0] % 2 == 0:
            to = (2, shape[0] // 2, shape[1])
            self.emit(f"aten.view {name} [{', '.join(map(str, to))}]", [(name, shape)], to)

    def transpose(self, name, shape):
        a, b = self.random.sample(range(len(shape)), 2)
        to = list(shape)
        to[a], to[b] = to[b], to[a]
        self.emit(f"aten.transpose {name} [{a}, {b}]", [(name, shape)], to)

    def __str__(self):
        arguments = ", ".join(f"%a{i}: {text(shape)}" for i, shape in enumerate(self.arguments))
        types = ", ".join(text(shape) for _, shape in self.returned)
        values = ", ".join(name for name, _ in self.returned)
        return f"({arguments}) -> ({types}) {{\n" + "\n".join(self.lines) + f"\n  return {values} : {types}\n}}\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="0:100")
    parser.add_argument("--mesh", default="tp=4", help="collectives are over the axis tp")
    parser.add_argument("--rings", action="store_true")
    args = parser.parse_args()
    first, last = map(int, args.seeds.split(":"))
    axes = dict(axis.split("=") for axis in args.mesh.split(","))
    mesh = ", ".join(f'"{name}" = {size}' for name, size in axes.items())
    print(f'#mesh = #dist.mesh<[{mesh}]>\n#tp = #dist.axes<#mesh, ["tp"]>')
    for seed in range(first, last):
        print(f"func.func @p{seed}{Program(seed, int(axes['tp']), args.rings)}")


if __name__ == "__main__":
    main()
