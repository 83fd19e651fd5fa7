# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Graphs whose windows slide over sharded spatial dims, for least_bytes.py. What they must move is found as for graphs that move elements: an element of the
result is made of those that its derivative names, and a rank gets each of them that it does not have."""
import torch
import torch.nn.functional as F

from small_graphs import Graph

LINE, IMAGE, VOLUME = [(2, 3, 13)], [(1, 2, 13, 11)], [(1, 2, 7, 5, 4)]
AT = {0: 2}


def conv(image, kernel, *arguments, **options):
    """With weights that are all one."""
    spatial = image.dim() - 2
    return (F.conv1d, F.conv2d, F.conv3d)[spatial - 1](image, torch.ones(2, image.shape[1], *kernel, dtype=image.dtype), *arguments, **options)


def conv_transpose(image, kernel, *arguments, **options):
    spatial = image.dim() - 2
    functions = F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d
    return functions[spatial - 1](image, torch.ones(image.shape[1], 2, *kernel, dtype=image.dtype), *arguments, **options)


def line(function):
    return Graph(function, LINE, AT, 2)


def image(function, dims=2, mesh=None):
    return Graph(function, IMAGE, {0: dims}, dims, mesh=mesh)


SPATIAL = {
    "convolution of 3": line(lambda x: conv(x, [3], padding=1)),
    "convolution of 5, dilated": line(lambda x: conv(x, [5], padding=4, dilation=2)),
    "convolution of 4": line(lambda x: conv(x, [4], padding=1)),
    "convolution, stride 2": line(lambda x: conv(x, [3], padding=1, stride=2)),
    "convolution without padding": line(lambda x: conv(x, [3])),
    "convolution of patches": Graph(lambda x: conv(x, [4], stride=4), [(2, 3, 16)], AT, 2),
    "convolution of 1": line(lambda x: conv(x, [1])),
    "two convolutions": line(lambda x: conv(torch.relu(conv(x, [3], padding=1)), [1])),
    "transposed convolution": line(lambda x: conv_transpose(x, [2], stride=2)),
    "transposed convolution of 3": line(lambda x: conv_transpose(x, [3], padding=1)),
    "transposed, of 4 by 2": line(lambda x: conv_transpose(x, [4], stride=2, padding=1)),
    "mean pool": line(lambda x: F.avg_pool1d(x, 3, 2, 1)),
    "mean pool, windows apart": Graph(lambda x: F.avg_pool1d(x, 3), [(2, 3, 12)], AT, 2),
    "unfold": Graph(lambda x: x.unfold(2, 3, 1), LINE, AT, 2),
    "nearest, twice as long": line(lambda x: F.interpolate(x, scale_factor=2)),
    "nearest, 13 to 23": line(lambda x: F.interpolate(x, size=23)),
    "nearest, half as long": line(lambda x: F.interpolate(x, size=6)),
    "linear, twice as long": line(lambda x: F.interpolate(x, scale_factor=2, mode="linear")),
    "linear, 13 to 9, corners": line(lambda x: F.interpolate(x, size=9, mode="linear", align_corners=True)),
    "area, half as long": Graph(lambda x: F.interpolate(x, size=6, mode="area"), [(2, 3, 12)], AT, 2),
    "reflected": line(lambda x: F.pad(x, (2, 1), "reflect")),
    "replicated": line(lambda x: F.pad(x, (2, 1), "replicate")),
    "circular": line(lambda x: F.pad(x, (2, 1), "circular")),
    "circular convolution": line(lambda x: conv(F.pad(x, (1, 1), "circular"), [3])),
    "image, rows sharded": image(lambda x: conv(x, [3, 3], padding=1)),
    "image, columns sharded": image(lambda x: conv(x, [3, 5], padding=(1, 2)), 3),
    "bicubic, twice as large": image(lambda x: F.interpolate(x, scale_factor=2, mode="bicubic")),
    "bilinear, twice as large": image(lambda x: F.interpolate(x, scale_factor=2, mode="bilinear")),
    "volume": Graph(lambda x: conv(x, [3, 3, 3], padding=1), VOLUME, AT, 2),
    "corners": image(lambda x: conv(x, [3, 3], padding=1), (2, 3), (2, 2)),
    "corners of bilinear": image(lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), (2, 3), (2, 2)),
    "corners of a mean pool": image(lambda x: F.avg_pool2d(x, 3, 2, 1), (2, 3), (2, 2)),
}
