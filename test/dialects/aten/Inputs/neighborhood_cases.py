# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random calls of the products of neighborhood attention, as in pytorch_cases.py. PyTorch has no such ops: here they are lookups at
positions that follow from which keys a query sees."""
import functools
import itertools
import random

import torch

SIZES = [1, 2, 3, 5, 8]


@functools.cache
def sees(size, kernel, stride, dilation, causal, cut=-1):
    """[size, size]: whether a query sees a key along one dim. Hassani et al., Generalized Neighborhood Attention, 2025. `cut`: of a window that is cut
    off at the border, how many of its keys are behind the query."""
    mask = torch.zeros(size, size, dtype=torch.bool)
    for i, j in itertools.product(range(size), repeat=2):
        if i % dilation != j % dilation:
            continue
        length = len(range(i % dilation, size, dilation))
        query, key = i // dilation, j // dilation
        if cut >= 0:
            mask[i, j] = cut - kernel < key - query <= cut
            continue
        group = range(query // stride * stride, query // stride * stride + stride)
        if causal:
            leader = min(group[-1], length - 1)
            mask[i, j] = key <= query and leader - key < kernel
        else:
            # An even kernel has one more key on the left.
            left = kernel // 2
            right = kernel - 1 - left
            leader = min(group[0] + stride // 2, length - 1)
            centre = min(max(leader, left), length - 1 - right)
            mask[i, j] = centre - left <= key <= centre + right
    return mask


@functools.cache
def neighbors(size, window, place):
    """[queries, kernel]: the keys that each query sees, ascending; -1 where there are fewer. `place`: first query, first key, and how many
    queries are here."""
    kernel = window[0]
    seen = sees(size, *window)
    first_query, first_key, count = place
    rows = []
    for query in range(first_query, first_query + count):
        keys = [key - first_key for key in seen[query].nonzero().flatten().tolist()]
        rows.append(keys + [-1] * (kernel - len(keys)))
    return torch.tensor(rows, dtype=torch.int64).reshape(count, kernel)


class Products:
    """The three products of one neighborhood. `windows`: kernel, stride, dilation, causal and, where it is cut off, cut for each spatial dim; `places`: size, first
    query, first key and number of keys for each, or nothing."""

    def __init__(self, windows, places=()):
        self.windows, self.places = [tuple(w) for w in windows], places

    def tables(self, sizes):
        places = self.places or [(size, 0, 0, size) for size in sizes]
        tables = [neighbors(size, window, (query, key, count))
                  for (size, query, key, _), window, count in zip(places, self.windows, sizes, strict=True)]
        return tables, [count for *_, count in places]

    def check(self, queries, keys):
        """Batch and heads of both, and, for the whole, as many queries as keys."""
        n = len(self.windows)
        own, other = list(queries.shape[:n + 2]), list(keys.shape[:n + 2])
        if self.places:
            own, other = own[::n + 1], other[::n + 1]
        if own != other:
            raise ValueError(f"batch, heads or positions differ: {own} and {other}")

    def gathered(self, keys, sizes):
        """[batch, queries, heads, kernel, E], and which of them exist: [queries, 1, kernel]."""
        tables, _ = self.tables(sizes)
        n, exist = len(tables), None
        for i, table in enumerate(tables):
            # Here the dims are batch, i dims of queries, the keys' other dims, heads, E, and i kernels.
            table, at = table.to(keys.device), keys.movedim(1 + i, 0)
            at = at[table.clamp(min=0)] if len(at) else at.new_zeros(*table.shape, *at.shape[1:])
            keys = at.movedim(1, -1).movedim(0, 1 + i)
            shape = [1] * (2 * n + 1)
            shape[i], shape[n + 1 + i] = table.shape
            own = (table >= 0).reshape(shape)
            exist = own if exist is None else exist & own
        return keys.movedim(2 + n, -1), exist

    def qk(self, query, key):
        self.check(query, key)
        if query.shape[-1] != key.shape[-1] or query.dtype != key.dtype:
            raise ValueError("queries and keys are not of one type and length")
        keys, exist = self.gathered(key, query.shape[1:-2])
        wide = torch.float64 if query.dtype == torch.float64 else torch.float32
        n = len(self.windows)
        query = query.to(wide).reshape(*query.shape[:-1], *[1] * n, query.shape[-1])
        return (query * keys.to(wide)).sum(-1) * exist

    def av(self, weights, value):
        self.check(weights, value)
        n = len(self.windows)
        values, exist = self.gathered(value, weights.shape[1:1 + n])
        product = (weights * exist).unsqueeze(-1) * values.to(weights.dtype)
        return product.sum([-2 - i for i in range(n)]).to(value.dtype)

    def adjoint(self, weights, rows):
        n = len(self.windows)
        counts = self.tables(rows.shape[1:1 + n])[1]
        if 0 in counts:  # a rank without keys
            return rows.new_zeros(rows.shape[0], *counts, *rows.shape[-2:])
        with torch.enable_grad():
            value = rows.new_zeros(rows.shape[0], *counts, *rows.shape[-2:], requires_grad=True)
            made = self.av(weights, value)
            return torch.autograd.grad(made, value, rows, create_graph=weights.requires_grad or rows.requires_grad)[0]

    def text(self, name):
        kernel, stride, dilation, causal = ([w[i] for w in self.windows] for i in range(4))
        causal = [str(bool(c)).lower() for c in causal]
        cuts = [w[4] if len(w) > 4 else -1 for w in self.windows]
        cut = f"cut {cuts} " if max(cuts) >= 0 else ""
        return f"aten.neighborhood_{name} {{0}}, {{1}} kernel {kernel} stride {stride} dilation {dilation} causal [{', '.join(causal)}] {cut}place []"


def windows_of(sizes):
    windows = []
    for size in sizes:
        if random.random() < 0.3:
            kernel = random.randint(1, 5)
            windows.append((kernel, 1, random.randint(1, 3), False, random.randrange(kernel)))
            continue
        kernel = random.randint(1, min(max(size, 1), 4))
        windows.append((kernel, random.randint(1, kernel), random.randint(1, max(size // kernel, 1)), random.random() < 0.3))
    return windows


def product():
    sizes = [random.choice(SIZES) for _ in range(random.choice([1, 1, 2, 3]))]
    products = Products(windows_of(sizes))
    t = random.choice([torch.float32, torch.float64, torch.bfloat16])
    wide = torch.float64 if t == torch.float64 else torch.float32
    batch, heads, width = random.choice([0, 1, 2]), random.choice([1, 2, 3]), random.choice([1, 2, 5])
    outer = [batch, *sizes, heads]
    rows, scores = [*outer, width], [*outer, *(w[0] for w in products.windows)]
    name = random.choice(["qk", "av", "adjoint"])
    first = (rows, t) if name == "qk" else (scores, wide)
    wrong = random.random() < 0.05
    second = [*outer, width + wrong] if name == "qk" else [*outer[:-1], heads + wrong, width]
    return [first, (second, t)], products.text(name), getattr(products, name)


def differentiated():
    """Products with the shapes of rows and of scores, for comparisons of derivatives."""
    for sizes, windows in (((7,), [(3, 1, 2, False)]), ((8,), [(4, 2, 1, False)]), ((6,), [(3, 2, 1, True)]),
                           ((7,), [(4, 1, 2, False, 1)]), ((4, 3), [(3, 1, 1, False, 1), (5, 1, 1, False, 4)]), ((4, 5), [(2, 1, 2, True), (3, 3, 1, False)]), ((3, 2, 3), [(3, 1, 1, False), (1, 1, 1, False), (2, 1, 1, False)])):
        yield Products(windows), (2, *sizes, 2, 3), (2, *sizes, 2, *(w[0] for w in windows))


FAMILIES = [product]
