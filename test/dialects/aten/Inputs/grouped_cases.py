# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random calls of products with the matrices that rows name, as in pytorch_cases.py. PyTorch has no such op: the calls here
are products with all matrices, of which each row keeps its own."""
import random

import torch

from pytorch_cases import SIZES


def kept(rows, index, groups):
    """1 where a row names a matrix. What names none is 0 for all of them."""
    if rows.dim() != 2 or index.shape != rows.shape[:1]:
        raise ValueError("needs an index for each row")
    return (index.unsqueeze(1) == torch.arange(groups, device=index.device)).to(rows.dtype)


def indexed_mm(rows, matrices, index):
    if matrices.dim() != 3 or rows.shape[1:] != matrices.shape[1:2] or rows.dtype != matrices.dtype:
        raise ValueError("does not multiply")
    return torch.einsum("sg,sk,gkn->sn", kept(rows, index, matrices.shape[0]), rows, matrices)


def indexed_outer(rows, other, index, groups):
    if other.dim() != 2 or rows.shape[:1] != other.shape[:1] or rows.dtype != other.dtype:
        raise ValueError("does not multiply")
    return torch.einsum("sg,sm,sn->gmn", kept(rows, index, groups), rows, other)


def operands():
    s, g, k, n = (random.choice(SIZES) for _ in range(4))
    wrong = random.random() < 0.05
    return s, g, k, n, ([s + wrong], random.choice([torch.int64, torch.int32]))


def product():
    s, g, k, n, index = operands()
    t = random.choice([torch.float32, torch.float64])
    matrices = [g, k + (random.random() < 0.05), n]

    def local(x, r):
        return indexed_mm(x[0], x[1], x[2] - getattr(x[1], "starts", {}).get(0, 0))
    return ([([s, k], t), (matrices, t), index], "aten.indexed_mm {0}, {1} at {2}", indexed_mm, {"bounds": {2: g + 1}, "local": local})


def sums():
    s, g, m, n, index = operands()
    t = random.choice([torch.float32, torch.float64])
    done = 0

    def local(x, r):
        """Parts of the result come in order."""
        nonlocal done
        count = r[0][0]
        begin, done = (0, 0) if count == g else (done, done + count)
        return indexed_outer(*x[:2], x[2] - begin, count)
    return ([([s, m], t), ([s, n], t), index], f"aten.indexed_outer {{0}}, {{1}} at {{2}} groups [{g}]",
            lambda x, y, i: indexed_outer(x, y, i, g), {"bounds": {2: g + 1}, "local": local})


def places(rows, owner, batches, parts):
    """Of each row among those of all parts, or None: first come first."""
    if owner.dim() != 1 or rows % max(batches, 1) or len(owner) != rows:
        raise ValueError("needs an owner for each row, in equal blocks")
    size = rows // batches
    found, taken = [], {}
    for row, part in enumerate(owner.tolist()):
        block = row // size
        at = taken.get((block, part), 0)
        taken[block, part] = at + 1
        found.append((block * parts + part) * size + at if 0 <= part < parts else None)
    return found


def dispatch_rows(rows, owner, batches, parts):
    if owner.is_meta:
        places(len(rows), torch.zeros(len(owner), dtype=torch.int64), batches, parts)
        return rows.new_zeros(len(rows) * parts, *rows.shape[1:])
    at = places(len(rows), owner, batches, parts)
    kept = [i for i, place in enumerate(at) if place is not None]
    result = rows.new_zeros(len(rows) * parts, *rows.shape[1:])
    return result.index_put([torch.tensor([at[i] for i in kept], dtype=torch.int64)], rows[kept])


def collect_rows(held, owner, batches, parts):
    if len(held) != len(owner) * parts:
        raise ValueError("needs as many rows as all parts have")
    if owner.is_meta:
        places(len(owner), torch.zeros(len(owner), dtype=torch.int64), batches, parts)
        return held.new_zeros(len(owner), *held.shape[1:])
    at = places(len(owner), owner, batches, parts)
    kept = [i for i, place in enumerate(at) if place is not None]
    result = held.new_zeros(len(owner), *held.shape[1:])
    return result.index_put([torch.tensor(kept, dtype=torch.int64)], held[[at[i] for i in kept]])


def rows_of_parts():
    size, batches, parts = random.choice(SIZES), random.choice([1, 2]), random.choice([1, 2, 3])
    rest = [random.choice(SIZES) for _ in range(random.choice([0, 1, 2]))]
    name, call = random.choice([("dispatch", dispatch_rows), ("collect", collect_rows)])
    count = size * batches
    rows = count if name == "dispatch" else count * parts + (random.random() < 0.05)
    return ([([rows, *rest], random.choice([torch.float32, torch.float64])), ([count], torch.int64)],
            f"aten.{name}_rows {{0}} at {{1}} batches {batches} parts {parts}", lambda x, o: call(x, o, batches, parts),
            {"bounds": {1: parts + 1}, "local": lambda x, r: call(x[0], x[1], max(len(x[1]) // max(size, 1), 1), parts)})


FAMILIES = [product, sums, rows_of_parts]
