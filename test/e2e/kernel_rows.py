# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Cases of the kernel tests: ops along dims (reductions, softmax, norms, scans), lookups and products."""
import torch

from kernel_cases import A, BF16, F16, F32, F64, I64, values
from kernels import SUMS, Case
from grouped_cases import indexed_mm, indexed_outer
from pytorch_cases import NAMES

INF, NAN = float("inf"), float("nan")
SHAPES = [([37], 0), ([3, 1000], 1), ([129, 5], 0), ([2, 33, 65], 1), ([2, 3, 4, 17], 3), ([4, 0], 1), ([0, 4], 1), ([], 0)]


def rows(shape, t):
    """Values with a row of -inf, one with an inf, one with a NaN."""
    x = values(shape, t)
    if t.is_floating_point and x.dim() == 2 and x.shape[0] >= 3 and x.shape[1]:
        x[0], x[1, 0], x[2, -1] = -INF, INF, NAN
    return x


def reductions():
    for shape, dim in SHAPES:
        for t in (F32, F64, BF16, F16, I64, torch.int32, torch.int8, torch.uint8, torch.bool):
            x, d = rows(shape, t), f"dim [{dim}]"
            for name in ("sum", "amax", "amin", "any", "all") + (("mean",) if t.is_floating_point else ()):
                fn = getattr(A, name).dims if name in ("any", "all") else getattr(A, name)
                yield Case([x], f"aten.{name} {{0}} {d}", lambda a, f=fn, k=dim: f(a, [k], False), loose=SUMS)
            yield Case([x.clamp(-1, 1) if t.is_floating_point else x], f"aten.prod {{0}} {d} keepdim",
                       lambda a, k=dim: torch.prod(a, k, True), loose=SUMS)
            for name in ("argmax", "argmin"):
                yield Case([x], f"aten.{name} {{0}} dim {dim}", lambda a, n=name, k=dim: getattr(A, n)(a, k))
            yield Case([x], f"aten.cumsum {{0}} dim {dim}", lambda a, k=dim: torch.cumsum(a, k), loose=SUMS)
            for name in ("cummax", "cummin"):
                yield Case([x], f"aten.{name} {{0}} dim {dim}", lambda a, n=name, k=dim: getattr(torch, n)(a, k)[0])
            yield Case([x.clamp(-1, 1) if t.is_floating_point else x], f"aten.cumprod {{0}} dim {dim}",
                       lambda a, k=dim: torch.cumprod(a, k), loose=SUMS)
            if t.is_floating_point:
                yield Case([x], f"aten.logcumsumexp {{0}} dim {dim}", lambda a, k=dim: torch.logcumsumexp(a, k), loose=SUMS)
                yield Case([x], f"aten.logsumexp {{0}} {d}", lambda a, k=dim: A.logsumexp(a, [k]), loose=SUMS)
                yield Case([x], f"aten.var {{0}} {d} {{{{correction = 0.0}}}}",
                           lambda a, k=dim: A.var.correction(a, [k], correction=0.0), loose=SUMS)
    x = torch.tensor([[1.0, NAN, 3.0, NAN], [2.0, 5.0, 5.0, 1.0], [-INF, -INF, -INF, -INF], [INF, 0.0, INF, -INF]])
    for t in (F32, F64, BF16, F16):
        for name in ("argmax", "argmin"):
            yield Case([x.to(t)], f"aten.{name} {{0}} dim 1 keepdim", lambda a, n=name: getattr(A, n)(a, 1, True))
            yield Case([x.to(t)[1:]], f"aten.{name} {{0}}", lambda a, n=name: getattr(A, n)(a))
    for order in (0.0, 1.0, 2.0, 3.0, INF, -INF):
        word = {INF: "0x7FF0000000000000", -INF: "0xFFF0000000000000"}.get(order, str(order))
        for t in (F32, F64, BF16):
            yield Case([values([5, 67], t)], f"aten.linalg_vector_norm {{0}} dim [1] {{{{ord = {word} : f64}}}}",
                       lambda a, o=order: A.linalg_vector_norm(a, o, [1]), loose=SUMS)


def normalizations():
    for shape, dim in SHAPES:
        for t in (F32, F64, BF16, F16):
            x = rows(shape, t)
            yield Case([x], f"aten.softmax {{0}} dim {dim}", lambda a, k=dim: torch.softmax(a, k), loose=8)
            yield Case([x], f"aten.log_softmax {{0}} dim {dim}", lambda a, k=dim: torch.log_softmax(a, k), loose=8)
    yield Case([values([3, 17], BF16)], "aten.softmax {0} dim 1 to f32", lambda a: torch.softmax(a, 1, dtype=F32), loose=8)
    for t in (F32, F64, BF16, F16):
        for shape, n in [([3, 7, 384], 1), ([5, 33], 1), ([2, 3, 5, 7], 2), ([4, 1], 1), ([0, 9], 1)]:
            tail = shape[-n:]
            x, w, b = values(shape, t), values(tail, t), values(tail, t)
            big = x + 100 if t in (F32, F64) else x
            yield Case([x, w, b], f"aten.layer_norm {{0}} {tail} weight({{1}}) bias({{2}})",
                       lambda x, w, b, s=tail: A.layer_norm(x, s, w, b), loose=SUMS)
            yield Case([big], f"aten.layer_norm {{0}} {tail}", lambda x, s=tail: A.layer_norm(x, s), loose=SUMS * 8)
            yield Case([x, w], f"aten.rms_norm {{0}} {tail} weight({{1}}) {{{{eps = 1.0e-6}}}}",
                       lambda x, w, s=tail: A.rms_norm(x, s, w, 1e-6), loose=SUMS)
            yield Case([x], f"aten.rms_norm {{0}} {tail}", lambda x, s=tail: A.rms_norm(x, s), loose=SUMS)
        x, w = values([2, 6, 3, 5], t), values([6], t)
        yield Case([x, w, w], "aten.group_norm {0} groups 3 weight({1}) bias({2})",
                   lambda x, w, b: A.group_norm(x, 3, w, b), loose=SUMS)


def lookups():
    i = torch.tensor([[2, 0, 6], [6, 6, 1]])
    back = torch.tensor([[-1, 3, -7], [0, -2, 6]])
    for t in (F32, F64, BF16, F16, I64, torch.int32, torch.int8, torch.uint8, torch.bool):
        x = values([7, 7, 5], t)
        for k in (I64, torch.int32):
            yield Case([x[:, :, 0].contiguous(), i.to(k)], "aten.embedding {0} at {1}", lambda w, j: A.embedding(w, j))
            yield Case([x, i[0].to(k)], "aten.index_select {0} dim 1 at {1}", lambda x, j: torch.index_select(x, 1, j))
        yield Case([x, i.unsqueeze(-1).expand(2, 3, 5)], "aten.gather {0} dim 0 at {1}", lambda x, j: torch.gather(x, 0, j))
        yield Case([x, back], "aten.index {0}[{1}]", lambda x, j: x[j])
        yield Case([x, back], "aten.index {0}[:, {1}]", lambda x, j: x[:, j])
        yield Case([x, back, back[:, :1] + 3 - 3], "aten.index {0}[{1}, {2}]", lambda x, j, k: x[j, k])
        yield Case([x, back, torch.tensor([-5, 4, 0])], "aten.index {0}[{1}, :, {2}]", lambda x, j, k: x[j, :, k])
        for d in (-2, 0, 1):
            yield Case([x], f"aten.tril {{0}} {{{{diagonal = {d}}}}}", lambda x, d=d: torch.tril(x, d))
            yield Case([x], f"aten.triu {{0}} {{{{diagonal = {d}}}}}", lambda x, d=d: torch.triu(x, d))
        yield Case([x], "aten.flip {0} [0, 2]", lambda x: x.flip([0, 2]))
        if t != torch.bool:
            yield Case([x], "aten.constant_pad_nd {0} [1, -2, 0, 3] {{value = 1.5}}",
                       lambda x: A.constant_pad_nd(x, [1, -2, 0, 3], 1.5))
        yield Case([x, x[:, :2].contiguous()], "aten.cat {0}, {1} dim 1", lambda x, y: torch.cat([x, y], 1))
        yield Case([x[:0, 0].contiguous(), x, x], "aten.cat {0}, {1}, {2} dim 1", lambda *x: torch.cat(x, 1))
    yield Case([], "aten.arange [7 : -4 : -3] f32", lambda: torch.arange(7, -4, -3, dtype=F32))


def products():
    for t in (F32, F64, BF16, F16):
        for m, n, k in [(1, 1, 1), (3, 5, 7), (33, 47, 65), (4, 3, 0), (0, 3, 4), (1, 129, 31)]:
            x, y, b = values([m, k], t), values([k, n], t), values([n], t)
            for how in ("", "permuted", "sliced"):
                yield Case([x, y], "aten.mm {0}, {1}", torch.mm, loose=SUMS, strided=how)
            yield Case([x, y.t().contiguous(), b], "aten.linear {0}, {1}, {2}", A.linear, loose=SUMS)
            yield Case([b, x, y], "aten.addmm {0}, {1}, {2} {{alpha = 0.5, beta = 2.0}}",
                       lambda c, x, y: torch.addmm(c, x, y, beta=2, alpha=0.5), loose=SUMS * 2)
        for left, right in [([5], [5]), ([3, 5], [5]), ([5], [5, 3]), ([2, 1, 3, 5], [4, 5, 7]), ([3, 2, 5], [5, 4])]:
            yield Case([values(left, t), values(right, t)], "aten.matmul {0}, {1}", torch.matmul, loose=SUMS)
        yield Case([values([3, 4, 5], t), values([3, 5, 6], t)], "aten.bmm {0}, {1}", torch.bmm, loose=SUMS, strided="permuted")
        yield Case([values([3, 1, 6], t), values([3, 4, 5], t), values([3, 5, 6], t)],
                   "aten.baddbmm {0}, {1}, {2} {{beta = 0.5}}", lambda c, x, y: torch.baddbmm(c, x, y, beta=0.5), loose=SUMS)
        yield from named_matrices(t)


def named_matrices(t, every=False):
    """Fewer rows than matrices, more, none; some that name none; in any order, and in that of the matrices. `every` order of each size,
    or one."""
    sizes = [(2, 5, 3, 4), (19, 3, 7, 5), (33, 4, 17, 9), (5, 1, 1, 1), (6, 3, 0, 2), (0, 3, 4, 2), (4, 3, 2, 0)]
    for number, (s, g, k, n) in enumerate(sizes if every or t == F32 else sizes[1:2]):
        x, w, y = values([s, k], t), values([g, k, n], t), values([s, n], t)
        orders = ((torch.randint(-1, g + 1, (s,)), I64, "permuted"), (torch.full((s,), g), I64, "sliced"),
                  (torch.randint(-1, g + 1, (s,)).sort().values, torch.int32, ""))
        for i, kind, how in orders if every else [orders[number % 2 * 2]]:
            order = "" if how == "permuted" else " sorted"
            yield Case([x, w, i.to(kind)], "aten.indexed_mm {0}, {1} at {2}" + order,
                       lambda x, w, i: indexed_mm(x.double(), w.double(), i).to(x.dtype), loose=SUMS, strided=how)
            yield Case([x, y, i.to(kind)], f"aten.indexed_outer {{0}}, {{1}} at {{2}} groups [{g}]" + order,
                       lambda x, y, i, g=g: indexed_outer(x.double(), y.double(), i, g).to(x.dtype), loose=SUMS, strided=how)


def casting_reductions():
    for t in (I64, torch.int8, torch.bool, BF16, F32):
        for u in (F32, F64, BF16):
            yield Case([values([4, 9], t)], f"aten.sum {{0}} dim [1] to {NAMES[u]}",
                       lambda x, u=u: torch.sum(x, 1, dtype=u), loose=SUMS)
            yield Case([values([4, 9], t)], f"aten.cumsum {{0}} dim 1 to {NAMES[u]}",
                       lambda x, u=u: torch.cumsum(x, 1, dtype=u), loose=SUMS)

