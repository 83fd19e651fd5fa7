# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Meshes and layouts by brute force, from the text of their attributes and the rules of the design
(chunks, nested axes, blocks, granules, sizes): lists of global indices, nothing clever. Written apart
from the C++ so that it can judge it."""
import itertools
import re

import torch

_TOKEN = re.compile(r'\s*("(?:[^"\\]|\\.)*"|-?\d+|[A-Za-z_][\w.]*|[\[\](){}<>,=?#!*:+-])')


def tokenize(text):
    tokens, at = [], 0
    text = text.strip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if not match:
            raise ValueError(f"cannot read {text[at:at + 40]!r}")
        tokens.append(match.group(1))
        at = match.end()
    return tokens


class Cursor:
    def __init__(self, text):
        self.tokens, self.at = tokenize(text), 0

    def peek(self):
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    def next(self, *expected):
        token = self.peek()
        if expected and token not in expected:
            raise ValueError(f"expected {expected}, got {token!r} in {' '.join(map(str, self.tokens))}")
        self.at += 1
        return token

    def accept(self, token):
        if self.peek() == token:
            self.at += 1
            return True
        return False

    def items(self):
        self.next("[")
        values = []
        while not self.accept("]"):
            values.append(self.next())
            self.accept(",")
        return values

    def ints(self):
        return [int(token) for token in self.items()]

    def names(self):
        return [token.strip('"') for token in self.items()]


class Mesh:
    """Axes (name, size) in row-major order of ranks; `devices` renames the ranks."""

    def __init__(self, axes, devices=None):
        self.axes = list(axes)
        self.size = 1
        for _, n in self.axes:
            self.size *= n
        self.devices = list(devices) if devices else list(range(self.size))
        self.names = [name for name, _ in self.axes]

    def __eq__(self, other):
        return self.axes == other.axes and self.devices == other.devices

    @staticmethod
    def of_ranks(ranks):
        """A line of these ranks."""
        return Mesh([("ranks", len(ranks))], sorted(ranks))

    def coordinate_of(self, rank):
        """None for a rank that is not in the mesh (L5)."""
        return self.coordinates()[self.devices.index(rank)] if rank in self.devices else None

    def coordinates(self):
        """Coordinates in order of position."""
        return list(itertools.product(*(range(n) for _, n in self.axes)))

    def groups(self, axes):
        """Positions that differ only on these axes (indices), each group row-major in the given order."""
        rest = [i for i in range(len(self.axes)) if i not in axes]
        position = {c: p for p, c in enumerate(self.coordinates())}
        result = []
        for outer in itertools.product(*(range(self.axes[i][1]) for i in rest)):
            group = []
            for inner in itertools.product(*(range(self.axes[i][1]) for i in axes)):
                coordinate = [0] * len(self.axes)
                for i, v in zip(rest, outer):
                    coordinate[i] = v
                for i, v in zip(axes, inner):
                    coordinate[i] = v
                group.append(position[tuple(coordinate)])
            result.append(group)
        return result

    def text(self):
        axes = ", ".join(f'"{name}" = {n}' for name, n in self.axes)
        listed = "" if self.devices == list(range(self.size)) else f", devices = {self.devices}"
        return f"#dist.mesh<[{axes}]{listed}>"


def parse_mesh(cursor):
    if cursor.accept("#"):
        cursor.next("dist.mesh")
    cursor.next("<")
    cursor.next("[")
    axes = []
    while not cursor.accept("]"):
        name = cursor.next().strip('"')
        cursor.next("=")
        axes.append((name, int(cursor.next())))
        cursor.accept(",")
    devices = None
    if cursor.accept(","):
        cursor.next("devices")
        cursor.next("=")
        devices = cursor.ints()
    cursor.next(">")
    return Mesh(axes, devices)


class Placement:
    """kind "R", "S" or "P"; for S: dim, blocks (their number, or a list of sizes), granule (or one for each), sizes; for P: reduction."""

    def __init__(self, kind, dim=0, blocks=1, granule=1, sizes=None, reduction="sum"):
        self.kind, self.dim, self.blocks, self.granule, self.sizes = kind, dim, blocks, granule, sizes
        self.reduction = reduction

    def key(self):
        return (self.kind, self.dim, str(self.blocks), str(self.granule), tuple(self.sizes or ()), self.reduction)

    def __eq__(self, other):
        return self.key() == other.key()

    def __hash__(self):
        return hash(self.key())

    def moved(self, dim):
        """The same split of another dim."""
        return Placement("S", dim, self.blocks, self.granule, self.sizes)

    def text(self):
        if self.kind == "R":
            return "R"
        if self.kind == "P":
            return f"P({self.reduction})"
        more = f", blocks = {self.blocks}" if self.blocks != 1 else ""
        more += f", granule = {self.granule}" if self.granule != 1 else ""
        more += f", sizes = {list(self.sizes)}" if self.sizes else ""
        return f"S({self.dim}{more})"


def parse_placement(cursor):
    kind = cursor.next("R", "S", "P")
    if kind == "R":
        return Placement("R")
    if kind == "P":
        reduction = "sum"
        if cursor.accept("("):
            reduction = cursor.next()
            cursor.next(")")
        return Placement("P", reduction=reduction)
    cursor.next("(")
    placement = Placement("S", int(cursor.next()))
    while cursor.accept(","):
        field = cursor.next("blocks", "granule", "sizes")
        cursor.next("=")
        setattr(placement, field, cursor.ints() if cursor.peek() == "[" else int(cursor.next()))
    cursor.next(")")
    return placement


def pieces(indices, placement, count, r):
    """What coordinate r of `count` holds of a list of indices (L3, L3b, L3c, L4)."""
    held = []
    if isinstance(placement.blocks, list):
        granules = placement.granule if isinstance(placement.granule, list) else [placement.granule] * len(placement.blocks)
        begin = 0
        for size, granule in zip(placement.blocks, granules):
            held += pieces(indices[begin:begin + size], Placement("S", granule=granule), count, r)
            begin += size
        return held
    block = len(indices) // placement.blocks
    for b in range(placement.blocks):
        part = indices[b * block:(b + 1) * block]
        if placement.sizes:
            begin = sum(placement.sizes[:r])
            held += part[begin:begin + placement.sizes[r]]
        else:
            units = -(-block // placement.granule)
            step = -(-units // count) * placement.granule
            held += part[r * step:(r + 1) * step]
    return held


class Layout:
    def __init__(self, mesh, placements, order=None):
        self.mesh, self.placements = mesh, list(placements)
        self.order = list(order) if order else list(range(len(self.placements)))

    def __eq__(self, other):
        return (self.mesh == other.mesh and self.placements == other.placements and
                self.order == other.order)

    def __hash__(self):
        return hash((tuple(self.placements), tuple(self.order)))

    def held(self, dim, size, coordinate):
        """Global indices of one dim that a coordinate holds, in local order."""
        indices = list(range(size))
        for axis in self.order:
            p = self.placements[axis]
            if p.kind == "S" and p.dim == dim:
                indices = pieces(indices, p, self.mesh.axes[axis][1], coordinate[axis])
        return indices

    def local_shape(self, shape, coordinate):
        return [len(self.held(d, n, coordinate)) for d, n in enumerate(shape)]

    def shard(self, value, coordinate):
        """The block of a global tensor at a coordinate; a partial axis holds the whole value."""
        for d in range(value.dim()):
            held = self.held(d, value.shape[d], coordinate)
            if len(held) != value.shape[d] or held != list(range(len(held))):
                value = value.index_select(d, torch.tensor(held, dtype=torch.int64))
        return value

    def partial_axes(self):
        return [i for i, p in enumerate(self.placements) if p.kind == "P"]

    def scatter(self, value, generator=None):
        """One tensor per position. What the ranks of a partial axis hold is drawn at random, such that
        their reduction is the value."""
        blocks = [self.shard(value, c) for c in self.mesh.coordinates()]
        for axis in self.partial_axes():
            for group in self.mesh.groups([axis]):
                parts = split_partial([blocks[p] for p in group], self.placements[axis].reduction, generator)
                for p, part in zip(group, parts):
                    blocks[p] = part
        return blocks

    def gather(self, blocks, shape):
        """The global tensor, and the largest difference between replicas. `blocks` is not changed."""
        blocks = list(blocks)
        for axis in self.partial_axes():
            for group in self.mesh.groups([axis]):
                total = reduce([blocks[p] for p in group], self.placements[axis].reduction)
                for p in group:
                    blocks[p] = total
        whole = torch.zeros(shape, dtype=blocks[0].dtype)
        for c, block in zip(self.mesh.coordinates(), blocks):
            expected = self.local_shape(shape, c)
            if list(block.shape) != expected:
                raise ValueError(f"rank at {c} holds {list(block.shape)}, its layout says {expected}")
            if not shape:
                whole = block.clone()
            elif block.numel():
                indices = [torch.tensor(self.held(d, n, c)) for d, n in enumerate(shape)]
                whole[torch.meshgrid(*indices, indexing="ij")] = block
        spread = 0.0
        for c, block in zip(self.mesh.coordinates(), blocks):
            spread = max(spread, difference(self.shard(whole, c), block))
        return whole, spread

    def spread(self, blocks, world):
        """The blocks by position of `world`; None for a rank that is not in the mesh."""
        by_rank = dict(zip(self.mesh.devices, blocks))
        return [by_rank.get(rank) for rank in world.devices]

    def collect(self, values, world):
        """The other way: of values by position of `world`, those of the ranks in the mesh."""
        return [values[world.devices.index(rank)] for rank in self.mesh.devices]

    def text(self):
        inner = ", ".join(p.text() for p in self.placements)
        names = ", ".join(f'"{self.mesh.names[i]}"' for i in self.order)
        order = "" if self.order == sorted(self.order) else f", order = [{names}]"
        return f"#dist.layout<{self.mesh.text()}, [{inner}]{order}>"


def parse_layout(text):
    cursor = Cursor(text)
    cursor.next("#")
    cursor.next("dist.layout")
    cursor.next("<")
    mesh = parse_mesh(cursor)
    cursor.next(",")
    cursor.next("[")
    placements = []
    while not cursor.accept("]"):
        placements.append(parse_placement(cursor))
        cursor.accept(",")
    order = None
    if cursor.accept(","):
        cursor.next("order")
        cursor.next("=")
        order = [mesh.names.index(name) for name in cursor.names()]
    cursor.next(">")
    return Layout(mesh, placements, order)


def reduce(parts, reduction):
    """The reduction over a group; floating-point sums are taken in float64."""
    stacked = torch.stack(parts)
    if reduction == "max":
        return stacked.amax(0)
    if reduction == "min":
        return stacked.amin(0)
    wide = stacked.double() if stacked.is_floating_point() else stacked
    if reduction == "sum":
        return wide.sum(0).to(stacked.dtype)
    if reduction == "avg":
        return (wide.sum(0) / len(parts)).to(stacked.dtype)
    if reduction == "prod":
        return wide.prod(0).to(stacked.dtype)
    raise ValueError(f"no reduction {reduction}")


def split_partial(parts, reduction, generator):
    """Random values whose reduction is parts[0] (all parts are the same block)."""
    value, n = parts[0], len(parts)
    if value.dtype == torch.bool:
        raise ValueError("a boolean tensor has no partial form here")
    if value.is_floating_point():
        # Of few digits: a value of few digits is their sum without rounding, on all replicas.
        noise = [torch.randn(value.shape, generator=generator, dtype=torch.float64).mul(256).round() / 256 for _ in range(n)]
    else:
        noise = [torch.randint(0, 5, value.shape, generator=generator).double() for _ in range(n)]
    if reduction in ("sum", "avg"):
        total = sum(noise[1:], torch.zeros(value.shape, dtype=torch.float64))
        scale = n if reduction == "avg" else 1
        noise[0] = value.double() * scale - total
        return [x.to(value.dtype) for x in noise]
    if reduction == "prod":
        # Powers of two are exact; integers have no others but 1 and -1.
        factors = [torch.exp2(x.round()) if value.is_floating_point() else 1 - 2 * (x % 2) for x in noise]
        others = torch.stack([torch.ones_like(noise[0]), *factors[1:]]).prod(0)
        return [x.to(value.dtype) for x in [value.double() / others, *factors[1:]]]
    sign = -1 if reduction == "max" else 1
    others = [(value.double() + sign * x.abs()).to(value.dtype) for x in noise[1:]]
    at = int(torch.randint(0, n, (), generator=generator))
    return others[:at] + [value] + others[at:]


def difference(a, b):
    """Largest difference; infinite where shapes, types or the places of NaN and infinities differ."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return float("inf")
    if a.numel() == 0:
        return 0.0
    if not a.is_floating_point():
        return float((a.long() - b.long()).abs().max())
    a, b = a.double(), b.double()
    same = (a == b) | (a.isnan() & b.isnan())
    delta = torch.where(same, torch.zeros_like(a), (a - b).abs())
    return float("inf") if delta.isnan().any() else float(delta.max())
