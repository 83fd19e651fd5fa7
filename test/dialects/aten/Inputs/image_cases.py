# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random calls of ops of lines, images and volumes, as in pytorch_cases.py."""
import math
import random

import torch

from pytorch_cases import FLOATS, SIZES, A, dim_list, shape


def image(spatial, channels=None, batch=True):
    leading = [random.choice([0, 1, 2, 3])] * batch + [channels or random.choice([1, 2, 4, 6])]
    return leading + [random.randint(1, 9 if spatial < 3 else 5) for _ in range(spatial)]


def numbers(spatial, low, high, shared=True):
    """One for each spatial dim, or one for all."""
    return [random.randint(low, high) for _ in range(random.choice([1, spatial]) if shared else spatial)]


def window_text(kernel, stride, padding, dilation):
    return (f"kernel {dim_list(kernel)} stride {dim_list(stride)} padding {dim_list(padding)}"
            + (f" dilation {dim_list(dilation)}" if dilation else ""))


def convolution():
    n = random.choice([1, 2, 2, 3])
    groups = random.choice([1, 1, 2, 3])
    wrong = random.random() < 0.1
    c, o, t = groups * random.randint(1, 3), groups * random.randint(1, 2), random.choice([torch.float32, torch.float64])
    kernel = numbers(n, 1, 3, shared=False)
    x, w = image(n, channels=c + wrong), [o, c // groups, *kernel]
    stride, padding, dilation = numbers(n, 1, 3), numbers(n, 0, 2), numbers(n, 1, 2)
    biased = random.random() < 0.5
    text = (f"aten.convolution {{0}}, {{1}} {'bias({2}) ' * biased}stride {dim_list(stride)} padding {dim_list(padding)} "
            f"dilation {dim_list(dilation)} groups {groups}")

    def conv(x, w, *b, groups=groups):
        call = {1: A.conv1d, 2: A.conv2d, 3: A.conv3d}[n]
        return call(x, w, *(b or [None]), stride, padding, dilation, groups)

    def local(x, r):
        # A shard has whole groups.
        if 0 in r[0] or x[0].shape[1] == 0:
            return torch.zeros(r[0], dtype=x[0].dtype)
        return conv(*x, groups=groups if groups == 1 else max(groups * x[0].shape[1] // c, 1))

    # im2col is of images.
    flat = [v * (3 - len(v)) for v in (dilation, padding, stride)]

    def positions(x):
        return [(s + 2 * p - d * (k - 1) - 1) // t + 1 for s, p, d, k, t in zip(x, flat[1], flat[0], kernel, flat[2])]

    def windows(x):
        return A.im2col(x, kernel, *flat).view(x.shape[0], x.shape[1], *kernel, *positions(x.shape[2:]))

    def fold(x, to=None):
        return A.col2im(x.reshape(x.shape[0], x.shape[1] * math.prod(kernel), -1), to or size, kernel, *flat)
    calls = [([(x, t), (w, t)] + [([o], t)] * biased, text, conv, {"local": local})]
    if n == 2:
        size = image(2)[2:]
        columns = [random.choice([1, 2, 3]), random.choice([1, 2, 4]), *kernel, *(max(p, 1) for p in positions(size))]
        calls += [
            ([(image(2, channels=c), t)], "aten.windows {0} " + window_text(kernel, stride, padding, dilation), windows,
             {"local": lambda x, r: windows(x[0]) if x[0].numel() else torch.zeros(r[0], dtype=x[0].dtype)}),
        ]
        if min(positions(size)) >= 1:
            calls.append(
                ([(columns, t)], f"aten.fold {{0}} to {dim_list(size)} stride {dim_list(stride)} padding {dim_list(padding)} "
                 f"dilation {dim_list(dilation)}", fold,
                 {"local": lambda x, r: fold(x[0], list(r[0])[2:]) if x[0].numel() else torch.zeros(r[0], dtype=x[0].dtype)}))
    return random.choice(calls)


def pool():
    n = random.choice([1, 2, 2, 3])
    s, kernel = image(n, batch=random.random() < 0.6), numbers(n, 1, 4, shared=False)
    stride, padding, dilation = numbers(n, 1, 3), numbers(n, 0, 2), numbers(n, 1, 2)
    stride = [] if random.random() < 0.3 else stride
    ceil, include, divisor = random.random() < 0.5, random.random() < 0.5, random.choice([None, None, 3]) if n > 1 else None
    out = numbers(n, 1, 5, shared=False)
    c = random.choice([1, 2, 3])
    affine = random.choice([0, 2])
    stats = [([c], torch.float32)] * 2
    x = [random.choice(SIZES), c] + shape(high=2)

    def shard(call, dtype=None):
        return {"local": lambda x, r: call(*x) if x[0].numel() else torch.zeros(r[0], dtype=dtype or x[0].dtype)}

    def max_pool(x, result=0):
        call = {1: A.max_pool1d_with_indices, 2: A.max_pool2d_with_indices, 3: A.max_pool3d_with_indices}[n]
        return call(x, kernel, stride, padding, dilation, ceil)[result]

    def avg_pool(x):
        call = {1: A.avg_pool1d, 2: A.avg_pool2d, 3: A.avg_pool3d}[n]
        return call(x, kernel, stride, padding, ceil, include, *([divisor] if n > 1 else []))

    def adaptive(kind, result=None):
        def call(x):
            value = getattr(A, f"adaptive_{kind}_pool{n}d")(x, out)
            return value if result is None else value[result]
        return call

    def part_of_mean(x):
        """Of a dim that becomes one element, a rank divides its sum by the size of the whole."""
        parts = [own / whole for own, whole, kept in zip(x.shape[-n:], s[-n:], out) if kept == 1]
        return adaptive("avg")(x) * math.prod(parts)

    def batch_norm(x, *p):
        w, b = p[:-2] if affine else (None, None)
        return A._native_batch_norm_legit_no_training(x, w, b, p[-2], p[-1].abs(), 0.1, 1e-5)[0]
    window = window_text(kernel, stride, padding, dilation) + " ceil" * ceil
    i64 = torch.int64
    return random.choice([
        ([(s, random.choice(FLOATS))], "aten.max_pool {0} " + window, max_pool, shard(max_pool)),
        ([(s, torch.float32)], "aten.max_pool_positions {0} " + window, lambda x: max_pool(x, 1),
         shard(lambda x: max_pool(x, 1), i64)),
        ([(s, torch.float32)], "aten.avg_pool {0} " + window_text(kernel, stride, padding, None) + " ceil" * ceil
         + " with_padding" * include + (f" divisor {divisor}" if divisor else ""), avg_pool, shard(avg_pool)),
        ([(s, torch.float32)], f"aten.adaptive_avg_pool {{0}} to {dim_list(out)}", adaptive("avg"), shard(part_of_mean)),
        ([(s, torch.float32)], f"aten.adaptive_max_pool {{0}} to {dim_list(out)}", adaptive("max", 0), shard(adaptive("max", 0))),
        ([(s, torch.float32)], f"aten.adaptive_max_pool_positions {{0}} to {dim_list(out)}", adaptive("max", 1),
         shard(adaptive("max", 1), i64)),
        ([(x, torch.float32)] + [([c], torch.float32)] * affine + stats,
         "aten.batch_norm {0} " + "weight({1}) bias({2}) " * (affine == 2)
         + f"mean({{{affine + 1}}}) variance({{{affine + 2}}}) eps 1.0e-05", batch_norm),
    ])


FAMILIES = [convolution, pool]
