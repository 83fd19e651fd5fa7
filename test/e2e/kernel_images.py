# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Cases of the kernel tests: convolutions, pools and batch norm in all float types, with odd arguments."""
import torch
from torch.nn import functional as F

from kernel_cases import BF16, F16, F32, F64, values
from kernels import SUMS, Case
from neighborhood_cases import Products


def images():
    for t in (F32, F64, BF16, F16):
        x = values([2, 6, 13, 10], t)
        for groups, kernel, stride, padding, dilation in [(1, (3, 3), (1, 1), (0, 0), (1, 1)), (1, (1, 1), (1, 1), (0, 0), (1, 1)),
                                                          (2, (3, 2), (2, 1), (1, 0), (1, 2)), (6, (5, 3), (1, 2), (2, 1), (1, 1)),
                                                          (3, (2, 4), (3, 2), (0, 3), (2, 1))]:
            w, b = values([12, 6 // groups, *kernel], t), values([12], t)
            tail = f"stride {list(stride)} padding {list(padding)} dilation {list(dilation)} groups {groups}"
            call = dict(stride=stride, padding=padding, dilation=dilation, groups=groups)
            yield Case([x, w], "aten.convolution {0}, {1} " + tail, lambda a, w, c=call: F.conv2d(a, w, **c), loose=SUMS)
            yield Case([x, w, b], "aten.convolution {0}, {1} bias({2}) " + tail, lambda a, w, b, c=call: F.conv2d(a, w, b, **c), loose=SUMS)
        yield Case([x], "aten.max_pool {0} kernel [3, 3] stride [2] padding [1] dilation [1] ceil",
                   lambda a: F.max_pool2d(a, 3, 2, 1, 1, ceil_mode=True))
        yield Case([x], "aten.max_pool {0} kernel [2, 3] stride [1, 2] padding [1, 0] dilation [2, 1]",
                   lambda a: F.max_pool2d(a, (2, 3), (1, 2), (1, 0), (2, 1)))
        yield Case([x], "aten.avg_pool {0} kernel [2, 3] stride [] padding [0]",
                   lambda a: F.avg_pool2d(a, (2, 3), count_include_pad=False), loose=SUMS)
        yield Case([x], "aten.avg_pool {0} kernel [3, 3] stride [2] padding [1] with_padding divisor 7",
                   lambda a: F.avg_pool2d(a, 3, 2, 1, divisor_override=7), loose=SUMS)
        for size in ([1, 1], [3, 4], [13, 10]):
            yield Case([x], f"aten.adaptive_avg_pool {{0}} to {size}", lambda a, s=size: F.adaptive_avg_pool2d(a, s), loose=SUMS)
        for size in ([3, 4], [13, 10]):
            yield Case([x], f"aten.adaptive_max_pool {{0}} to {size}", lambda a, s=size: F.adaptive_max_pool2d(a, s))
            yield Case([x], f"aten.adaptive_max_pool_positions {{0}} to {size}",
                       lambda a, s=size: F.adaptive_max_pool2d(a, s, return_indices=True)[1])
        special = x.clone()
        special[0, 0, 2:5], special[0, 1], special[1, 2, 3, ::2] = float("nan"), float("-inf"), 3
        yield Case([special], "aten.max_pool_positions {0} kernel [3, 2] stride [2, 1] padding [1, 1] dilation [2, 1] ceil",
                   lambda a: F.max_pool2d(a, (3, 2), (2, 1), 1, (2, 1), True, True)[1])
        line, volume = values([2, 6, 11], t), values([2, 4, 5, 6, 4], t)
        w = values([4, 3, 3], t)
        yield Case([line, w], "aten.convolution {0}, {1} stride [2] padding [1] dilation [2] groups 2",
                   lambda a, w: F.conv1d(a, w, None, 2, 1, 2, 2), loose=SUMS)
        w = values([3, 4, 2, 3, 2], t)
        yield Case([volume, w], "aten.convolution {0}, {1} stride [1, 2, 1] padding [1, 1, 0] dilation [1, 1, 2]",
                   lambda a, w: F.conv3d(a, w, None, (1, 2, 1), (1, 1, 0), (1, 1, 2)), loose=SUMS)
        yield Case([volume], "aten.max_pool {0} kernel [2, 3, 2] stride [2, 1, 2] padding [1, 1, 0] dilation [1] ceil",
                   lambda a: F.max_pool3d(a, (2, 3, 2), (2, 1, 2), (1, 1, 0), 1, True))
        yield Case([volume], "aten.avg_pool {0} kernel [2, 3, 2] stride [2, 1, 2] padding [1, 1, 0] ceil with_padding",
                   lambda a: F.avg_pool3d(a, (2, 3, 2), (2, 1, 2), (1, 1, 0), True), loose=SUMS)
        yield Case([line], "aten.adaptive_avg_pool {0} to [4]", lambda a: F.adaptive_avg_pool1d(a, 4), loose=SUMS)
        # Each way of a loop: over positions, over the kernel, and over the kernel where some positions are none.
        for kernel, stride, padding, dilation, size in (((3, 2), (2, 1), (1, 0), (1, 1), (9, 6)), ((3, 2), (1, 1), (1, 2), (2, 3), (9, 6)),
                                                        ((2, 3), (3, 2), (0, 3), (2, 3), (9, 6))):
            places = [(s + 2 * p - d * (k - 1) - 1) // st + 1 for s, p, d, k, st in zip(size, padding, dilation, kernel, stride)]
            columns = values([2, 3, *kernel, *places], t)
            yield Case([columns], f"aten.fold {{0}} to {list(size)} stride {list(stride)} padding {list(padding)} dilation {list(dilation)}",
                       lambda a, c=(size, kernel, dilation, padding, stride): F.fold(a.flatten(1, 3).flatten(2), *c), loose=SUMS)
        mean, variance, w, b = (values([6], t).abs() + 0.1 for _ in range(4))
        yield Case([x, w, b, mean, variance], "aten.batch_norm {0} weight({1}) bias({2}) mean({3}) variance({4}) eps 1.0e-05",
                   lambda a, w, b, m, v: F.batch_norm(a, m, v, w, b, eps=1e-5), loose=SUMS)


def neighborhoods():
    """Windows at borders, in lines of a dilation, shared by a stride, causal, cut off; rows of one element and of many."""
    for sizes, windows, heads, width in [
            ((19,), [(5, 1, 3, False)], 3, 17), ((13, 11), [(3, 1, 1, False), (4, 2, 2, False)], 2, 33),
            ((17,), [(6, 1, 2, False, 2)], 2, 5), ((3, 8), [(7, 1, 1, False, 3), (4, 1, 3, False, 0)], 1, 9),
            ((9, 8), [(4, 3, 2, True), (3, 1, 1, False)], 1, 1), ((4, 5, 6), [(3, 1, 1, False), (2, 1, 2, True), (3, 2, 1, False)], 2, 8)]:
        products = Products(windows)
        for t in (F32, F64, BF16, F16):
            wide = F64 if t == F64 else F32
            rows, scores = [2, *sizes, heads, width], [2, *sizes, heads, *(w[0] for w in windows)]
            for name, left in (("qk", values(rows, t)), ("av", values(scores, wide)), ("adjoint", values(scores, wide))):
                def call(a, b, f=getattr(products, name), t=t, w=wide, n=name):
                    return f(a.double(), b.double()).to(w if n == "qk" else t)
                yield Case([left, values(rows, t)], products.text(name), call, loose=SUMS)
