# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random calls of ATen ops: the call in PyTorch, on meta tensors, and the same op as MLIR text.

A case is (operands, text, call) or (operands, text, call, more): `text` has {0}, {1} ... for the
operands; `call` gets tensors of the operands' shapes and element types and returns a tensor or a list of
tensors. It may raise: then inference has to refuse too. `more` may have
- `local(operands, result_shapes)`: what one shard computes, where that is not `call`;
- `bounds`: for operands that are indices, their exclusive upper bound.
"""

import math
import random

import torch

NAMES = {
    torch.bool: "i1", torch.uint8: "ui8", torch.int8: "i8", torch.int16: "i16", torch.int32: "i32",
    torch.int64: "i64", torch.float16: "f16", torch.bfloat16: "bf16", torch.float32: "f32",
    torch.float64: "f64",
}
ALL = list(NAMES)
FLOATS = [t for t in ALL if t.is_floating_point]
INTS = [t for t in ALL if not t.is_floating_point]
NUMBERS = [t for t in ALL if t != torch.bool]
SIZES = [0, 1, 1, 2, 3, 5]


def shape(rank=None, low=0, high=4, sizes=SIZES):
    rank = random.randint(low, high) if rank is None else rank
    return [random.choice(sizes) for _ in range(rank)]


def partner(s, wrong=0.05):
    """A shape that broadcasts with `s`, or rarely does not."""
    out = [1 if random.random() < 0.3 else n for n in s]
    out = out[random.randint(0, len(out)):] if random.random() < 0.4 else out
    if out and random.random() < wrong:
        out[random.randrange(len(out))] += 1
    if random.random() < 0.2:
        out = shape(1) + out if random.random() < 0.5 else [2] + out
    return out


def some_dims(rank):
    dims = [d for d in range(max(rank, 1)) if random.random() < 0.5]
    random.shuffle(dims)
    return dims


def dim_list(dims):
    return "[" + ", ".join(map(str, dims)) + "]"


A = torch.ops.aten
UNARY = {
    "abs": NUMBERS, "neg": NUMBERS, "sign": ALL, "floor": NUMBERS, "ceil": NUMBERS, "trunc": NUMBERS,
    "round": NUMBERS, "bitwise_not": INTS, "clone": ALL, "alias": ALL, "relu": NUMBERS, "silu": FLOATS,
    "mish": FLOATS,
    "gelu": FLOATS, "hardswish": FLOATS, "hardsigmoid": FLOATS, "leaky_relu": FLOATS, "elu": FLOATS,
    "hardtanh": FLOATS, "softplus": FLOATS, "logical_not": ALL, "isnan": ALL, "isinf": ALL,
}
UNARY |= {n: ALL for n in "exp exp2 expm1 log log2 log10 log1p sqrt rsqrt reciprocal sin cos tan asin "
          "acos atan sinh cosh tanh erf erfinv sigmoid".split()}
BINARY = {n: ALL for n in "mul maximum minimum eq ne lt le gt ge logical_and logical_or logical_xor add "
          "div atan2".split()}
BINARY |= {n: INTS for n in ("bitwise_and", "bitwise_or", "bitwise_xor")}
BINARY |= {n: NUMBERS for n in ("fmod", "remainder", "sub")}


def unary():
    name = random.choice(list(UNARY))
    fn = getattr(A, name)
    return [(shape(), random.choice(UNARY[name]))], f"aten.{name} {{0}}", lambda x: fn(x)


def binary():
    name = random.choice(list(BINARY))
    s, fn = shape(), getattr(A, name)
    operands = [(s, random.choice(BINARY[name])), (partner(s), random.choice(BINARY[name]))]
    return operands, f"aten.{name} {{0}}, {{1}}", lambda x, y: fn(x, y)


def div_rounded():
    s = shape()
    mode = random.choice(["trunc", "floor"])
    return ([(s, random.choice(NUMBERS)), (partner(s), random.choice(NUMBERS))],
            f'aten.div {{0}}, {{1}} {{{{rounding_mode = "{mode}"}}}}',
            lambda x, y: A.div(x, y, rounding_mode=mode))


def where():
    s = shape()
    operands = [(partner(s), torch.bool), (s, random.choice(ALL)), (partner(s), random.choice(ALL))]
    return operands, "aten.where {0}, {1}, {2}", lambda c, x, y: A.where(c, x, y)


def clamp():
    s = shape()
    return ([(s, random.choice(NUMBERS)), (partner(s), random.choice(NUMBERS))],
            "aten.clamp {0} max({1})", lambda x, y: A.clamp(x, max=y))


def to_copy():
    t = random.choice(ALL)
    return [(shape(), random.choice(ALL))], f"aten.to_copy {{0}} to {NAMES[t]}", lambda x: x.to(t)


def bitcast():
    t, u = random.choice([(torch.float64, torch.int64), (torch.int64, torch.float64), (torch.int64, torch.int64)])
    return [(shape(), t)], f"aten.bitcast {{0}} to {NAMES[u]}", lambda x: x.view(u) if x.dim() else x.reshape(1).view(u).reshape([])


def copy():
    s, t = shape(), random.choice(ALL)
    return [(s, t), (s, t)], "aten.copy {0}, {1}", lambda x, y: A.copy(x, y)


def reduction():
    name = random.choice("sum mean prod amax amin any all var logsumexp linalg_vector_norm".split())
    types = FLOATS if name in ("mean", "var", "linalg_vector_norm") else ALL
    # Of no elements, our amax and amin are the identity.
    s = shape(sizes=[1, 2, 3, 5] if name in ("amax", "amin") else SIZES)
    dims, keep = some_dims(len(s)), random.random() < 0.5
    if not dims and name == "logsumexp":
        dims = [0]
    text = f"aten.{name} {{0}}" + (f" dim {dim_list(dims)}" if dims else "") + (" keepdim" * keep)

    def call(x):
        if name == "prod":
            for d in sorted(dims or range(x.dim()), reverse=True):
                x = A.prod(x, d, keep)
            return x if dims or s else A.prod(x)
        if name in ("sum", "mean", "any", "all") and not dims and not keep:
            return getattr(A, name)(x)
        if name == "any" or name == "all":
            return getattr(A, name).dims(x, dims or None, keep)
        if name == "linalg_vector_norm":
            return A.linalg_vector_norm(x, 2.0, dims or None, keep)
        if name == "var":
            return A.var.correction(x, dims or None, correction=1.0, keepdim=keep)
        return getattr(A, name)(x, dims, keep)

    def mean(x, results):
        whole = [n for d, n in enumerate(s) if not dims or d in dims]
        return A.sum(x, dims or list(range(x.dim())), keep) / math.prod(whole)
    return [(s, random.choice(types))], text, call, {"local": lambda x, r: mean(x[0], r)} if name == "mean" else {}


def cast_reduction():
    name, t = random.choice(["sum", "mean"]), random.choice(FLOATS)
    s = shape()
    dims = some_dims(len(s)) or [0]
    return ([(s, random.choice(ALL))], f"aten.{name} {{0}} dim {dim_list(dims)} to {NAMES[t]}",
            lambda x: getattr(A, name)(x, dims, False, dtype=t),
            {"local": lambda x, r: (A.sum(x[0].to(t), dims, False)
                                    / (math.prod(s[d] for d in dims if s) if name == "mean" else 1))})


def arg_reduction():
    name, s, keep = random.choice(["argmax", "argmin"]), shape(), random.random() < 0.5
    dim = random.randrange(max(len(s), 1)) if random.random() < 0.8 else None
    text = f"aten.{name} {{0}}" + (f" dim {dim}" if dim is not None else "") + " keepdim" * keep
    return [(s, random.choice(NUMBERS))], text, lambda x: getattr(A, name)(x, dim, keep)


def scan_or_softmax():
    name, s = random.choice(["softmax", "log_softmax", "cumsum"]), shape()
    dim = random.randrange(max(len(s), 1))
    t = random.choice(FLOATS) if random.random() < 0.5 else None
    fn = {"softmax": torch.softmax, "log_softmax": torch.log_softmax, "cumsum": torch.cumsum}[name]
    types = ALL if t is not None or name == "cumsum" else FLOATS
    return ([(s, random.choice(types))],
            f"aten.{name} {{0}} dim {dim}" + (f" to {NAMES[t]}" if t is not None else ""),
            lambda x: fn(x, dim, dtype=t))


def view():
    s = shape()
    count = 1
    for n in s:
        count *= n
    new = [1] * random.randint(0, 2)
    while count > 1:
        d = random.choice([d for d in range(2, count + 1) if count % d == 0])
        new.append(d)
        count //= d
    new += [0] * (count == 0)
    random.shuffle(new)
    if random.random() < 0.1:
        new.append(2)
    return [(s, torch.float32)], f"aten.view {{0}} {dim_list(new)}", (
        lambda x: x.reshape(new)), {"local": lambda x, r: x[0].reshape(r[0])}


def expand():
    s = shape()
    new = shape(random.randint(0, 1)) + [random.choice(SIZES) if n == 1 else n for n in s]
    if new and random.random() < 0.1:
        new[-1] += 1
    return [(s, torch.float32)], f"aten.expand {{0}} {dim_list(new)}", (
        lambda x: x.expand(new)), {"local": lambda x, r: x[0].expand(r[0])}


def rearrange():
    s = shape()
    dims = list(range(len(s)))
    random.shuffle(dims)
    d0, d1 = random.randrange(max(len(s), 1)), random.randrange(max(len(s), 1))
    new = random.randint(0, len(s) + 1)
    ones = [d for d, n in enumerate(s) if n == 1]
    flips = some_dims(len(s)) if s else []
    return random.choice([
        ([(s, torch.float32)], f"aten.permute {{0}} {dim_list(dims)}", lambda x: x.permute(dims)),
        ([(s, torch.float32)], f"aten.transpose {{0}} [{d0}, {d1}]", lambda x: x.transpose(d0, d1)),
        ([(s, torch.float32)], f"aten.unsqueeze {{0}} dim {new}", lambda x: x.unsqueeze(new)),
        ([(s, torch.float32)], f"aten.squeeze {{0}} dim {dim_list(ones)}", lambda x: x.squeeze(ones)),
        ([(s, torch.float32)], f"aten.flip {{0}} {dim_list(flips)}", lambda x: x.flip(flips)),
    ])


def parts():
    s = shape(low=1)
    d = random.randrange(len(s))
    start, end, step = random.randint(-6, 6), random.randint(-6, 6), random.randint(1, 3)
    index = random.randint(-6, 5)
    cuts = sorted(random.choices(range(s[d] + 1), k=random.randint(0, 3)))
    sizes = [b - a for a, b in zip([0] + cuts, cuts + [s[d] + (random.random() < 0.1)])]
    pad = [random.randint(-1, 3) for _ in range(2 * random.randint(1, len(s)))]
    piece = len(range(s[d])[start:end])

    def local_slice(x, r):
        # Aligned blocks, of which each shard has its part.
        begin = range(s[d])[start:end].start if r[0][d] == piece else 0
        block = range(s[d])[start:end].start // piece * r[0][d] if piece else 0
        return x[0].narrow(d, begin if r[0][d] == piece else block, r[0][d])
    return random.choice([
        ([(s, torch.float32)], f"aten.slice {{0}} dim {d} [{start} : {end} : 1]",
         lambda x: A.slice(x, d, start, end, 1), {"local": local_slice}),
        ([(s, torch.float32)], f"aten.slice {{0}} dim {d} [{start} : {end} : {step}]",
         lambda x: A.slice(x, d, start, end, step)),
        ([(s, torch.float32)], f"aten.select {{0}} dim {d} at {index}", lambda x: x.select(d, index),
         lookup_in([d], s, lambda x: x.select(d, index))),
        ([(s, torch.float32)], f"aten.split_with_sizes {{0}} {dim_list(sizes)} dim {d}",
         lambda x: A.split_with_sizes(x, sizes, d),
         {"local": lambda x, r: A.split_with_sizes(x[0], [q[d] for q in r], d)}),
        ([(s, torch.float32)], f"aten.constant_pad_nd {{0}} {dim_list(pad)}",
         lambda x: A.constant_pad_nd(x, pad)),
    ])


def wholes():
    s = shape(low=1)
    d, n = random.randrange(len(s)), random.randint(1, 4)
    shapes = [s[:d] + [random.choice(SIZES)] + s[d + 1:] for _ in range(n)]
    if len(s) > 1 and random.random() < 0.1:
        shapes[-1][d - 1] += 1
    if random.random() < 0.2:       # skipped, but its element type counts
        shapes.insert(random.randint(0, n), [0])
        n += 1
    names = ", ".join(f"{{{i}}}" for i in range(n))
    if random.random() < 0.5:
        return ([(t, random.choice(ALL)) for t in shapes], f"aten.cat {names} dim {d}",
                lambda *x: torch.cat(x, d))
    d, n = random.randint(0, len(s)), random.randint(1, 4)
    names = ", ".join(f"{{{i}}}" for i in range(n))
    return ([(s, torch.int8)] * n, f"aten.stack {names} dim {d}", lambda *x: torch.stack(x, d))


def contraction():
    k = random.choice(SIZES)
    wrong = k + (random.random() < 0.1)
    m, n, b = shape(low=0, high=3), random.choice(SIZES), random.choice(SIZES)
    r = random.choice(SIZES)
    batch = shape(high=2)
    left = random.choice([partner(batch) + [r, k], [k]])
    right = random.choice([batch + [wrong, n], [wrong]])
    f = torch.float32
    return random.choice([
        ([(m + [k], f), ([n, wrong], f)], "aten.linear {0}, {1}", lambda x, w: A.linear(x, w)),
        ([(m + [k], f), ([n, wrong], f), ([n], f)], "aten.linear {0}, {1}, {2}",
         lambda x, w, c: A.linear(x, w, c)),
        ([(left, f), (right, f)], "aten.matmul {0}, {1}", lambda x, y: A.matmul(x, y)),
        ([([r, k], f), ([wrong, n], f)], "aten.mm {0}, {1}", lambda x, y: A.mm(x, y)),
        ([([b, r, k], f), ([b, wrong, n], f)], "aten.bmm {0}, {1}", lambda x, y: A.bmm(x, y)),
        ([(random.choice([[n], [1, n], [r, n], []]), f), ([r, k], f), ([wrong, n], f)],
         "aten.addmm {0}, {1}, {2}", lambda c, x, y: A.addmm(c, x, y)),
        ([(random.choice([[n], [b, 1, n], [r, n]]), f), ([b, r, k], f), ([b, wrong, n], f)],
         "aten.baddbmm {0}, {1}, {2}", lambda c, x, y: A.baddbmm(c, x, y)),
    ])


def lookup_in(dims, sizes, call):
    """What a rank finds in its shard of a table that is looked up in along `dims`: elsewhere it has zeros."""
    def local(x, r):
        table = x[0]
        for d in dims:
            before = getattr(x[0], "starts", {}).get(d, 0)
            whole = list(table.shape)
            whole[d] = sizes[d]
            padded = torch.zeros(whole, dtype=table.dtype)
            padded.narrow(d, before, table.shape[d]).copy_(table)
            table = padded
        return call(table, *x[1:])
    return {"local": local}


def indexing():
    s = shape(low=1, sizes=[1, 2, 3, 5])
    d = random.randrange(len(s))
    i = [random.choice([0, 1, 2]) if e == d else random.randint(0, n) for e, n in enumerate(s)]
    n, m = random.choice(SIZES), random.choice(SIZES)
    at = sorted(random.sample(range(len(s)), random.randint(1, min(3, len(s)))))
    common = shape(high=2)
    indices = [([n if random.random() < 0.7 else 1 for n in common], torch.int64) for _ in at]
    slots = [f"{{{at.index(e) + 1}}}" if e in at else ":" for e in range(at[-1] + 1)]

    def local_embedding(x, r):
        """A shard of rows starts at x[0].starts[0]: others count as zero."""
        mine = x[1] - getattr(x[0], "starts", {}).get(0, 0)
        found = (mine >= 0) & (mine < x[0].shape[0])
        if x[0].shape[0] == 0:
            return torch.zeros(r[0], dtype=x[0].dtype)
        return A.embedding(x[0], mine.where(found, 0)) * found.unsqueeze(-1)

    def index(x, *idx):
        it = iter(idx)
        return A.index(x, [next(it) if e in at else None for e in range(len(s))])
    return random.choice([
        ([(s, torch.float16), (i, torch.int64)], f"aten.gather {{0}} dim {d} at {{1}}",
         lambda x, j: A.gather(x, d, j),
         {"bounds": {1: s[d]}} | lookup_in([d], s, lambda x, j: A.gather(x, d, j))),
        ([(s, torch.bool), ([n], torch.int32)], f"aten.index_select {{0}} dim {d} at {{1}}",
         lambda x, j: A.index_select(x, d, j),
         {"bounds": {1: s[d]}} | lookup_in([d], s, lambda x, j: A.index_select(x, d, j))),
        ([([n, m], torch.float32), (shape(), torch.int64)], "aten.embedding {0} at {1}",
         lambda w, j: A.embedding(w, j), {"bounds": {1: n}, "local": local_embedding}),
        ([(s, torch.float32)] + indices, f"aten.index {{0}}[{', '.join(slots)}]", index,
         {"bounds": {i + 1: s[e] for i, e in enumerate(at)}} | lookup_in(at, s, index)),
    ])


def norm():
    s = shape(low=1)
    k = random.randint(1, len(s))
    tail, t = s[-k:], random.choice(FLOATS[2:])
    c = random.choice([2, 4, 6])
    image = [random.choice(SIZES), c] + shape(high=2)
    return random.choice([
        ([(s, t), (tail, t), (tail, t)], f"aten.layer_norm {{0}} {dim_list(tail)} weight({{1}}) bias({{2}})",
         lambda x, w, b: A.layer_norm(x, tail, w, b)),
        ([(s, t), (tail, t)], f"aten.rms_norm {{0}} {dim_list(tail)} weight({{1}})",
         lambda x, w: A.rms_norm(x, tail, w)),
        ([(image, t), ([c], t)], "aten.group_norm {0} groups 2 weight({1})",
         lambda x, w: A.group_norm(x, 2, w),
         {"local": lambda x, r: A.group_norm(x[0], max(x[0].shape[1] * 2 // c, 1), x[1])}),
    ])


def attention():
    b, h, l, k, e, v = (random.choice([1, 2, 3]) for _ in range(6))
    t = random.choice([torch.float32, torch.bfloat16])
    mask = random.choice([[b, h, l, k], [l, k], [b, 1, l, k], [1, 1, 1, k]])
    q, kk, vv = ([b, h, l, e], t), ([b, h, k, e], t), ([b, h, k, v], t)
    gq = ([b, h * 2, l, e], t)

    begin = random.choice([0, 0, 1, 3])

    def local_causal(x, r):
        """Query i of the shard is query i + first of all of them, which begin at some key."""
        first = begin + getattr(x[0], "starts", {}).get(2, 0)
        rows = torch.arange(first, first + x[0].shape[2]).unsqueeze(1)
        return A.scaled_dot_product_attention(*x, torch.arange(x[1].shape[2]) <= rows)
    return random.choice([
        ([q, kk, vv], "aten.scaled_dot_product_attention {0}, {1}, {2} causal" + f" first {begin}" * (begin != 0),
         lambda x, y, z: A.scaled_dot_product_attention(x, y, z, torch.ones(l, k, dtype=torch.bool).tril(begin)),
         {"local": local_causal}),
        ([q, kk, vv, (mask, random.choice([torch.bool, t]))],
         "aten.scaled_dot_product_attention {0}, {1}, {2} mask({3}) scale 0.5",
         lambda x, y, z, m: A.scaled_dot_product_attention(x, y, z, m, scale=0.5)),
        ([gq, kk, vv], "aten.scaled_dot_product_attention {0}, {1}, {2} gqa",
         lambda x, y, z: A.scaled_dot_product_attention(x, y, z, enable_gqa=True)),
    ])


def arange():
    start, end, step = random.randint(-9, 9), random.randint(-9, 9), random.choice([-2, -1, 1, 2, 3])
    return ([], f"aten.arange [{start} : {end} : {step}] i64",
            lambda: torch.arange(start, end, step, device="meta"))


FAMILIES = [unary, unary, binary, binary, binary, div_rounded, where, clamp, to_copy, bitcast, copy, reduction,
            reduction, cast_reduction, arg_reduction, scan_or_softmax, view, expand, rearrange, parts,
            parts, wholes, contraction, contraction, indexing, norm, attention, arange]
