# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Cases of the kernel tests: convolutions, pools and batch norm in all float types, with odd arguments."""
import torch
from torch.nn import functional as F

from kernel_cases import BF16, F16, F32, F64, values
from kernels import SUMS, Case


def images():
    for t in (F32, F64, BF16, F16):
        x = values([2, 6, 13, 10], t)
        for groups, kernel, stride, padding, dilation in [(1, (3, 3), (1, 1), (0, 0), (1, 1)), (1, (1, 1), (1, 1), (0, 0), (1, 1)),
                                                          (2, (3, 2), (2, 1), (1, 0), (1, 2)), (6, (5, 3), (1, 2), (2, 1), (1, 1)),
                                                          (3, (2, 4), (3, 2), (0, 3), (2, 1))]:
            w, b = values([12, 6 // groups, *kernel], t), values([12], t)
            tail = f"stride {list(stride)} padding {list(padding)} dilation {list(dilation)} groups {groups}"
            call = dict(stride=stride, padding=padding, dilation=dilation, groups=groups)
            yield Case([x, w], "aten.conv2d {0}, {1} " + tail, lambda a, w, c=call: F.conv2d(a, w, **c), loose=SUMS)
            yield Case([x, w, b], "aten.conv2d {0}, {1} bias({2}) " + tail, lambda a, w, b, c=call: F.conv2d(a, w, b, **c), loose=SUMS)
        yield Case([x], "aten.max_pool2d {0} kernel [3] stride [2] padding [1] dilation [1] ceil",
                   lambda a: F.max_pool2d(a, 3, 2, 1, 1, ceil_mode=True))
        yield Case([x], "aten.max_pool2d {0} kernel [2, 3] stride [1, 2] padding [1, 0] dilation [2, 1]",
                   lambda a: F.max_pool2d(a, (2, 3), (1, 2), (1, 0), (2, 1)))
        yield Case([x], "aten.avg_pool2d {0} kernel [2, 3] stride [] padding [0]",
                   lambda a: F.avg_pool2d(a, (2, 3), count_include_pad=False), loose=SUMS)
        yield Case([x], "aten.avg_pool2d {0} kernel [3] stride [2] padding [1] with_padding divisor 7",
                   lambda a: F.avg_pool2d(a, 3, 2, 1, divisor_override=7), loose=SUMS)
        for size in ([1, 1], [3, 4], [13, 10]):
            yield Case([x], f"aten.adaptive_avg_pool2d {{0}} to {size}", lambda a, s=size: F.adaptive_avg_pool2d(a, s), loose=SUMS)
        mean, variance, w, b = (values([6], t).abs() + 0.1 for _ in range(4))
        yield Case([x, w, b, mean, variance], "aten.batch_norm {0} weight({1}) bias({2}) mean({3}) variance({4}) eps 1.0e-05",
                   lambda a, w, b, m, v: F.batch_norm(a, m, v, w, b, eps=1e-5), loose=SUMS)
