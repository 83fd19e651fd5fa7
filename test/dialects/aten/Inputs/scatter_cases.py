# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random calls of ops that write at positions, of sorts, and of products over several dims, as in pytorch_cases.py."""
import random

import torch

from pytorch_cases import ALL, FLOATS, SIZES, A, dim_list, shape


def into_part(dims, sizes, call):
    """What a rank adds to its shard of operand 0 along `dims`: what falls into it."""
    def local(x, r):
        starts = getattr(x[0], "starts", {})
        whole = list(x[0].shape)
        for d in dims:
            whole[d] = sizes[d]
        padded, at = torch.zeros(whole, dtype=x[0].dtype), [slice(None)] * x[0].dim()
        for d in dims:
            at[d] = slice(starts.get(d, 0), starts.get(d, 0) + x[0].shape[d])
        padded[tuple(at)] = x[0]
        return call(padded, *x[1:])[tuple(at)]
    return {"local": local}


def scatter_add():
    s = shape(low=1, sizes=[1, 2, 3, 5])
    d, t = random.randrange(len(s)), random.choice([torch.float32, torch.float64, torch.int64])
    src = [random.choice([0, 1, 2, 4]) if e == d else n for e, n in enumerate(s)]
    index = [n if random.random() < 0.7 else random.randint(0, n) for n in src]

    def call(x, i, v):
        return A.scatter_add(x, d, i, v)
    return ([(s, t), (index, torch.int64), (src, t)], f"aten.scatter_add {{0}} dim {d} at {{1}} of {{2}}", call,
            {"bounds": {1: s[d]}} | into_part([d], s, call))


def index_put():
    s = shape(low=1, sizes=[1, 2, 3, 5])
    at = sorted(random.sample(range(len(s)), random.randint(1, min(3, len(s)))))
    common = shape(high=2)
    indices = [([n if random.random() < 0.7 else 1 for n in common], torch.int64) for _ in at]
    t = random.choice([torch.float32, torch.float64, torch.int64])
    slots = [f"{{{at.index(e) + 1}}}" if e in at else ":" for e in range(at[-1] + 1)]
    whole = list(torch.broadcast_shapes(*(i for i, _ in indices)))
    kept = [n for e, n in enumerate(s) if e not in at]
    first = at[0] if at[-1] - at[0] + 1 == len(at) else 0
    read = kept[:first] + whole + kept[first:]
    values = [n if random.random() < 0.8 else 1 for n in read][random.choice([0, 0, 0, 1]):]

    def call(x, *more):
        it = iter(more[:-1])
        return A.index_put(x, [next(it) if e in at else None for e in range(len(s))], more[-1], True)
    return ([(s, t)] + indices + [(values, t)], f"aten.index_put {{0}}[{', '.join(slots)}] of {{{len(at) + 1}}} accumulate", call,
            {"bounds": {i + 1: s[e] for i, e in enumerate(at)}} | into_part(at, s, call))


def last_of(x, places, values):
    """`values` at the places of a tensor whose elements are numbered: of several the last one stays."""
    places, values = places.flatten(), values.flatten()
    last = torch.full((x.numel() + 1,), -1).scatter_reduce(0, places, torch.arange(len(places)), "amax")[:-1]
    return torch.where(last >= 0, torch.cat([values, x.new_zeros(1)])[last], x.flatten()).reshape(x.shape)


def with_gradient_of(value, call):
    """The value, whose derivative is that of a call which may keep another one of several values at a place."""
    other = call()
    return other + (value - other).detach() if other.requires_grad else value


def numbers_of(x):
    return torch.arange(x.numel()).reshape(x.shape)


def scatter():
    s = shape(low=1, sizes=[1, 2, 3, 5])
    d, how = random.randrange(len(s)), random.choice(["assign", "assign", "prod", "amax", "amin"])
    t = random.choice([torch.float32, torch.float64, torch.int64])
    src = [random.choice([0, 1, 2, 4]) if e == d else n for e, n in enumerate(s)]
    index = [n if random.random() < 0.7 else random.randint(0, n) for n in src]

    def call(x, i, v):
        if x.is_meta or how != "assign":
            return A.scatter(x, d, i, v) if how == "assign" else A.scatter_reduce(x, d, i, v, how)
        if not x.numel():
            return x.clone()
        last = last_of(x, numbers_of(x).gather(d, i), v[tuple(map(slice, i.shape))])
        return with_gradient_of(last, lambda: A.scatter(x, d, i, v))
    return ([(s, t), (index, torch.int64), (src, t)], f'aten.scatter {{0}} dim {d} at {{1}} of {{2}} reduce "{how}"', call,
            {"bounds": {1: s[d]}} | into_part([d], s, call))


def index_write():
    operands, text, added, more = index_put()
    at = sorted(more["bounds"])
    dims = [d for d, slot in enumerate(text[text.index("[") + 1:text.index("]")].split(", ")) if slot != ":"]
    s = operands[0][0]

    def call(x, *rest):
        indices = [rest[dims.index(e)] if e in dims else None for e in range(len(s))]
        if x.is_meta:
            return A.index_put(x, indices, rest[-1], False)
        places = A.index(numbers_of(x), indices)
        return with_gradient_of(last_of(x, places, rest[-1].expand(places.shape)),
                                lambda: A.index_put(x, indices, rest[-1], False))
    slots = ", ".join(f"{{{i}}}" for i in at)
    return (operands, f"aten.index_write {{0}} dims {dim_list(dims)} at {slots} of {{{len(at) + 1}}}", call,
            {"bounds": more["bounds"]} | into_part(dims, s, call))


def sort():
    s = shape(low=1)
    d, down = random.randrange(len(s)), random.random() < 0.5
    t = random.choice([torch.float32, torch.float64, torch.int64, torch.uint8, torch.bfloat16])
    count = random.choice([None, random.randint(0, s[d])])
    kept = s[d] if count is None else count

    def call(x):
        return [r.narrow(d, 0, kept) for r in torch.sort(x, dim=d, descending=down, stable=True)]
    text = f"aten.sort {{0}} dim {d}" + " descending" * down + (f" count {count}" if count is not None else "")
    return [(s, t)], text, call


def scan():
    name, s = random.choice(["cumprod", "cummax", "cummin", "logcumsumexp"]), shape()
    d = random.randrange(max(len(s), 1))
    t = random.choice(FLOATS if name == "logcumsumexp" else ALL)

    def call(x):
        result = getattr(torch, name)(x, d)
        return result if isinstance(result, torch.Tensor) else result[0]
    return [(s, t)], f"aten.{name} {{0}} dim {d}", call


def tensordot():
    left, right = shape(high=3), shape(high=3)
    count = random.randint(0, min(len(left), len(right)))
    of_left, of_right = random.sample(range(len(left)), count), random.sample(range(len(right)), count)
    for l, r in zip(of_left, of_right):
        # PyTorch sums the other dim where one has size 1; dims here are of one size.
        right[r] = left[l] + (left[l] > 1 and random.random() < 0.05)
    t = random.choice([torch.float32, torch.float64])
    return ([(left, t), (right, t)], f"aten.tensordot {{0}}, {{1}} dims {dim_list(of_left)} {dim_list(of_right)}",
            lambda x, y: A.tensordot(x, y, of_left, of_right))


FAMILIES = [scatter_add, index_put, scatter, index_write, sort, scan, tensordot]
