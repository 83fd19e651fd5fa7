# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random calls of powers, of elementwise ops with three operands, and of triangles, as in pytorch_cases.py."""
import random

import torch

from pytorch_cases import ALL, FLOATS, NAMES, NUMBERS, A, partner, shape


def power():
    s = shape()
    return ([(s, random.choice(NUMBERS)), (partner(s), random.choice(NUMBERS))], "aten.pow {0}, {1}",
            lambda x, y: A.pow(x, y))


def three_operands():
    s = shape()
    t, u, v = (random.choice(NUMBERS) for _ in range(3))
    f, g, h = (random.choice(FLOATS) for _ in range(3))
    shapes = [s, partner(s), partner(s)]
    mask = random.choice([s, partner(s)])
    fill = random.choice(ALL)
    return random.choice([
        (list(zip(shapes, (t, u, v))), "aten.addcmul {0}, {1}, {2} {{value = 2.0}}",
         lambda x, y, z: A.addcmul(x, y, z, value=2)),
        (list(zip(shapes, (f, g, h))), "aten.addcdiv {0}, {1}, {2} {{value = 0.5}}",
         lambda x, y, z: A.addcdiv(x, y, z, value=0.5)),
        # One element type: PyTorch does not promote here.
        (list(zip(shapes, (f, f, f))), "aten.lerp {0}, {1}, {2}", lambda x, y, w: A.lerp(x, y, w)),
        ([(s, fill), (mask, torch.bool), ([] if random.random() < 0.9 else [1], fill)], "aten.masked_fill {0}, {1}, {2}",
         lambda x, m, v: A.masked_fill(x, m, v)),
    ])


def triangle():
    name, s, k = random.choice(["tril", "triu"]), shape(), random.randint(-3, 3)
    fn = getattr(A, name)

    def local(x, results):
        """The diagonal of the whole, as a shard's rows and columns count."""
        starts, rank = getattr(x[0], "starts", {}), x[0].dim()
        return fn(x[0], k + starts.get(rank - 2, 0) - starts.get(rank - 1, 0))
    return ([(s, random.choice(ALL))], f"aten.{name} {{0}}" + f" {{{{diagonal = {k} : i64}}}}" * (k != 0),
            lambda x: fn(x, k), {"local": local})


def dropout():
    s, p = shape(), random.choice([0.0, 0.25, 1.0])
    scale = 0 if p == 1 else 1 / (1 - p)
    return ([(s, random.choice(FLOATS)), (partner(s), torch.bool)], f"aten.dropout {{0}}, {{1}} {{{{p = {p} : f64}}}}",
            lambda x, m: x * (m * scale).to(x.dtype))


def random_numbers():
    if random.random() < 0.5:
        return ([(shape(), torch.int64), ([], torch.int64), ([], torch.int64)],
                f"aten.philox {{0}}, {{1}}, {{2}} {{{{word = {random.randrange(4)} : i64}}}}", lambda x, s, o: x + s + o,
                {"local": lambda x, r: sum(x)})
    kind, s = random.choice(FLOATS), shape()
    return ([([], torch.int64)] * 2, f'aten.random "uniform" [{", ".join(map(str, s))}] {NAMES[kind]} seed({{0}}) offset({{1}})',
            lambda seed, offset: torch.empty(s, dtype=kind, device="meta"))


FAMILIES = [dropout, random_numbers, power, three_operands, three_operands, triangle]
