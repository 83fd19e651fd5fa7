# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Cases of the kernel tests: each op of the aten dialect on tensors chosen for what can go wrong."""
import random

import torch

from kernels import SUMS, Case
import pytorch_cases
from pytorch_cases import BINARY, NUMBERS, UNARY

A = torch.ops.aten
F32, F64, BF16, F16, I64 = torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int64
SPECIAL = [float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1e-6, -1e-6, 88.0, -88.0, 104.0,
           -104.0, 1e4, -1e4, 2.5, -2.5, 3.5, 1e-20, 20.0, 20.5]


def values(shape, dtype, special=False):
    if dtype == torch.bool:
        return torch.rand(shape) < 0.5
    if not dtype.is_floating_point:
        return torch.randint(0 if dtype == torch.uint8 else -7, 8, shape).to(dtype)
    x = torch.randn(shape, dtype=F64) * 2
    if special and x.numel():
        x.view(-1)[torch.randperm(x.numel())[:3]] = torch.tensor(random.sample(SPECIAL, 3), dtype=F64)[:x.numel()]
    return x.to(dtype)


def wide(dtype):
    """A long odd vector over the range of a type, and special values."""
    if dtype == torch.bool:
        return values([37], dtype)
    if not dtype.is_floating_point:
        info = torch.iinfo(dtype)
        ends = torch.tensor([info.min + 1, info.max, 0, 1] + [-1] * dtype.is_signed, dtype=dtype)
        return torch.cat([torch.arange(0 if not dtype.is_signed else -50, 51).to(dtype), ends])
    x = torch.cat([torch.tensor(SPECIAL, dtype=F64), torch.linspace(-10, 10, 501, dtype=F64),
                   torch.logspace(-7, 4, 101, dtype=F64), -torch.logspace(-7, 4, 101, dtype=F64)])
    return x.to(dtype)


def unary():
    for name, types in UNARY.items():
        for t in types:
            if t in (torch.int16,) or (name in ("tan", "sin", "cos") and t == F16):
                continue
            x = wide(t)
            if name == "gelu":  # PyTorch's vectors and scalars disagree about infinities
                x = x[x.isfinite()]
            yield Case([x], f"aten.{name} {{0}}", getattr(A, name), loose=4 if t == F32 else 1.01)
    for t, bits in ((F32, 24), (F64, 53)):
        ends = 1 - 2.0 ** -torch.linspace(1, bits, 97, dtype=F64)
        x = torch.cat([torch.linspace(-1, 1, 401, dtype=F64), torch.logspace(-30, -1, 31, dtype=F64), ends, -ends])
        yield Case([x.to(t)], "aten.erfinv {0}", A.erfinv, loose=4)
    for text, call in [
        ('{{approximate = "tanh"}}', lambda x: A.gelu(x, approximate="tanh")),
    ]:
        for t in (F32, F64, BF16, F16):
            yield Case([wide(t)], f"aten.gelu {{0}} {text}", call, loose=4)
    for text, call in [
        ("leaky_relu {0} {{negative_slope = 0.3}}", lambda x: A.leaky_relu(x, 0.3)),
        ("elu {0} {{alpha = 0.7, input_scale = 1.3, scale = 1.1}}", lambda x: A.elu(x, 0.7, 1.1, 1.3)),
        ("hardtanh {0} {{max_val = 2.0, min_val = -0.5}}", lambda x: A.hardtanh(x, -0.5, 2.0)),
        ("softplus {0} {{beta = 2.0, threshold = 5.0}}", lambda x: A.softplus(x, 2, 5)),
    ]:
        for t in (F32, F64, BF16):
            yield Case([wide(t)], f"aten.{text}", call, loose=4)


def pairs(t):
    """All pairs of interesting values."""
    if t.is_floating_point:
        x = torch.tensor(SPECIAL + [7.0, -7.0, 3.0, -3.0, 0.1, 6.3], dtype=F64).to(t)
    elif t == torch.bool:
        x = torch.tensor([True, False])
    else:
        x = torch.arange(0 if t == torch.uint8 else -7, 8).to(t)
    return x.reshape(-1, 1), x


def binary():
    for name, types in BINARY.items():
        for t in types:
            if t in (torch.int16, torch.int32):
                continue
            x, y = pairs(t)
            if name in ("fmod", "remainder") and not t.is_floating_point:
                y = y[y != 0]
            yield Case([x, y], f"aten.{name} {{0}}, {{1}}", getattr(A, name), loose=2)
    for t in NUMBERS:
        x, y = pairs(t)
        y = y if t.is_floating_point else y[y != 0]
        for mode in ("floor", "trunc"):
            yield Case([x, y], f'aten.div {{0}}, {{1}} {{{{rounding_mode = "{mode}"}}}}',
                       lambda a, b, mode=mode: A.div(a, b, rounding_mode=mode))
    for t in (F32, F64, I64, torch.uint8):
        x, y = pairs(t)
        for alpha in (2.0, -3.0):
            if t == torch.uint8 and alpha < 0:
                continue
            yield Case([x, y], f"aten.sub {{0}}, {{1}} {{{{alpha = {alpha}}}}}",
                       lambda a, b, c=alpha: A.sub(a, b, alpha=c if b.is_floating_point() else int(c)))


def powers():
    for t in (F32, F64, BF16, F16):
        x, y = pairs(t)
        yield Case([x, y], "aten.pow {0}, {1}", torch.pow, loose=4)
        for e in (0.0, 1.0, 2.0, 3.0, 0.5, -0.5, -1.0, -2.0, 4.0, 1.7):
            yield Case([wide(t), torch.tensor(e, dtype=t)], "aten.pow {0}, {1}", lambda a, b: torch.pow(a, b.item()),
                       (1,), loose=4)
    for t in (I64, torch.int32, torch.int8, torch.uint8):
        x, y = pairs(t)
        yield Case([x, y.abs()], "aten.pow {0}, {1}", torch.pow)
        for e in (0, 1, 2, 3, 5):
            yield Case([x, torch.tensor(e, dtype=t)], "aten.pow {0}, {1}", lambda a, b: torch.pow(a, b.item()), (1,))


def several_operands():
    for t in (F32, F64, BF16, F16, I64, torch.int8, torch.uint8):
        x, y = pairs(t)
        low, high = values([], t), values([15], t)[:1]
        yield Case([x, low, high], "aten.clamp {0} min({1}) max({2})", torch.clamp, (1,))
        yield Case([x, low], "aten.clamp {0} min({1})", torch.clamp, (1,))
        yield Case([x, y], "aten.clamp {0} max({1})", lambda a, b: torch.clamp(a, max=b))
        mask = torch.rand(len(y)) < 0.5
        yield Case([x, mask, low], "aten.masked_fill {0}, {1}, {2}", torch.masked_fill)
        if t.is_floating_point:
            yield Case([x, mask], "aten.dropout {0}, {1} {{p = 0.75 : f64}}", lambda a, m: a * m * 4)
        yield Case([x, x.flip(0)], "aten.copy {0}, {1}", A.copy)
        yield Case([mask, x, y], "aten.where {0}, {1}, {2}", torch.where)
        small = [values([3, 1, 5], t), values([4, 1], t), values([5], t)]
        yield Case(small, "aten.addcmul {0}, {1}, {2} {{value = 2.0}}", lambda a, b, c: A.addcmul(a, b, c, value=2), loose=4)
        if t.is_floating_point:
            yield Case(small, "aten.addcdiv {0}, {1}, {2} {{value = -0.5}}", lambda a, b, c: A.addcdiv(a, b, c, value=-0.5),
                       loose=4)
            yield Case(small, "aten.lerp {0}, {1}, {2}", A.lerp, loose=8)


def casts():
    everything = torch.tensor([float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 0.3, -0.3, 1.9, -1.9, 100.7, -100.7])
    for t in NUMBERS + [torch.bool]:
        x = everything.to(t) if t.is_floating_point else wide(t)
        for u in NUMBERS + [torch.bool]:
            # What an infinity or NaN is as an integer, no standard says.
            y = x[x.isfinite()] if t.is_floating_point and not u.is_floating_point and u != torch.bool else x
            if t.is_floating_point and u in (torch.uint8,):
                y = y[y > -1]
            yield Case([y], f"aten.to_copy {{0}} to {pytorch_cases.NAMES[u]}", lambda a, u=u: a.to(u))
    bits = {2: torch.int16, 4: torch.int32, 8: torch.int64}
    for t in (t for t in NUMBERS if t.is_floating_point):
        x, u = everything[1:].to(t), bits[t.itemsize]  # which of its bits NaN has is up to the processor
        yield Case([x], f"aten.bitcast {{0}} to {pytorch_cases.NAMES[u]}", lambda a, u=u: a.view(u))
        yield Case([x.view(u)], f"aten.bitcast {{0}} to {pytorch_cases.NAMES[t]}", lambda a, t=t: a.view(t))


def at_random(count):
    """Random ops of all families on small odd shapes, operands as views of other tensors."""
    for _ in range(count):
        family = random.choice(pytorch_cases.FAMILIES)
        operands, text, call, *more = family()
        if not operands:
            continue
        bounds = more[0].get("bounds", {}) if more else {}
        # Masked positions are skipped, where PyTorch multiplies what is there by 0: NaN is.
        may_be_special = not ("aten.scaled_dot_product" in text and ("causal" in text or "mask(" in text))
        tensors = []
        for i, (shape, t) in enumerate(operands):
            if i in bounds:
                tensors.append(torch.randint(0, max(bounds[i], 1), shape).to(t))
            else:
                tensors.append(values(shape, t, special=random.random() < 0.2 and may_be_special))
        if "rounding_mode" in text or "aten.fmod" in text or "aten.remainder" in text:
            tensors[1] = torch.where(tensors[1] == 0, torch.ones_like(tensors[1]), tensors[1])
        if "aten.group_norm" in text and tensors[0].numel() == 2 * tensors[0].shape[0]:
            continue  # groups of one element: 0 by definition, PyTorch's own rounding error times 1/sqrt(eps) in fact
        how = random.choice(["", "permuted", "sliced", "expanded"])
        yield Case(tensors, text, (lambda c: lambda *x: c(*x))(call), loose=SUMS, strided=how)


