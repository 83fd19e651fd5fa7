# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Cases for the kernels of devices: sizes at the edges of blocks, vectors and squares, and memory of every order."""
import torch

from kernel_cases import BF16, F16, F32, F64, I64, values
from kernels import Case

A = torch.ops.aten
BOOL, I8 = torch.bool, torch.int8


def flat():
    """Vectors of one or several blocks, with and without a rest, of every width of elements."""
    for n in (1, 3, 4, 255, 1023, 1024, 1025, 4099, 16384):
        for t in (F32, BF16):
            yield Case([values([n], t), values([n], t)], "aten.add {0}, {1}", torch.add)
    for t in (F64, F16, I64, torch.int32, torch.int16, I8, torch.uint8, BOOL):
        x, y = values([3, 1367], t), values([3, 1367], t)
        yield Case([x, y], "aten.maximum {0}, {1}", torch.maximum)
        yield Case([x], "aten.to_copy {0} to f32", lambda a: a.to(F32))
    yield Case([values([70, 64], BOOL), values([70, 64], F32), values([64], F32)], "aten.where {0}, {1}, {2}", torch.where)


def broadcasts():
    for rows, columns in ((33, 64), (7, 1023), (130, 6), (64, 1), (1, 65), (257, 8)):
        for t in (F32, F16):
            x = values([rows, columns], t)
            yield Case([x, values([columns], t)], "aten.mul {0}, {1}", torch.mul)
            yield Case([x, values([rows, 1], t)], "aten.sub {0}, {1}", torch.sub)
    yield Case([values([5, 1, 32, 1], F32), values([7, 1, 64], F32)], "aten.add {0}, {1}", torch.add)
    yield Case([values([1, 40], F32), values([40, 1], F32)], "aten.mul {0}, {1}", torch.mul)


def orders():
    """Copies and maps of memory in other orders: transposes, slices, repeated rows."""
    for shape in ([65, 33], [32, 32], [100, 70], [8, 200], [3, 200], [2, 40, 50], [2, 3, 40, 36], [4, 64, 2, 32]):
        for t in (F32, BF16, I8) if len(shape) < 4 else (F32,):
            x = values(shape, t)
            for how in ("permuted", "sliced"):
                yield Case([x, x.flip(0)], "aten.add {0}, {1}", torch.add, strided=how)
                yield Case([x], "aten.clone {0}", torch.clone, strided=how)
    x = values([2, 40, 3, 64], F32)
    for order in ([0, 2, 1, 3], [3, 2, 1, 0], [0, 3, 1, 2], [2, 0, 3, 1], [1, 3, 0, 2]):
        yield Case([x], f"aten.permute {{0}} {order}", lambda a, o=order: a.permute(o))


def parts():
    """Concatenations, stacks, pads and slices."""
    for t in (F32, BF16, BOOL, I64):
        x, y, z = values([5, 33], t), values([5, 8], t), values([5, 1], t)
        yield Case([x, y, z], "aten.cat {0}, {1}, {2} dim 1", lambda *a: torch.cat(a, 1))
        yield Case([x, x.flip(1)], "aten.cat {0}, {1} dim 0", lambda *a: torch.cat(a, 0))
        yield Case([x, x.flip(1)], "aten.stack {0}, {1} dim 2", lambda *a: torch.stack(a, 2))
    for t in (F32, F16):
        x = values([6, 30, 64], t)
        for pad in ([1, 3], [0, 64], [4, 4, 2, 0], [0, 0, 1, 1, 0, 5], [-2, -2, 3, -1]):
            yield Case([x], f"aten.constant_pad_nd {{0}} {pad} {{{{value = 1.5}}}}", lambda a, p=pad: A.constant_pad_nd(a, p, 1.5))
        yield Case([x], "aten.flip {0} [0, 2]", lambda a: a.flip(0, 2))
        yield Case([x], "aten.tril {0} {{diagonal = 2 : i64}}", lambda a: a.tril(2))


def lookups():
    """Tables with rows of whole vectors and others, and more rows than a block has threads."""
    for t in (F32, BF16, F64, I8):
        for columns in (64, 8, 12, 7, 1):
            table, at = values([50, columns], t), torch.randint(0, 50, (40, 9))
            yield Case([table, at], "aten.embedding {0} at {1}", lambda a, i: a[i])
            yield Case([table, at.flatten()], "aten.index_select {0} dim 0 at {1}", lambda a, i: a.index_select(0, i))
            yield Case([table, at - 25], "aten.index {0}[{1}]", lambda a, i: a[i])
    x = values([40, 70], F32)
    yield Case([x, torch.randint(0, 70, (40, 300))], "aten.gather {0} dim 1 at {1}", lambda a, i: a.gather(1, i))
    yield Case([x, torch.randint(0, 40, (90, 64))], "aten.gather {0} dim 0 at {1}", lambda a, i: a.gather(0, i))
    yield Case([x, torch.randint(0, 70, (33,))], "aten.index_select {0} dim 1 at {1}", lambda a, i: a.index_select(1, i))
