# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random calls of ops of images, as in pytorch_cases.py."""
import random

import torch

from pytorch_cases import FLOATS, SIZES, A, dim_list, shape


def image(dims=4, channels=None):
    leading = [random.choice([0, 1, 2, 3]), channels or random.choice([1, 2, 4, 6])]
    return leading[4 - dims:] + [random.randint(1, 9), random.randint(1, 9)]


def pair(low, high):
    return [random.randint(low, high) for _ in range(random.choice([1, 2]))]


def window_text(kernel, stride, padding, dilation):
    return (f"kernel {dim_list(kernel)} stride {dim_list(stride)} padding {dim_list(padding)}"
            + (f" dilation {dim_list(dilation)}" if dilation else ""))


def convolution():
    groups = random.choice([1, 1, 2, 3])
    wrong = random.random() < 0.1
    c, o, t = groups * random.randint(1, 3), groups * random.randint(1, 2), random.choice([torch.float32, torch.float64])
    x, w = image(channels=c + wrong), [o, c // groups, random.randint(1, 3), random.randint(1, 3)]
    stride, padding, dilation = pair(1, 3), pair(0, 2), pair(1, 2)
    kernel, biased = w[2:], random.random() < 0.5
    text = (f"aten.conv2d {{0}}, {{1}} {'bias({2}) ' * biased}stride {dim_list(stride)} padding {dim_list(padding)} "
            f"dilation {dim_list(dilation)} groups {groups}")

    def conv(x, w, *b, groups=groups):
        return A.conv2d(x, w, *(b or [None]), stride, padding, dilation, groups)

    def local(x, r):
        # A shard has whole groups.
        if 0 in r[0] or x[0].shape[1] == 0:
            return torch.zeros(r[0], dtype=x[0].dtype)
        return conv(*x, groups=groups if groups == 1 else max(groups * x[0].shape[1] // c, 1))

    def windows(x):
        columns = A.im2col(x, kernel, dilation * (3 - len(dilation)), padding * (3 - len(padding)),
                           stride * (3 - len(stride)))
        sizes = [(n + 2 * p - d * (k - 1) - 1) // s + 1
                 for n, p, d, k, s in zip(x.shape[2:], padding * 2, dilation * 2, kernel, stride * 2)]
        return columns.view(x.shape[0], x.shape[1], *kernel, *sizes)
    return random.choice([
        ([(x, t), (w, t)] + [([o], t)] * biased, text, conv, {"local": local}),
        ([(image(channels=c), t)], "aten.windows {0} " + window_text(kernel, stride, padding, dilation), windows,
         {"local": lambda x, r: windows(x[0]) if x[0].numel() else torch.zeros(r[0], dtype=x[0].dtype)}),
    ])


def pool():
    s, kernel = image(random.choice([3, 4])), pair(1, 4)
    stride, padding, dilation = pair(1, 3), pair(0, 2), pair(1, 2)
    stride = [] if random.random() < 0.3 else stride
    ceil, include, divisor = random.random() < 0.5, random.random() < 0.5, random.choice([None, None, 3])
    out = [random.randint(1, 5), random.randint(1, 5)]
    c = random.choice([1, 2, 3])
    affine = random.choice([0, 2])
    stats = [([c], torch.float32)] * 2
    x = [random.choice(SIZES), c] + shape(high=2)

    def shard(call):
        return {"local": lambda x, r: call(*x) if x[0].numel() else torch.zeros(r[0], dtype=x[0].dtype)}

    def max_pool(x):
        return A.max_pool2d(x, kernel, stride, padding, dilation, ceil)

    def avg_pool(x):
        return A.avg_pool2d(x, kernel, stride, padding, ceil, include, divisor)

    def batch_norm(x, *p):
        w, b = p[:-2] if affine else (None, None)
        return A._native_batch_norm_legit_no_training(x, w, b, p[-2], p[-1].abs(), 0.1, 1e-5)[0]
    return random.choice([
        ([(s, random.choice(FLOATS))], "aten.max_pool2d {0} " + window_text(kernel, stride, padding, dilation)
         + " ceil" * ceil, max_pool, shard(max_pool)),
        ([(s, torch.float32)], "aten.avg_pool2d {0} " + window_text(kernel, stride, padding, None) + " ceil" * ceil
         + " with_padding" * include + (f" divisor {divisor}" if divisor else ""), avg_pool, shard(avg_pool)),
        ([(s, torch.float32)], f"aten.adaptive_avg_pool2d {{0}} to {dim_list(out)}",
         lambda x: A._adaptive_avg_pool2d(x, out), shard(lambda x: A._adaptive_avg_pool2d(x, out))),
        ([(x, torch.float32)] + [([c], torch.float32)] * affine + stats,
         "aten.batch_norm {0} " + "weight({1}) bias({2}) " * (affine == 2)
         + f"mean({{{affine + 1}}}) variance({{{affine + 2}}}) eps 1.0e-05", batch_norm),
    ])


FAMILIES = [convolution, pool]
