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


FAMILIES = [product, sums]
