# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sorts, and scatter-adds whose sums depend on their order: many values at one place, several index tensors, broadcast positions, all
element types, and tables of more rows than a digit of a sort has."""
import torch

from kernels import SUMS, Case

F32, F64, BF16, F16, I64 = torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int64
TYPES = (F32, F64, BF16, F16, I64, torch.int32, torch.int8, torch.uint8)


def values(shape, dtype):
    if not dtype.is_floating_point:
        return torch.randint(0 if dtype == torch.uint8 else -99, 100, shape).to(dtype)
    # Of very different sizes, so that sums in another order have other bits.
    return (torch.randn(shape, dtype=F64) * 10.0 ** torch.randint(-3, 3, shape)).to(dtype)


def ids(end, *shape):
    return torch.randint(0, end, shape)


def put(x, indices, v):
    return torch.ops.aten.index_put(x, indices, v, True)


def cases():
    for t in TYPES:
        loose = SUMS * 16 if t.is_floating_point else 1
        yield Case([values((7, 37), t), ids(7, 50), values((50, 37), t)], "aten.index_put {0}[{1}] of {2} accumulate",
                   lambda x, i, v: put(x, [i], v), loose=loose)
        yield Case([values((5, 9), t), ids(9, 5, 31), values((5, 31), t)], "aten.scatter_add {0} dim 1 at {1} of {2}",
                   lambda x, i, v: x.scatter_add(1, i, v), loose=loose)
    f32 = [
        # Every value at one place, and more of them than a tile of the sort has.
        ([values((3,), F32), torch.full((5000,), 1), values((5000,), F32)], "{0}[{1}]", lambda x, i, v: put(x, [i], v)),
        # Rows with numbers of two and of three digits.
        ([values((300, 4), F32), ids(300, 700), values((700, 4), F32)], "{0}[{1}]", lambda x, i, v: put(x, [i], v)),
        ([values((70000,), F32), ids(70000, 4500), values((4500,), F32)], "{0}[{1}]", lambda x, i, v: put(x, [i], v)),
        # Several index tensors that broadcast, beside each other and apart, negative ones too.
        ([values((4, 5, 6), F32), ids(5, 7, 1), -1 - ids(6, 3), values((4, 7, 3), F32)], "{0}[:, {1}, {2}]",
         lambda x, i, j, v: put(x, [None, i, j], v)),
        ([values((4, 5, 6), F32), ids(4, 7, 1), ids(6, 3), values((7, 3, 5), F32)], "{0}[{1}, :, {2}]",
         lambda x, i, j, v: put(x, [i, None, j], v)),
        # Values that are one for many positions, and positions of the last dim.
        ([values((4, 5, 6), F32), ids(5, 9), values((4, 9, 1), F32)], "{0}[:, {1}]", lambda x, i, v: put(x, [None, i], v)),
        ([values((40, 11), F32), ids(11, 90), values((40, 90), F32)], "{0}[:, {1}]", lambda x, i, v: put(x, [None, i], v)),
        ([values((2, 500), F32), ids(2, 3), values((3, 500), F32)], "{0}[{1}]", lambda x, i, v: put(x, [i], v)),
        # Positions in 32 bits.
        ([values((6, 8), F32), ids(6, 20).int(), values((20, 8), F32)], "{0}[{1}]",
         lambda x, i, v: put(x, [i.long()], v)),
    ]
    for operands, at, call in f32:
        text = at.format("{0}", *("{%d}" % i for i in range(1, len(operands) - 1)))
        yield Case(operands, f"aten.index_put {text} of {{{len(operands) - 1}}} accumulate", call, loose=SUMS * 64)
    # Fewer positions than values, and than the table has columns.
    yield Case([values((6, 8), F32), ids(6, 9, 5), values((11, 7), F32)], "aten.scatter_add {0} dim 0 at {1} of {2}",
               lambda x, i, v: x.scatter_add(0, i, v), loose=SUMS * 16)
    # Nothing to add, and nothing to add to.
    yield Case([values((6, 8), F32), ids(6, 0), values((0, 8), F32)], "aten.index_put {0}[{1}] of {2} accumulate",
               lambda x, i, v: put(x, [i], v))
    yield Case([values((6, 0), F32), ids(6, 4), values((4, 0), F32)], "aten.index_put {0}[{1}] of {2} accumulate",
               lambda x, i, v: put(x, [i], v))


def sorts():
    """Of all kinds of element types, along the first and the last dim, whole rows and the first elements of them, with elements
    that are equal; longer rows than a tile of the sort has; and rows whose numbers have two digits. A kernel of each is compiled."""
    nan = float("nan")
    odd = torch.tensor([[0.0, -0.0, nan, 3.0, float("inf"), -1.5, nan, -float("inf")], [1.0, 0.0, -0.0, 1.0, nan, -1.0, -1.0, 5.0]])
    for x, dim, descending, count in (
            (odd, 1, False, 8), (odd.to(F16), 1, True, 3), (odd.to(BF16).t().contiguous(), 0, False, 8), (odd.to(F64), 1, True, 8),
            (torch.randint(-4, 5, (3, 4, 17)), 1, False, 2), (torch.randint(0, 2, (3, 4, 11)).bool(), 2, True, 11),
            (torch.randint(0, 200, (5, 9)).to(torch.uint8), 0, True, 5), (values((2, 2500), F32), 1, True, 2500),
            (values((300, 3), I64), 1, False, 2), (values((7,), F32), 0, False, 7), (values((0, 3), F32), 1, False, 3)):
        text = f"aten.sort {{0}} dim {dim}" + " descending" * descending + f" count {count}" * (count != x.shape[dim])
        yield Case([x], text, lambda a, d=dim, down=descending, k=count: [
            r.narrow(d, 0, k).contiguous() for r in torch.sort(a, dim=d, descending=down, stable=True)])


def views():
    """Of operands that are views, so that strides are not those of dense memory."""
    for how in ("permuted", "sliced"):
        yield Case([values((6, 8), F32), ids(6, 30), values((30, 8), F32)], "aten.index_put {0}[{1}] of {2} accumulate",
                   lambda x, i, v: put(x, [i], v), strided=how, loose=SUMS * 16)
