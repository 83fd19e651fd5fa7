# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random placed programs: a random mesh, random small graphs, random legal layouts for every op, and a
redistribution wherever a value is not where its user wants it. What each op looks like to sharding (its
factors) is written here once more, apart from the compiler, in placed_ops.py."""
import random

from layout import Layout, Mesh, Placement

MESHES = [[("a", 2)], [("a", 3)], [("a", 4)], [("a", 2), ("b", 2)], [("a", 2), ("b", 3)],
          [("a", 2), ("b", 2), ("c", 2)]]


class Dim(int):
    """A size that the compiler knows as a symbol only."""

    def __new__(cls, value, symbol):
        made = super().__new__(cls, value)
        made.symbol = symbol
        return made


def symbol_of(n):
    return getattr(n, "symbol", None)


def same_shape(a, b):
    return list(a) == list(b) and [symbol_of(n) for n in a] == [symbol_of(n) for n in b]


class Factor:
    """kind: "parallel", "reduce" (result is P(reduction)), "together" (ranks talk inside the op; results
    that lack the factor are replicated), "whole" (never sharded)."""

    def __init__(self, size, kind="parallel", reduction="sum", plain=False):
        self.size, self.kind, self.reduction = size, kind, reduction
        self.plain = plain or symbol_of(size) is not None  # chunks only: no explicit sizes, no granules


class Spec:
    """An op on global tensors: operands are (value, dims), results (shape, dtype, dims); dims has for each
    dim the names of its factors, outer to inner (none for a dim of size 1)."""

    def __init__(self, name, operands, results, factors, attrs="", linear=(), additive=(), indices=()):
        self.name, self.operands, self.results, self.factors = name, operands, results, factors
        self.attrs, self.linear, self.additive = attrs, list(linear), set(additive)
        self.indices = list(indices)  # index operands after the tensors: the sizes of (operand, dim)


class Value:
    def __init__(self, name, shape, dtype, layout, high=None):
        self.name, self.shape, self.dtype, self.layout = name, list(shape), dtype, layout
        self.high = high  # for integers made here: values are in [0, high)

    def type_text(self):
        return tensor_type(self.shape, self.dtype, self.layout)


def tensor_type(shape, dtype, layout=None):
    dims = "".join(f"{'?' if symbol_of(n) else n}x" for n in shape)
    return f"tensor<{dims}{dtype}{', ' + layout.text() if layout else ''}>"


class Program:
    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.name = f"f{seed}"
        self.mesh = Mesh(self.rng.choice(MESHES))
        self.float = self.rng.choices(["f64", "f32", "bf16"], [8, 1, 1])[0]
        symbolic = self.rng.random() < 0.3
        self.symbols = {f"n{i}": self.rng.randint(2, 9) for i in range(2)} if symbolic else {}
        self.args, self.values, self.lines, self.returned = [], [], [], []
        self.ops = []
        self.count = 0

    # -- values -------------------------------------------------------------------------------------

    def fresh(self):
        self.count += 1
        return f"%{self.count}"

    def arg(self, shape, dtype=None, high=None):
        dtype = dtype or self.float
        layout = self.random_layout(shape, dtype)
        value = Value(self.fresh(), shape, dtype, layout, high)
        self.args.append(value)
        self.values.append(value)
        return value

    def random_layout(self, shape, dtype):
        """Any valid layout: each axis replicated, partial or on some dim, split in some way."""
        placements, used, partial = [], {}, None
        for axis, (_, n) in enumerate(self.mesh.axes):
            dims = [d for d, size in enumerate(shape) if size > 1]
            kinds = ["R"] + ["S"] * (2 * bool(dims)) + (["P"] if dtype != "i1" else [])
            kind = self.rng.choice(kinds)
            if kind == "P":
                reduction = self.rng.choice(["sum", "max"] if dtype[0] == "i" else ["sum", "avg", "max", "min"])
                if partial and {partial, reduction} != {"sum", "avg"}:
                    reduction = partial  # reductions over several axes must commute
                partial = reduction
                placements.append(Placement("P", reduction=reduction))
            elif kind == "S":
                dim = self.rng.choice(dims)
                placements.append(self.random_split(dim, shape[dim], n, plain=dim in used))
                used.setdefault(dim, []).append(axis)
            else:
                placements.append(Placement("R"))
        shared = [axes for axes in used.values() if len(axes) > 1]
        order = None
        if shared and self.rng.random() < 0.5:
            order = list(reversed(range(len(placements))))
            for axes in shared:  # the outer one is the second now, and may have been split by sizes
                for axis in axes:
                    placements[axis] = Placement("S", placements[axis].dim)
        elif shared:
            for axes in shared:
                for axis in axes[1:]:
                    placements[axis] = Placement("S", placements[axis].dim)
        return Layout(self.mesh, placements, order)

    def random_split(self, dim, size, n, plain=False):
        ways = ["chunk"] * 3 + ([] if plain or symbol_of(size) else ["sizes", "granule", "blocks", "unequal"])
        way = self.rng.choice(ways)
        blocks = [b for b in (2, 3) if size % b == 0 and size > b]
        if way == "sizes":
            return Placement("S", dim, sizes=self.random_sizes(size, n))
        granules = [g for g in (2, 3) if size % g == 0]
        if way == "granule" and granules:
            return Placement("S", dim, granule=self.rng.choice(granules))
        if way == "blocks" and blocks:
            return Placement("S", dim, blocks=self.rng.choice(blocks))
        if way == "unequal":
            sizes = self.random_sizes(size, self.rng.choice([2, 3]))
            return Placement("S", dim, blocks=sizes, granule=[self.rng.choice([g for g in (1, 2, 3) if s % g == 0]) for s in sizes])
        return Placement("S", dim)

    def random_sizes(self, size, n):
        cuts = sorted(self.rng.randint(0, size) for _ in range(n - 1))
        return [b - a for a, b in zip([0] + cuts, cuts + [size])]

    def pick(self, rank=None, minimum=0, condition=lambda v: True):
        """An existing float tensor, or None."""
        fitting = [v for v in self.values if v.dtype == self.float and len(v.shape) >= minimum and
                   (rank is None or len(v.shape) == rank) and condition(v)]
        # The latest values more often: graphs become deep.
        return self.rng.choice(fitting[-4:] * 2 + fitting) if fitting else None

    def dims(self, rank, ones=True):
        return [self.dim(([1] if ones else []) + [2, 3, 4, 5, 6, 7, 8, 12]) for _ in range(rank)]

    def dim(self, sizes):
        """One of the sizes, or a symbol."""
        if self.symbols and self.rng.random() < 0.3:
            symbol = self.rng.choice(list(self.symbols))
            return Dim(self.symbols[symbol], symbol)
        return self.rng.choice(sizes)

    def sizes(self, shape, dims, source):
        """An array of static sizes, and where the symbolic ones come from: the dim of operand 0 (its factors
        are `source`) that has the same factors."""
        text = ", ".join(str(-(2**63)) if symbol_of(n) else str(int(n)) for n in shape)
        indices = [(0, source.index(names)) for n, names in zip(shape, dims) if symbol_of(n)]
        return f"array<i64: {text}>" if shape else "array<i64>", indices

    # -- placing ------------------------------------------------------------------------------------

    def choose(self, spec):
        """For each axis: None, a factor's name, or ("partial", set of operands, reduction)."""
        choices = []
        for _ in self.mesh.axes:
            options = [None]
            for name, f in spec.factors.items():
                if f.kind != "whole" and f.size > 1:
                    options += [name] * 3
            if all(t[1] == self.float for t in spec.results):
                options += [("partial", s, r) for s in spec.linear for r in ("sum", "avg")]
            choices.append(self.rng.choice(options))
        return choices

    def place(self, spec):
        """Layouts of all operands and results, or None where this choice cannot be said in layouts."""
        choices = self.choose(spec)
        axes_of = {}
        for axis, choice in enumerate(choices):
            if isinstance(choice, str):
                axes_of.setdefault(choice, []).append(axis)
        order = list(range(len(self.mesh.axes)))
        if self.rng.random() < 0.3:
            order.reverse()
        splits = {}
        for name, axes in axes_of.items():
            f = spec.factors[name]
            for axis in axes:
                plain = len(axes) > 1 or f.plain
                split = self.random_split(0, f.size, self.mesh.axes[axis][1], plain)
                # Whether an op takes blocks is up to its rule; they come by redistributions.
                splits[axis] = Placement("S", 0, sizes=split.sizes, granule=1 if isinstance(split.granule, list) else split.granule)
        operands = [self.layout(spec, d, choices, splits, order, i, None) for i, (_, d) in enumerate(spec.operands)]
        results = [self.layout(spec, d, choices, splits, order, None, i) for i, (_, _, d) in enumerate(spec.results)]
        return None if any(x is None for x in operands + results) else (operands, results)

    def layout(self, spec, dims, choices, splits, order, operand, result):
        placements, factor_of_dim = [], {}
        for axis, choice in enumerate(choices):
            placement = Placement("R")
            if isinstance(choice, tuple):
                if result is not None or operand in choice[1]:
                    placement = Placement("P", reduction=choice[2])
            elif choice is not None:
                f = spec.factors[choice]
                at = [(d, names.index(choice)) for d, names in enumerate(dims) if choice in names]
                if at:
                    d, i = at[0]
                    if factor_of_dim.setdefault(d, choice) != choice:
                        return None
                    sizes = [spec.factors[n].size for n in dims[d]]
                    placement = scaled(splits[axis], d, product(sizes[:i]), product(sizes[i + 1:]))
                elif f.kind == "reduce" and (result is not None or operand in spec.additive):
                    placement = Placement("P", reduction=f.reduction)
            placements.append(placement)
        shares = any(len([p for p in placements if p.kind == "S" and p.dim == d]) > 1 for d in range(len(dims)))
        return Layout(self.mesh, placements, order if shares else None)

    def add(self, spec):
        """Emits an op in a random placement; returns its results, or None where none was found."""
        for _ in range(10):
            placed = self.place(spec)
            if placed:
                break
        else:
            return None
        operands, results = placed
        names, types = [], []
        for (value, _), layout in zip(spec.operands, operands):
            moved = self.redistribute(value, layout)
            names.append(moved.name)
            types.append(moved.type_text())
        for operand, dim in spec.indices:  # the size of an operand's dim
            index = self.fresh()
            self.lines.append(f"{index} = aten.sym_size {names[operand]} dim {dim} : ({types[operand]}) -> index")
            names.append(index)
        types += ["index"] * len(spec.indices)
        made = [Value(self.fresh(), shape, dtype, layout)
                for (shape, dtype, _), layout in zip(spec.results, results)]
        attrs = f" <{{{spec.attrs}}}>" if spec.attrs else ""
        self.lines.append(f'{", ".join(v.name for v in made)} = "aten.{spec.name}"({", ".join(names)}){attrs} : '
                          f'({", ".join(types)}) -> ({", ".join(v.type_text() for v in made)})')
        self.values += made
        self.ops.append(spec.name)
        return made

    def redistribute(self, value, layout):
        if value.layout == layout:
            return value
        moved = Value(self.fresh(), value.shape, value.dtype, layout, value.high)
        self.lines.append(f"{moved.name} = dist.redistribute {value.name} : {value.type_text()} to "
                          f"{moved.type_text()}")
        return moved

    def finish(self):
        """Returns the last values, each in a layout of its own."""
        for value in self.values[-3:]:
            layout = value.layout
            if self.rng.random() < 0.7:
                layout = self.random_layout(value.shape, value.dtype)
            self.returned.append(self.redistribute(value, layout))

    def text(self):
        args = ", ".join(f"{v.name}: {v.type_text()}{sizes_text(v.shape)}" for v in self.args)
        types = ", ".join(v.type_text() for v in self.returned)
        body = "\n".join("  " + line for line in self.lines)
        names = ", ".join(v.name for v in self.returned)
        symbols = ", ".join(f"#dist.symbol<{name} in [1, 64]>" for name in self.symbols)
        attributes = f" attributes {{dist.symbols = [{symbols}]}}" if symbols else ""
        return (f"func.func @{self.name}({args}) -> ({types}){attributes} {{\n{body}\n  return {names} : "
                f"{types}\n}}\n")


def sizes_text(shape):
    if not any(symbol_of(n) for n in shape):
        return ""
    return " {dist.sizes = [" + ", ".join(f"#dist.size<{symbol_of(n) or n}>" for n in shape) + "]}"


def product(values):
    values = list(values)
    if len(values) == 1:
        return values[0]  # may be symbolic
    result = 1
    for v in values:
        result *= v
    return result


def scaled(split, dim, outer, inner):
    """The split of a factor as one of a dim that has `outer` before and `inner` after it."""
    sizes = [s * inner for s in split.sizes] if split.sizes else None
    return Placement("S", dim, blocks=outer, granule=1 if sizes else split.granule * inner, sizes=sizes)
