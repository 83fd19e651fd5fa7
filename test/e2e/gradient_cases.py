# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""For each op of the aten dialect: calls whose gradients are checked, or why there is none."""
import torch
import torch.nn.functional as F

from gradients import F64, Case
from grouped_cases import collect_rows, dispatch_rows, indexed_mm, indexed_outer
from neighborhood_cases import differentiated

A = torch.ops.aten
I64 = torch.int64


def x(*shape, low=None, high=None):
    if low is None:
        return torch.randn(shape, dtype=F64)
    return torch.rand(shape, dtype=F64) * (high - low) + low


def away(*shape):
    """Away from 0, of both signs."""
    return x(*shape, low=0.3, high=2) * torch.where(torch.rand(shape) < 0.5, -1, 1)


def k(*numbers):
    return torch.tensor(numbers if len(numbers) != 1 else numbers[0], dtype=F64)


def ids(bound, *shape):
    return torch.randint(0, bound, shape)


DOMAINS = {name: lambda: x(5, 7, low=0.2, high=3) for name in "log log2 log10 log1p sqrt rsqrt".split()}
DOMAINS |= {name: lambda: x(5, 7, low=-0.9, high=0.9) for name in ("asin", "acos", "erfinv")}
DOMAINS |= {"reciprocal": lambda: away(5, 7), "abs": lambda: away(5, 7), "tan": lambda: x(5, 7, low=-1, high=1)}
UNARY = ("neg clone alias exp exp2 expm1 log log2 log10 log1p sqrt rsqrt reciprocal sin cos tan asin acos atan sinh cosh "
         "tanh erf erfinv sigmoid abs relu silu mish hardswish hardsigmoid leaky_relu elu hardtanh softplus gelu").split()
CONSTANT = "sign floor ceil trunc round".split()


# PyTorch's hardsigmoid multiplies by a sixth that is rounded to f32.
TOLERANCES = {"hardsigmoid": 1e-7}


def unary(name):
    yield Case([DOMAINS.get(name, lambda: x(5, 7))()], f"aten.{name} {{0}}", getattr(A, name),
               tolerance=TOLERANCES.get(name, 1e-11))


def activations():
    yield Case([x(40) * 3], 'aten.gelu {0} {{approximate = "tanh"}}', lambda a: F.gelu(a, approximate="tanh"))
    yield Case([x(40) * 3], "aten.leaky_relu {0} {{negative_slope = 0.3}}", lambda a: A.leaky_relu(a, 0.3))
    yield Case([x(40)], "aten.elu {0} {{alpha = 0.7, input_scale = 1.3, scale = 1.1}}", lambda a: A.elu(a, 0.7, 1.1, 1.3))
    yield Case([x(40)], "aten.hardtanh {0} {{max_val = 2.0, min_val = -0.5}}", lambda a: A.hardtanh(a, -0.5, 2.0))
    yield Case([x(40) * 3], "aten.softplus {0} {{beta = 2.0, threshold = 5.0}}", lambda a: A.softplus(a, 2, 5), smooth=False)
    # At the kinks themselves.
    kinks = k(-3.0, -1.0, 0.0, 1.0, 3.0)
    for name in ("relu", "hardswish", "hardsigmoid", "leaky_relu", "elu", "hardtanh", "abs"):
        yield Case([kinks], f"aten.{name} {{0}}", getattr(A, name), smooth=False, tolerance=TOLERANCES.get(name, 1e-11))


def binary():
    for name in ("add", "sub", "mul", "maximum", "minimum"):
        yield Case([x(4, 1, 5), x(3, 1)], f"aten.{name} {{0}}, {{1}}", getattr(A, name))
        yield Case([x(4, 5), x()], f"aten.{name} {{0}}, {{1}}", getattr(A, name))
    for name in ("add", "sub"):
        yield Case([x(3), x(2, 3)], f"aten.{name} {{0}}, {{1}} {{{{alpha = -2.5}}}}",
                   lambda a, b, name=name: getattr(A, name)(a, b, alpha=-2.5))
    for name in ("div", "atan2", "fmod", "remainder"):
        yield Case([x(4, 1, 5) + 0.05, away(3, 1)], f"aten.{name} {{0}}, {{1}}", getattr(A, name))
    for mode in ("floor", "trunc"):
        yield Case([x(9) * 3, away(9)], f'aten.div {{0}}, {{1}} {{{{rounding_mode = "{mode}"}}}}',
                   lambda a, b, mode=mode: A.div(a, b, rounding_mode=mode))
    yield Case([x(4, 5, low=0.2, high=3), x(5)], "aten.pow {0}, {1}", torch.pow)
    yield Case([k(0.0, 0.0, 0.0, 2.0), k(0.0, 2.0, 1.0, 0.0)], "aten.pow {0}, {1}", torch.pow, smooth=False)
    for e in (0.0, 1.0, 2.0, 3.0, -2.0, 0.5, 1.7):
        yield Case([x(9, low=0.2, high=3), k(e)], "aten.pow {0}, {1}", lambda a, b: torch.pow(a, b.item()), constant=(1,))
    yield Case([1 + ids(9, 7), x(7)], "aten.pow {0}, {1}", torch.pow)
    same = k(1.0, 2.0, 3.0)
    yield Case([same, k(1.0, 3.0, 2.0)], "aten.maximum {0}, {1}", torch.maximum, smooth=False)
    yield Case([same, k(1.0, 3.0, 2.0)], "aten.minimum {0}, {1}", torch.minimum, smooth=False)


def more_operands():
    mask = torch.rand(4, 1, 5) < 0.5
    yield Case([mask, x(4, 3, 5), x(3, 1)], "aten.where {0}, {1}, {2}", torch.where)
    yield Case([x(3, 5), mask, x()], "aten.masked_fill {0}, {1}, {2}",
               lambda a, m, v: torch.where(m, v, a))
    yield Case([x(3, 5), x(5), x(3, 1)], "aten.clamp {0} min({1}) max({2})", torch.clamp)
    yield Case([x(3, 5), x(5)], "aten.clamp {0} min({1})", torch.clamp)
    yield Case([x(3, 5), x()], "aten.clamp {0} max({1})", lambda a, b: torch.clamp(a, max=b))
    yield Case([x(4, 3, 5), mask], "aten.dropout {0}, {1} {{p = 0.25 : f64}}", lambda a, m: a * m / 0.75)
    yield Case([x(4, 3, 5), mask], "aten.dropout {0}, {1} {{p = 1.0 : f64}}", lambda a, m: a * m * 0)
    yield Case([x(3, 1, 5), x(4, 1), x(5)], "aten.addcmul {0}, {1}, {2} {{value = 2.0}}",
               lambda a, b, c: A.addcmul(a, b, c, value=2))
    yield Case([x(3, 1, 5), x(4, 1), away(5)], "aten.addcdiv {0}, {1}, {2} {{value = -0.5}}",
               lambda a, b, c: A.addcdiv(a, b, c, value=-0.5))
    yield Case([x(3, 1, 5), x(4, 1), x(5)], "aten.lerp {0}, {1}, {2}", A.lerp)
    yield Case([x(3, 5, 4)], "aten.tril {0} {{diagonal = 1}}", lambda a: a.tril(1))
    yield Case([x(3, 5, 4)], "aten.triu {0} {{diagonal = -1}}", lambda a: a.triu(-1))


def casts():
    yield Case([x(4, 5)], "aten.alias {0} {{detached}}", lambda a: a.detach(), smooth=False)
    yield Case([x(4, 5), x(4, 5)], "aten.copy {0}, {1}", lambda a, b: a.clone().copy_(b))
    # The gradient comes back in the type of the operand.
    yield Case([x(4, 5).float()], "aten.to_copy {0} to f64", lambda a: a.double(), smooth=False, tolerance=1e-6)
    yield Case([x(4, 5)], "aten.to_copy {0} to f32", lambda a: a.float(), smooth=False, tolerance=1e-6)
    yield Case([x(4, 5).float(), x(5)], "aten.mul {0}, {1}", torch.mul, smooth=False, tolerance=1e-6)
    yield Case([x(4, 5).bfloat16()], "aten.sum {0} dim [1] to f64", lambda a: a.sum(1, dtype=F64), smooth=False,
               tolerance=4e-3)
    yield Case([x(4, 5), ids(9, 5)], "aten.mul {0}, {1}", torch.mul)


def views():
    t = x(2, 3, 4)
    yield Case([t], "aten.view {0} [6, 4]", lambda a: a.reshape(6, 4))
    yield Case([x(3, 1)], "aten.expand {0} [2, 3, 4]", lambda a: a.expand(2, 3, 4))
    yield Case([t], "aten.permute {0} [2, 0, 1]", lambda a: a.permute(2, 0, 1))
    yield Case([t], "aten.transpose {0} [0, 2]", lambda a: a.transpose(0, 2))
    yield Case([t], "aten.unsqueeze {0} dim 1", lambda a: a.unsqueeze(1))
    yield Case([x(1, 3, 1)], "aten.squeeze {0} dim [2, 0]", lambda a: a.squeeze((0, 2)))
    yield Case([t], "aten.flip {0} [0, 2]", lambda a: a.flip([0, 2]))


def parts():
    t = x(5, 7)
    for start, end, step in ((1, 4, 1), (-3, 7, 1), (0, 7, 3), (2, 6, 2), (1, 7, 4), (5, 2, 1)):
        yield Case([t], f"aten.slice {{0}} dim 1 [{start} : {end} : {step}]",
                   lambda a, s=(1, start, end, step): A.slice(a, *s))
    yield Case([t], "aten.select {0} dim 0 at 3", lambda a: a.select(0, 3))
    yield Case([t], "aten.select {0} dim 1 at -2", lambda a: a.select(1, -2))
    yield Case([t], "aten.split_with_sizes {0} [2, 0, 5] dim 1", lambda a: A.split_with_sizes(a, [2, 0, 5], 1))
    yield Case([t, x(5, 2), x(0)], "aten.cat {0}, {1}, {2} dim 1", lambda a, b, c: torch.cat([a, b, c], 1))
    yield Case([t, x(5, 7)], "aten.stack {0}, {1} dim 1", lambda a, b: torch.stack([a, b], 1))
    yield Case([t], "aten.constant_pad_nd {0} [1, -2, 0, 3]", lambda a: F.pad(a, [1, -2, 0, 3]))


def contractions():
    yield Case([x(2, 3, 4), x(5, 4), x(5)], "aten.linear {0}, {1}, {2}", F.linear)
    yield Case([x(4), x(5, 4)], "aten.linear {0}, {1}", F.linear)
    yield Case([x(2, 3, 4), x(4)], "aten.linear {0}, {1}", A.linear)
    for left, right in (((3, 4), (4, 5)), ((2, 3, 4), (4, 5)), ((3, 4), (2, 4, 5)), ((6, 1, 3, 4), (2, 4, 5)), ((4,), (4, 5)),
                        ((3, 4), (4,)), ((2, 3, 4), (4,)), ((4,), (2, 4, 5)), ((4,), (4,)), ((2, 1, 3, 4), (6, 4, 2))):
        yield Case([x(*left), x(*right)], "aten.matmul {0}, {1}", torch.matmul)
    yield Case([x(3, 4), x(4, 5)], "aten.mm {0}, {1}", torch.mm)
    yield Case([x(2, 3, 4), x(2, 4, 5)], "aten.bmm {0}, {1}", torch.bmm)
    for bias in ((5,), (3, 5), (3, 1), ()):
        yield Case([x(*bias), x(3, 4), x(4, 5)], "aten.addmm {0}, {1}, {2} {{alpha = 0.5, beta = 2.0}}",
                   lambda c, a, b: torch.addmm(c, a, b, alpha=0.5, beta=2))
    yield Case([x(3, 5), x(2, 3, 4), x(2, 4, 5)], "aten.baddbmm {0}, {1}, {2} {{alpha = 0.5, beta = 2.0}}",
               lambda c, a, b: torch.baddbmm(c, a, b, alpha=0.5, beta=2))
    for dims in (([0, 1], [0, 1]), ([2, 0], [1, 0]), ([], []), ([1], [1])):
        shapes = {0: (2, 3, 4, 5), 1: (2, 3, 6)} if dims[0] != [2, 0] else {0: (2, 5, 3), 1: (2, 3, 4, 2)}
        yield Case([x(*shapes[0]), x(*shapes[1])], f"aten.tensordot {{0}}, {{1}} dims {dims[0]} {dims[1]}",
                   lambda a, b, dims=dims: torch.tensordot(a, b, dims))
    for names in ([2, 0, 3, -1, 2, 1, 0], [1, 1, 1, 1, 1, 1, 1]):  # 3 is none of them
        i = torch.tensor(names)
        yield Case([x(7, 4), x(3, 4, 5), i], "aten.indexed_mm {0}, {1} at {2}", indexed_mm)
        yield Case([x(7, 4), x(7, 5), i], "aten.indexed_outer {0}, {1} at {2} groups [3]", lambda a, b, i: indexed_outer(a, b, i, 3))
        i = i.sort().values
        yield Case([x(7, 4), x(3, 4, 5), i], "aten.indexed_mm {0}, {1} at {2} sorted", indexed_mm)
    for batches, owners in ((1, [2, 0, 3, -1, 2, 1, 0, 0]), (2, [1, 1, 1, 1, 0, 2, 0, 1])):
        i = torch.tensor(owners)
        yield Case([x(8, 4), i], f"aten.dispatch_rows {{0}} at {{1}} batches {batches} parts 3",
                   lambda a, i, b=batches: dispatch_rows(a, i, b, 3))
        yield Case([x(24, 4), i], f"aten.collect_rows {{0}} at {{1}} batches {batches} parts 3",
                   lambda a, i, b=batches: collect_rows(a, i, b, 3))


def neighborhoods():
    for products, rows, scores in differentiated():
        for name, left in (("qk", rows), ("av", scores), ("adjoint", scores)):
            yield Case([x(*left), x(*rows)], products.text(name), getattr(products, name))


def reductions():
    t = x(3, 4, 5)
    for name in ("sum", "mean", "prod", "amax", "amin", "logsumexp"):
        for dims, keep in (((1,), False), ((0, 2), True), ((2, 0), False), ((0, 1, 2), False)):
            if name == "prod":
                def call(a, dims=dims, keep=keep):
                    for d in sorted(dims, reverse=True):
                        a = a.prod(d, keep)
                    return a
            else:
                def call(a, f=getattr(torch, name), dims=dims, keep=keep):
                    return f(a, dims, keep)
            yield Case([t], f"aten.{name} {{0}} dim {list(dims)}" + " keepdim" * keep, call)
    tied = k(1.0, 3.0, 3.0, 2.0, 1.0, 3.0).reshape(2, 3)
    for name in ("amax", "amin"):
        yield Case([tied], f"aten.{name} {{0}} dim [1]", lambda a, n=name: getattr(torch, n)(a, 1), smooth=False)
        yield Case([tied], f"aten.{name} {{0}}", lambda a, n=name: getattr(torch, n)(a), smooth=False)
    zeros = k(0.0, 2.0, 3.0, 0.0, 0.0, 4.0, 5.0, 6.0, 7.0).reshape(3, 3)
    yield Case([zeros], "aten.prod {0} dim [1]", lambda a: a.prod(1))
    for c in (0.0, 1.0):
        yield Case([t], f"aten.var {{0}} dim [0, 2] {{{{correction = {c}}}}}", lambda a, c=c: a.var((0, 2), correction=c))
        yield Case([t], f"aten.var {{0}} keepdim {{{{correction = {c}}}}}",
                   lambda a, c=c: A.var.correction(a, None, correction=c, keepdim=True))
    for p in (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, float("inf"), -float("inf")):
        number = {float("inf"): "0x7FF0000000000000", -float("inf"): "0xFFF0000000000000"}.get(p, p)
        yield Case([away(3, 4)], f"aten.linalg_vector_norm {{0}} dim [1] {{{{ord = {number} : f64}}}}",
                   lambda a, p=p: torch.linalg.vector_norm(a, p, 1))
    yield Case([torch.zeros(2, 3, dtype=F64)], "aten.linalg_vector_norm {0} dim [1]",
               lambda a: torch.linalg.vector_norm(a, 2, 1), smooth=False)
    yield Case([t], "aten.cumsum {0} dim 1", lambda a: a.cumsum(1))
    yield Case([x()], "aten.sum {0}", lambda a: a.sum())
    yield Case([x()], "aten.cumsum {0} dim 0", lambda a: a.cumsum(0))


def scans():
    t = x(3, 4, 5)
    for name, call in (("cumprod", torch.cumprod), ("logcumsumexp", torch.logcumsumexp),
                       ("cummax", lambda a, d: a.cummax(d)[0]), ("cummin", lambda a, d: a.cummin(d)[0])):
        for value, dim in ((t, 1), (x(), 0)):
            yield Case([value], f"aten.{name} {{0}} dim {dim}", lambda a, c=call, d=dim: c(a, d))
    # One zero, several, and the first and last element.
    zeros = k([2.0, 0.0, 3.0, -1.5], [0.0, 2.0, 0.0, 1.0], [1.0, 2.0, 3.0, 0.0], [0.0, 0.0, 1.0, 2.0])
    yield Case([zeros], "aten.cumprod {0} dim 1", lambda a: a.cumprod(1))
    yield Case([k(3.0, 1.0, 3.0, 2.0, 3.0)], "aten.cummax {0} dim 0", lambda a: a.cummax(0)[0], smooth=False)
    yield Case([k(800.0, -800.0, 0.0, 805.0)], "aten.logcumsumexp {0} dim 0", lambda a: a.logcumsumexp(0), smooth=False)


def normalizations():
    t = x(3, 4, 5)
    yield Case([t, x(4, 5), x(4, 5)], "aten.layer_norm {0} [4, 5] weight({1}) bias({2})",
               lambda a, w, b: F.layer_norm(a, [4, 5], w, b))
    yield Case([t], "aten.layer_norm {0} [5]", lambda a: F.layer_norm(a, [5]))
    yield Case([t, x(5)], "aten.layer_norm {0} [5] bias({1})", lambda a, b: F.layer_norm(a, [5], None, b))
    yield Case([t, x(5)], "aten.rms_norm {0} [5] weight({1})", lambda a, w: F.rms_norm(a, [5], w))
    yield Case([t], "aten.rms_norm {0} [4, 5] {{eps = 0.1}}", lambda a: F.rms_norm(a, [4, 5], None, 0.1))
    yield Case([x(2, 6, 3, 4), x(6), x(6)], "aten.group_norm {0} groups 3 weight({1}) bias({2})",
               lambda a, w, b: F.group_norm(a, 3, w, b))
    yield Case([x(2, 6, 5)], "aten.group_norm {0} groups 2", lambda a: F.group_norm(a, 2))
    yield Case([x(2, 4, 3), x(4), x(4), x(4), x(4, low=0.5, high=2)],
               "aten.batch_norm {0} weight({1}) bias({2}) mean({3}) variance({4}) eps 1.0e-5",
               lambda a, w, b, m, v: (a - m[:, None]) * (v[:, None] + 1e-5).rsqrt() * w[:, None] + b[:, None])
    for name in ("softmax", "log_softmax"):
        for dim in (0, 2):
            yield Case([t], f"aten.{name} {{0}} dim {dim}", lambda a, n=name, d=dim: getattr(torch, n)(a, d))


def lookups():
    yield Case([x(7, 5), ids(7, 2, 6)], "aten.embedding {0} at {1}", lambda w, i: F.embedding(i, w))
    yield Case([x(3, 5), torch.tensor([0, 1, 1, 2])], "aten.embedding {0} at {1} {{padding_idx = 1 : i64}}",
               lambda w, i: F.embedding(i, w, padding_idx=1), smooth=False)
    yield Case([x(4, 5), torch.tensor([[0, 1, 1], [2, 1, 0]])], "aten.embedding {0} at {1} {{aten.scaled_by_frequency}}",
               lambda w, i: F.embedding(i, w, scale_grad_by_freq=True), smooth=False)
    for dim, shape in ((1, (4, 1)), (1, (4, 3)), (0, (2, 6)), (1, (3, 2))):
        yield Case([x(4, 6), ids(4 if dim == 0 else 6, *shape)], f"aten.gather {{0}} dim {dim} at {{1}}",
                   lambda a, i, d=dim: a.gather(d, i))
    yield Case([x(4, 6), ids(6, 9)], "aten.index_select {0} dim 1 at {1}", lambda a, i: a.index_select(1, i))
    yield Case([x(4, 5, 6), ids(4, 2, 1), ids(6, 3)], "aten.index {0}[{1}, :, {2}]", lambda a, i, j: A.index(a, [i, None, j]))
    yield Case([x(4, 5, 6), ids(5, 2, 1), -1 - ids(6, 3)], "aten.index {0}[:, {1}, {2}]",
               lambda a, i, j: A.index(a, [None, i, j]))
    yield Case([x(4, 6), ids(6, 4, 5), x(4, 5)], "aten.scatter_add {0} dim 1 at {1} of {2}",
               lambda a, i, s: a.scatter_add(1, i, s))
    yield Case([x(4, 5, 6), ids(5, 3), x(4, 3, 1)], "aten.index_put {0}[:, {1}] of {2} accumulate",
               lambda a, i, v: A.index_put(a, [None, i], v, True))


def writes():
    places = torch.stack([torch.randperm(6)[:5] for _ in range(4)])
    yield Case([x(4, 6), places, x(4, 5)], 'aten.scatter {0} dim 1 at {1} of {2} reduce "assign"',
               lambda a, i, s: a.scatter(1, i, s))
    for how in ("prod", "amax", "amin"):
        yield Case([x(4, 6), ids(6, 4, 5), x(4, 7)], f'aten.scatter {{0}} dim 1 at {{1}} of {{2}} reduce "{how}"',
                   lambda a, i, s, how=how: a.scatter_reduce(1, i, s[:, :5], how))
    # Equal elements share a cotangent; one zero, and a zero of the tensor itself.
    ties, zeros = k(1.0, 2.0, 2.0, 0.0), k(2.0, 2.0, 1.0, 0.0)
    at = torch.tensor([0, 1, 1, 3])
    yield Case([ties, at, zeros], 'aten.scatter {0} dim 0 at {1} of {2} reduce "amax"',
               lambda a, i, s: a.scatter_reduce(0, i, s, "amax"), smooth=False)
    yield Case([ties + 1, at, zeros], 'aten.scatter {0} dim 0 at {1} of {2} reduce "prod"',
               lambda a, i, s: a.scatter_reduce(0, i, s, "prod"))
    yield Case([x(4, 5, 6), torch.tensor([3, 0, -1]), x(3, 1)], "aten.index_write {0} dims [1] at {1} of {2}",
               lambda a, i, v: A.index_put(a, [None, i], v))


def sorts():
    yield Case([x(4, 9)], "aten.sort {0} dim 1", lambda a: a.sort(1))
    yield Case([x(9, 4)], "aten.sort {0} dim 0 descending count 2", lambda a: a.topk(2, 0))


def attention():
    name = "aten.scaled_dot_product_attention"
    sdpa = F.scaled_dot_product_attention
    q, kk, v = x(2, 3, 5, 4), x(2, 3, 6, 4), x(2, 3, 6, 2)
    yield Case([q, kk, v], f"{name} {{0}}, {{1}}, {{2}}", sdpa)
    yield Case([q, kk, v], f"{name} {{0}}, {{1}}, {{2}} causal", lambda a, b, c: sdpa(a, b, c, is_causal=True))
    yield Case([q, kk, v, x(5, 6)], f"{name} {{0}}, {{1}}, {{2}} mask({{3}}) causal first 2",
               lambda a, b, c, m: sdpa(a, b, c, m.masked_fill(torch.ones(5, 6).tril(2) == 0, -torch.inf)))
    yield Case([q, kk, v, x(3, 1, 6)], f"{name} {{0}}, {{1}}, {{2}} mask({{3}}) scale 0.3",
               lambda a, b, c, m: sdpa(a, b, c, m, scale=0.3))
    yield Case([q, kk, v, torch.rand(2, 1, 5, 6) < 0.7], f"{name} {{0}}, {{1}}, {{2}} mask({{3}})", sdpa)
    yield Case([x(2, 6, 5, 4), kk, v], f"{name} {{0}}, {{1}}, {{2}} causal gqa", lambda a, b, c: sdpa(a, b, c, is_causal=True, enable_gqa=True))
    yield Case([x(3, 5, 4), kk, v], f"{name} {{0}}, {{1}}, {{2}}", sdpa)
    yield Case([x(1, 3, 5, 4), kk, v], f"{name} {{0}}, {{1}}, {{2}}", sdpa)
    yield Case([x(5, 4), x(6, 4), x(6, 2)], f"{name} {{0}}, {{1}}, {{2}}", sdpa)
    # What is repeated, a mask that is not trained, tiles that are not full, and rows that see nothing.
    yield Case([x(3, 2, 5, 4), x(2, 6, 4), x(1, 2, 6, 2)], f"{name} {{0}}, {{1}}, {{2}} causal", lambda a, b, c: sdpa(a, b, c, is_causal=True))
    hidden = x(1, 1, 5, 6).masked_fill(torch.rand(1, 1, 5, 6) < 0.3, -torch.inf)
    hidden[0, 0, 2] = -torch.inf
    yield Case([x(2, 6, 5, 4), kk, v, hidden], f"{name} {{0}}, {{1}}, {{2}} mask({{3}}) gqa",
               lambda a, b, c, m: sdpa(a, b, c, m, enable_gqa=True), fixed=(3,))
    yield Case([x(1, 2, 103, 5), x(1, 1, 261, 5), x(1, 1, 261, 3)], f"{name} {{0}}, {{1}}, {{2}} causal gqa",
               lambda a, b, c: sdpa(a, b, c, is_causal=True, enable_gqa=True), smooth=False)
    yield Case([x(1, 1, 261, 5), x(1, 1, 103, 5), x(1, 1, 103, 3)], f"{name} {{0}}, {{1}}, {{2}}", sdpa, smooth=False)


def images():
    image = x(2, 4, 7, 6)
    for weight, stride, padding, dilation, groups in (
            ((3, 4, 3, 3), [1, 1], [1, 1], [1, 1], 1), ((3, 4, 2, 3), [2, 3], [0, 2], [2, 1], 1),
            ((6, 2, 3, 2), [2, 1], [1, 0], [1, 2], 2), ((4, 1, 3, 3), [1, 1], [1, 1], [1, 1], 4),
            ((3, 4, 1, 1), [1, 1], [0, 0], [1, 1], 1)):
        yield Case([image, x(*weight), x(weight[0])],
                   f"aten.convolution {{0}}, {{1}} bias({{2}}) stride {stride} padding {padding} dilation {dilation} groups {groups}",
                   lambda a, w, b, s=(stride, padding, dilation, groups): F.conv2d(a, w, b, *s))
    yield Case([image], "aten.windows {0} kernel [3, 2] stride [2, 1] padding [1, 0] dilation [1, 2]",
               lambda a: F.unfold(a, (3, 2), (1, 2), (1, 0), (2, 1)).reshape(2, 4, 3, 2, 4, 4))
    for kernel, stride, padding, ceil in (([2, 2], [2, 2], [0, 0], False), ([3, 2], [2, 1], [1, 0], False),
                                          ([3, 3], [2, 2], [1, 1], True), ([2, 3], [3, 2], [0, 1], True)):
        more = " ceil" * ceil
        yield Case([image], f"aten.max_pool {{0}} kernel {kernel} stride {stride} padding {padding} dilation [1, 1]{more}",
                   lambda a, s=(kernel, stride, padding, 1, ceil): F.max_pool2d(a, *s))
        for count in (False, True):
            yield Case([image], f"aten.avg_pool {{0}} kernel {kernel} stride {stride} padding {padding}{more}"
                       + " with_padding" * count,
                       lambda a, s=(kernel, stride, padding, ceil, count): F.avg_pool2d(a, *s))
    yield Case([image], "aten.max_pool {0} kernel [2, 2] stride [1, 1] padding [0, 0] dilation [2, 3]",
               lambda a: F.max_pool2d(a, 2, 1, 0, (2, 3)))
    yield Case([torch.ones(1, 1, 4, 4, dtype=F64)], "aten.max_pool {0} kernel [3, 3] stride [1, 1] padding [1, 1] dilation "
               "[1, 1]", lambda a: F.max_pool2d(a, 3, 1, 1), smooth=False)
    yield Case([x(4, 5, 5)], "aten.avg_pool {0} kernel [2, 2] stride [2, 2] padding [0, 0] divisor 3",
               lambda a: F.avg_pool2d(a, 2, 2, divisor_override=3))
    yield Case([image], "aten.adaptive_avg_pool {0} to [3, 4]", lambda a: F.adaptive_avg_pool2d(a, (3, 4)))
    yield Case([image], "aten.adaptive_avg_pool {0} to [1, 1]", lambda a: F.adaptive_avg_pool2d(a, 1))
    yield Case([image], "aten.adaptive_max_pool {0} to [3, 4]", lambda a: F.adaptive_max_pool2d(a, (3, 4)))
    yield Case([x(2, 4, 3, 2, 4, 4)], "aten.fold {0} to [7, 6] stride [2, 1] padding [1, 0] dilation [1, 2]",
               lambda a: F.fold(a.reshape(2, 24, 16), (7, 6), (3, 2), (1, 2), (1, 0), (2, 1)))
    # A last window that reaches beyond the padding, and elements that no window covers.
    yield Case([x(2, 4, 3, 4)], "aten.fold {0} to [8] stride [2] padding [0] dilation [1]",
               lambda a: F.fold(a.reshape(2, 12, 4), (1, 9), (1, 3), stride=(1, 2))[:, :, 0, :8])
    yield Case([x(2, 4, 2, 2)], "aten.fold {0} to [7] stride [3] padding [0] dilation [2]",
               lambda a: F.fold(a.reshape(2, 8, 2), (1, 7), (1, 2), (1, 2), stride=(1, 3))[:, :, 0])


def lines_and_volumes():
    line, volume = x(2, 4, 9), x(2, 4, 5, 4, 6)
    for weight, stride, padding, dilation, groups in (((3, 4, 3), [2], [1], [2], 1), ((4, 2, 2), [1], [0], [1], 2)):
        yield Case([line, x(*weight), x(weight[0])],
                   f"aten.convolution {{0}}, {{1}} bias({{2}}) stride {stride} padding {padding} dilation {dilation} groups {groups}",
                   lambda a, w, b, s=(stride, padding, dilation, groups): F.conv1d(a, w, b, *s))
    for weight, stride, padding, dilation, groups in (((3, 4, 2, 3, 2), [1, 2, 3], [1, 0, 1], [2, 1, 1], 1),
                                                      ((4, 1, 2, 2, 1), [2, 1, 1], [0, 1, 0], [1, 1, 1], 4)):
        yield Case([volume, x(*weight)],
                   f"aten.convolution {{0}}, {{1}} stride {stride} padding {padding} dilation {dilation} groups {groups}",
                   lambda a, w, s=(stride, padding, dilation, groups): F.conv3d(a, w, None, *s))
    yield Case([line], "aten.max_pool {0} kernel [3] stride [2] padding [1] dilation [2] ceil",
               lambda a: F.max_pool1d(a, 3, 2, 1, 2, True))
    yield Case([volume], "aten.max_pool {0} kernel [2, 3, 2] stride [2, 1, 3] padding [1, 1, 0] dilation [1, 1, 2] ceil",
               lambda a: F.max_pool3d(a, (2, 3, 2), (2, 1, 3), (1, 1, 0), (1, 1, 2), True))
    yield Case([x(4, 9)], "aten.avg_pool {0} kernel [4] stride [] padding [2] ceil with_padding",
               lambda a: F.avg_pool1d(a, 4, None, 2, True))
    yield Case([volume], "aten.avg_pool {0} kernel [3, 2, 2] stride [2, 2, 1] padding [1, 0, 1] ceil",
               lambda a: F.avg_pool3d(a, (3, 2, 2), (2, 2, 1), (1, 0, 1), True, False))
    for kind, call in (("avg", F.adaptive_avg_pool1d), ("max", F.adaptive_max_pool1d)):
        yield Case([line], f"aten.adaptive_{kind}_pool {{0}} to [4]", lambda a, c=call: c(a, 4))
    for kind, call in (("avg", F.adaptive_avg_pool3d), ("max", F.adaptive_max_pool3d)):
        yield Case([volume], f"aten.adaptive_{kind}_pool {{0}} to [2, 3, 4]", lambda a, c=call: c(a, (2, 3, 4)))
    yield Case([volume], "aten.windows {0} kernel [2, 1, 3] stride [2, 3, 1] padding [1, 0, 0] dilation [1]",
               lambda a: F.pad(a, (0, 0, 0, 0, 1, 1)).unfold(2, 2, 2).unfold(3, 1, 3).unfold(4, 3, 1).permute(0, 1, 5, 6, 7, 2, 3, 4))


def fourier():
    pairs = torch.view_as_complex
    for n in (1, 2, 5, 6):
        for norm in (0, 1, 2):
            yield Case([x(3, n, 2, 2)], f"aten.fft_c2c {{0}} dim 1 normalization {norm} forward",
                       lambda a, m=norm: torch.view_as_real(A._fft_c2c(pairs(a), [1], m, True)))
        yield Case([x(3, n, 2)], "aten.fft_c2c {0} dim 1", lambda a: torch.view_as_real(A._fft_c2c(pairs(a), [1], 0, False)))
        yield Case([x(n, 3)], "aten.fft_r2c {0} dim 0 normalization 1", lambda a: torch.view_as_real(A._fft_r2c(a, [0], 1, False)))
        yield Case([x(3, n)], "aten.fft_r2c {0} dim 1 onesided", lambda a: torch.view_as_real(A._fft_r2c(a, [1], 0, True)))
        yield Case([x(3, n // 2 + 1, 2, 2)], f"aten.fft_c2r {{0}} dim 1 to [{n}] normalization 2",
                   lambda a, m=n: A._fft_c2r(pairs(a), [1], 2, m))


FAMILIES = (activations, binary, more_operands, casts, views, parts, contractions, neighborhoods, reductions, scans, normalizations, lookups,
            writes, sorts, attention, images, lines_and_volumes, fourier)

REASONS = {name: "its result has no derivative: integers or bools" for name in (
    "logical_not isnan isinf bitwise_not bitwise_and bitwise_or bitwise_xor logical_and logical_or logical_xor eq ne lt le gt "
    "ge any all argmax argmin philox max_pool_positions adaptive_max_pool_positions").split()}
REASONS |= {name: "it has no tensor of floats among its operands" for name in ("constant", "arange", "random", "sym_size")}
REASONS["bitcast"] = "bits have none"
REASONS["custom"] = "it has the functions that the user registers, in test_custom_ops.py"
REASONS["opaque"] = "it is known by name only"
REASONS["scaled_dot_product_flash_attention"] = "its logsumexp has none; its output is in test/passes/gradient/attention.mlir"
REASONS["scaled_dot_product_flash_attention_backward"] = "it is a derivative"
