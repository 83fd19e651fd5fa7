# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the `dist` ops of the local stage mean, for all ranks at once. A value is a list with one entry
per position of the mesh. Whatever an op claims about extents is checked against what ranks hold."""
import torch

from layout import Cursor, Placement, parse_mesh, pieces, reduce

DYNAMIC = -(2**63)
OPS = {}


def dist(name):
    def register(function):
        OPS["dist." + name] = function
        return function
    return register


# -- attributes -------------------------------------------------------------------------------------

_CACHE = {}


def _parsed(attr, read):
    """Attributes are few and repeat: each text is read once."""
    key = (read, attr["attr"])
    if key not in _CACHE:
        cursor = Cursor(attr["attr"])
        cursor.next("#")
        _CACHE[key] = read(cursor)
    return _CACHE[key]


def _read_groups(cursor):
    """(mesh, groups as lists of positions) or (None, groups as lists of ranks)."""
    if cursor.accept("dist.groups"):
        cursor.next("<")
        cursor.next("[")
        groups = []
        while not cursor.accept("]"):
            groups.append(cursor.ints())
            cursor.accept(",")
        return None, groups
    cursor.next("dist.axes")
    cursor.next("<")
    mesh = parse_mesh(cursor)
    cursor.next(",")
    return mesh, mesh.groups([mesh.names.index(name) for name in cursor.names()])


def groups_of(op, mesh):
    of, groups = _parsed(op.attrs["group"], _read_groups)
    if of is None:
        return [[mesh.devices.index(rank) for rank in group] for group in groups]
    if of == mesh:
        return groups
    # Of another mesh (L5): positions there are ranks, which have positions here.
    return [[mesh.devices.index(of.devices[p]) for p in group] for group in groups]


def _read_reduction(cursor):
    cursor.next("dist.reduction")
    cursor.next("<")
    return cursor.next()


def _read_extents(cursor):
    """A function of (coordinate, symbols)."""
    cursor.next("dist.extents")
    cursor.next("<")
    if cursor.accept("table"):
        table = cursor.ints()
        cursor.next("over")
        mesh = parse_mesh(cursor)
        position = {c: p for p, c in enumerate(mesh.coordinates())}
        return mesh, lambda coordinate, symbols: table[position[tuple(coordinate)]]
    expression = []
    while cursor.peek() not in ("over", ">"):
        expression.append(cursor.next())
    mesh, splits = None, []
    if cursor.accept("over"):
        mesh = parse_mesh(cursor)
        cursor.next("[")
        while not cursor.accept("]"):
            axis, placement = mesh.names.index(cursor.next().strip('"')), Placement("S")
            if cursor.accept("("):
                while not cursor.accept(")"):
                    field = cursor.next("blocks", "granule", "sizes")
                    cursor.next("=")
                    setattr(placement, field, cursor.ints() if cursor.peek() == "[" else int(cursor.next()))
                    cursor.accept(",")
            splits.append((axis, placement))
            cursor.accept(",")

    def evaluate(coordinate, symbols):
        held = list(range(_size(expression, symbols)))
        for axis, placement in splits:
            held = pieces(held, placement, mesh.axes[axis][1], coordinate[axis])
        return len(held)
    return mesh, evaluate


def _size(tokens, symbols):
    words = {"floordiv": "//", "mod": "%"}
    text = " ".join(words.get(t, str(symbols[t]) if t in symbols else t) for t in tokens)
    if not set(text) <= set("0123456789+-*/%() "):
        raise ValueError(f"cannot evaluate the size {text}")
    return eval(text, {"__builtins__": {}})


def extent(attrs, coordinate, symbols):
    return _parsed(attrs["extents"], _read_extents)[1](coordinate, symbols)


# -- ranks ------------------------------------------------------------------------------------------

@dist("extent")
def extent_op(op, operands, mesh, symbols):
    of, evaluate = _parsed(op.attrs["extents"], _read_extents)
    if of is None or of == mesh:
        return [[evaluate(c, symbols) for c in mesh.coordinates()]]
    places = [of.coordinate_of(rank) for rank in mesh.devices]
    return [[0 if c is None else evaluate(c, symbols) for c in places]]


@dist("axis_index")
def axis_index(op, operands, mesh, symbols):
    result = [0] * mesh.size
    for group in groups_of(op, mesh):
        for i, p in enumerate(group):
            result[p] = i
    return [result]


@dist("read_sizes")
def read_sizes(op, operands, mesh, symbols):
    lists = [tensor.tolist() for tensor in operands[0]]
    _expect(all(0 <= n <= op.attrs["at_most"] for numbers in lists for n in numbers), f"sizes {lists} are not possible")
    return [list(numbers) for numbers in zip(*lists)]


def _in_mesh(op, mesh):
    """By position: whether the rank is in the op's mesh."""
    cursor = Cursor(op.attrs["mesh"]["attr"])
    devices = parse_mesh(cursor).devices
    return [rank in devices for rank in mesh.devices]


@dist("leave_mesh")
def leave_mesh(op, operands, mesh, symbols):
    none = torch.zeros([0], dtype=op.types[0].dtype)
    return [[value if here else none for value, here in zip(operands[0], _in_mesh(op, mesh))]]


@dist("enter_mesh")
def enter_mesh(op, operands, mesh, symbols):
    return [[value if here else None for value, here in zip(operands[0], _in_mesh(op, mesh))]]


# -- collectives ------------------------------------------------------------------------------------

def _lists(op, operands, *names, has_full=lambda i, lists: False):
    """(tensors, for each tensor: {name: per position in the group an int or a per-rank list}). Behind a tensor's own sizes is the whole extent
    of a dim ("full") where it has one."""
    segments = op.attrs.get("operandSegmentSizes", [len(operands), 0])
    tensors, sizes = operands[:segments[0]], list(operands[segments[0]:])
    result = []
    for i in range(len(tensors)):
        lists = {}
        for name in names:
            entries = (op.attrs.get(name) or [[]] * len(tensors))[i]
            lists[name] = [sizes.pop(0) if v == DYNAMIC else v for v in entries] or None
        lists["full"] = sizes.pop(0) if has_full(i, lists) else None
        result.append(lists)
    return tensors, result


def _at(entries, p):
    return [v[p] if isinstance(v, list) else v for v in entries]


def _chunks(full, n):
    return [len(pieces(list(range(full)), Placement("S"), n, r)) for r in range(n)]


def _expect(condition, why):
    if not condition:
        raise ValueError(why)


@dist("all_reduce")
def all_reduce(op, operands, mesh, symbols):
    reduction = _parsed(op.attrs["reduction"], _read_reduction)
    results = []
    for tensor in operands:
        result = [None] * mesh.size
        for group in groups_of(op, mesh):
            _expect(len({tensor[p].shape for p in group}) == 1, "shapes differ in a group")
            total = reduce([tensor[p] for p in group], reduction)
            for p in group:
                result[p] = total
        results.append(result)
    return results


def _full(op, i, dim, rest, p):
    """The whole extent along `dim`: static in the result's type, or an index operand."""
    size = op.types[i].shape[dim]
    return size if size is not None else rest[p]


@dist("all_gather")
def all_gather(op, operands, mesh, symbols):
    tensors, lists = _lists(op, operands, "extents",
                            has_full=lambda i, of: of["extents"] is None and op.types[i].shape[op.attrs["dims"][i]] is None)
    results = []
    for i, tensor in enumerate(tensors):
        dim, entries, full = op.attrs["dims"][i], lists[i]["extents"], lists[i]["full"]
        result = [None] * mesh.size
        for group in groups_of(op, mesh):
            for p in group:
                extents = _at(entries, p) if entries else _chunks(_full(op, i, dim, full, p), len(group))
                held = [tensor[q].shape[dim] for q in group]
                _expect(extents == held, f"extents {extents}, but ranks hold {held}")
                result[p] = torch.cat([tensor[q] for q in group], dim)
        results.append(result)
    return results


@dist("reduce_scatter")
def reduce_scatter(op, operands, mesh, symbols):
    reduction = _parsed(op.attrs["reduction"], _read_reduction)
    tensors, lists = _lists(op, operands, "extents")
    results = []
    for i, tensor in enumerate(tensors):
        dim, entries = op.attrs["dims"][i], lists[i]["extents"]
        result = [None] * mesh.size
        for group in groups_of(op, mesh):
            _expect(len({tensor[p].shape for p in group}) == 1, "shapes differ in a group")
            total = reduce([tensor[p] for p in group], reduction)
            for at, p in enumerate(group):
                extents = _at(entries, p) if entries else _chunks(total.shape[dim], len(group))
                result[p] = torch.split(total, extents, dim)[at]
        results.append(result)
    return results


@dist("all_to_all")
def all_to_all(op, operands, mesh, symbols):
    def has_full(i, of):
        split, concat = op.attrs["split_dims"][i], op.attrs["concat_dims"][i]
        return of["concat_extents"] is None and split != concat and op.types[i].shape[concat] is None

    tensors, lists = _lists(op, operands, "split_extents", "concat_extents", has_full=has_full)
    results = []
    for i, tensor in enumerate(tensors):
        split, concat = op.attrs["split_dims"][i], op.attrs["concat_dims"][i]
        leaving, arriving = lists[i]["split_extents"], lists[i]["concat_extents"]
        full = lists[i]["full"]
        result = [None] * mesh.size
        if split == concat == 0 and len(op.types[i].shape) == 1:
            # To a rank that takes no part in an exchange of blocks nothing comes.
            result = [torch.zeros([0], dtype=op.types[i].dtype) for _ in result]
        for group in groups_of(op, mesh):
            cut = {}
            for p in group:
                extents = _at(leaving, p) if leaving else _chunks(tensor[p].shape[split], len(group))
                left = tensor[p].shape[split] - sum(extents)  # within one dim, what is behind all of them stays
                cut[p] = torch.split(tensor[p], extents + [left] * (split == concat and left > 0), split)
            for at, p in enumerate(group):
                parts = [cut[q][at] for q in group]
                got = [part.shape[concat] for part in parts]
                if arriving:
                    _expect(_at(arriving, p) == got, f"extents {_at(arriving, p)}, but {got} arrive")
                elif split != concat:
                    due = _chunks(_full(op, i, concat, full, p), len(group))
                    _expect(due == got, f"chunks {due}, but {got} arrive")
                result[p] = torch.cat(parts, concat)
                room = op.types[i].shape[concat]
                if split == concat and arriving and room is not None and room > result[p].shape[concat]:
                    shape = list(result[p].shape)
                    shape[concat] = room - shape[concat]
                    result[p] = torch.cat([result[p], torch.zeros(shape, dtype=result[p].dtype)], concat)
        results.append(result)
    return results


@dist("broadcast")
def broadcast(op, operands, mesh, symbols):
    results = []
    for tensor in operands:
        result = [None] * mesh.size
        for group in groups_of(op, mesh):
            for p in group:
                result[p] = tensor[group[op.attrs["root"]]]
        results.append(result)
    return results


@dist("permute")
def permute(op, operands, mesh, symbols):
    tensors, lists = _lists(op, operands, "extents")
    flat = op.attrs["pairs"]
    pairs = list(zip(flat[::2], flat[1::2]))
    results = []
    for i, tensor in enumerate(tensors):
        dim, entries = op.attrs["dims"][i], lists[i]["extents"]
        result = [None] * mesh.size
        for group in groups_of(op, mesh):
            for at, p in enumerate(group):
                held = tensor[p].shape[dim] if entries else None
                _expect(not entries or _at(entries, p)[at] == held, f"{held} elements where {entries} are due")
                result[p] = torch.zeros_like(tensor[p])
            for source, target in pairs:
                result[group[target]] = tensor[group[source]]
        results.append(result)
    return results


@dist("wait")
def wait(op, operands, mesh, symbols):
    return operands


# -- symbols ----------------------------------------------------------------------------------------

def _read_size(cursor):
    cursor.next("dist.size")
    cursor.next("<")
    return cursor.tokens[cursor.at:-1]


def bind_symbols(function, inputs):
    """Values of the symbols that are the size of some dim, from the shapes of global inputs."""
    symbols = {}
    for attrs, value in zip(function.arg_attrs, inputs):
        for size, n in zip(attrs.get("dist.sizes", ()), value.shape if "dist.sizes" in attrs else ()):
            tokens = _parsed(size, _read_size)
            if len(tokens) == 1 and not tokens[0].isdigit():
                symbols[tokens[0]] = n
    return symbols
