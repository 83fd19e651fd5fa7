# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Graphs over sharded spatial dims, for least_bytes.py: FORWARD, and BACKWARD of most of them. docs/least-bytes-spatial.md derives what each must move.

Lines have the lengths 24, which 2, 3 and 4 ranks divide, and 13, which none does; images are 24 x 12 and 13 x 11. Weights are inputs that every rank has, so that
nothing is known of them. Where a function is not smooth, `like` is one that is, and reads the same windows."""
from typing import Any, Callable, NamedTuple

import torch
import torch.nn.functional as F

from small_graphs import ALL, B, Graph, all_reduce


class Family(NamedTuple):
    """A function of an image and weights, for images of any size."""
    function: Callable
    weights: tuple = ()  # their shapes
    channels: int = 2
    like: Any = None
    sums: Any = None  # numbers that are summed over all ranks in the forward, and more in the backward
    out: Any = "as the input"
    backward: bool = True


def conv(*kernel, inside=2, outside=3, groups=1, **options):
    function = (F.conv1d, F.conv2d, F.conv3d)[len(kernel) - 1]
    return Family(lambda x, w: function(x, w, None, groups=groups, **options), ((outside, inside // groups, *kernel),), inside)


def transposed(*kernel, inside=2, outside=3, **options):
    function = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[len(kernel) - 1]
    return Family(lambda x, w: function(x, w, None, **options), ((inside, outside, *kernel),), inside)


def resize(**options):
    return Family(lambda x: F.interpolate(x, **options))


def pad(mode, *widths):
    return Family(lambda x: F.pad(x, widths, mode))


def max_pool(*arguments, **options):
    """A window says as much of a rank's elements as its mean does: one number."""
    def like(x):
        whole = (F.avg_pool1d, F.avg_pool2d)[x.dim() - 3]
        return whole(x, *arguments, **options)
    return Family(lambda x: (F.max_pool1d, F.max_pool2d)[x.dim() - 3](x, *arguments, **options), like=like)


def mean_pool(*arguments, **options):
    return Family(lambda x: (F.avg_pool1d, F.avg_pool2d)[x.dim() - 3](x, *arguments, **options))


def low_frequencies(x):
    spectrum = torch.fft.rfft(x)
    kept = torch.zeros_like(spectrum)
    kept[:, :, :2] = spectrum[:, :, :2]
    return torch.fft.irfft(kept, n=x.shape[2])


def along_rows(x, w):
    return torch.fft.ifft(torch.fft.fft(x, dim=2) * torch.fft.fft(w), dim=2).real


def laplacian(x):
    x = F.pad(x, (1, 1, 1, 1), "circular")
    return x[:, :, 2:, 1:-1] + x[:, :, :-2, 1:-1] + x[:, :, 1:-1, 2:] + x[:, :, 1:-1, :-2] - 4 * x[:, :, 1:-1, 1:-1]


LINES = {
    "convolution of 3": conv(3, padding=1),
    "convolution of 5": conv(5, padding=2),
    "convolution of 5, dilated": conv(5, padding=4, dilation=2),
    "convolution of 4": conv(4, padding=1),
    "convolution of 3, stride 2": conv(3, padding=1, stride=2),
    "convolution of 5, stride 3": conv(5, padding=2, stride=3),
    "convolution without padding": conv(3),
    "convolution of patches": conv(4, stride=4),
    "convolution of 1": conv(1),
    "convolution in groups": conv(3, padding=1, outside=4, groups=2),
    "convolution to fewer channels": conv(3, padding=1, inside=3, outside=2),
    "convolution, halo wider than a shard": conv(15, padding=7),
    "two convolutions": Family(lambda x, v, w: F.conv1d(torch.tanh(F.conv1d(x, v, padding=1)), w, padding=1), ((3, 2, 3), (3, 3, 3))),
    "two consumers": Family(lambda x, v, w: F.conv1d(x, v, padding=1) + F.conv1d(x, w, padding=2, dilation=2), ((3, 2, 3), (3, 2, 3))),
    "convolution and pool": Family(lambda x, w: F.avg_pool1d(F.conv1d(x, w, padding=1), 2), ((3, 2, 3),)),
    "transposed, of 2 by 2": transposed(2, stride=2),
    "transposed, of 3": transposed(3, padding=1),
    "transposed, of 4 by 2": transposed(4, stride=2, padding=1),
    "transposed, of 3 by 2, one more": transposed(3, stride=2, padding=1, output_padding=1),
    "transposed to fewer channels": transposed(4, inside=3, outside=2, stride=2, padding=1),
    "mean pool of 2": mean_pool(2),
    "mean pool of 3 by 2": mean_pool(3, 2, 1),
    "mean pool of 3 by 2, without the padding": mean_pool(3, 2, 1, count_include_pad=False),
    "mean pool of 3 by 2, up": mean_pool(3, 2, ceil_mode=True),
    "mean pool of 5": mean_pool(5, 1, 2),
    "mean pool of 5 by 5": mean_pool(5, 5),
    "max pool of 2": max_pool(2),
    "max pool of 3 by 2": max_pool(3, 2, 1),
    "max pool of 3 by 2, up": max_pool(3, 2, ceil_mode=True),
    "max pool of 5": max_pool(5, 1, 2),
    "adaptive mean to 1": Family(lambda x: F.adaptive_avg_pool1d(x, 1), sums=(4, 0), out=ALL, backward=False),
    "adaptive max to 1": Family(lambda x: F.adaptive_max_pool1d(x, 1), sums=(4, 0), out=ALL, backward=False),
    "adaptive mean to 6": Family(lambda x: F.adaptive_avg_pool1d(x, 6)),
    "adaptive max to 4": Family(lambda x: F.adaptive_max_pool1d(x, 4), like=lambda x: F.adaptive_avg_pool1d(x, 4)),
    "unfold": Family(lambda x: x.unfold(2, 3, 1)),
    "nearest, twice as long": resize(scale_factor=2),
    "nearest, to 23": resize(size=23),
    "nearest, half as long": resize(scale_factor=0.5),
    "linear, twice as long": resize(scale_factor=2, mode="linear"),
    "linear, to 9, corners": resize(size=9, mode="linear", align_corners=True),
    "area, to 6": resize(size=6, mode="area"),
    "zeros": pad("constant", 2, 1),
    "reflected": pad("reflect", 2, 1),
    "replicated": pad("replicate", 2, 1),
    "circular": pad("circular", 2, 1),
    "circular convolution": Family(lambda x, w: F.conv1d(F.pad(x, (1, 1), "circular"), w), ((3, 2, 3),)),
    "roll": Family(lambda x: x.roll(2, 2)),
    "flip": Family(lambda x: x.flip(2)),
    "differences": Family(lambda x: x[:, :, 1:] - x[:, :, :-1]),
    "central differences": Family(lambda x: (x[:, :, 2:] - x[:, :, :-2]) / 2),
    "cumulative sum": Family(lambda x: x.cumsum(2)),
    "mean": Family(lambda x: x.mean(2), sums=(4, 0), out=ALL, backward=False),
    "variance": Family(lambda x: x.var(2), sums=(8, 0), out=ALL, backward=False),
    "layer norm": Family(lambda x: F.layer_norm(x, x.shape[1:]), sums=(4, 4)),
    "group norm": Family(lambda x: F.group_norm(x, 2), channels=4, sums=(8, 8)),
    "instance norm": Family(lambda x: F.instance_norm(x), sums=(8, 8)),
    "batch norm": Family(lambda x: F.batch_norm(x, None, None, training=True), sums=(4, 4)),
    "batch norm with weights": Family(lambda x, v, w: F.batch_norm(x, None, None, v, w, True), ((2,), (2,)), sums=(4, 4)),
    "softmax": Family(lambda x: x.softmax(2), sums=(4, 4)),
    "low frequencies": Family(low_frequencies),
}
ROWS = {
    "image, convolution of 3 x 3": conv(3, 3, padding=1),
    "image, convolution of 5 x 3, stride 2": conv(5, 3, padding=(2, 1), stride=2),
    "image, transposed, of 4 x 4 by 2": transposed(4, 4, stride=2, padding=1),
    "image, max pool of 3 by 2": max_pool(3, 2, 1),
    "image, bilinear, twice as large": resize(scale_factor=2, mode="bilinear"),
    "image, bicubic, twice as large": resize(scale_factor=2, mode="bicubic"),
    "image, unfold and fold": Family(lambda x: F.fold(F.unfold(x, 3, padding=1).softmax(1), x.shape[2:], 3, padding=1)),
    "image, laplacian": Family(laplacian),
    "image, spectral product of rows": Family(along_rows, ((12,),)),
}
COLUMNS = {"image, columns, convolution of 3 x 3": conv(3, 3, padding=1), "image, columns, convolution of 3 x 5": conv(3, 5, padding=(1, 2))}
CORNERS = {
    "corners, convolution of 3 x 3": conv(3, 3, padding=1),
    "corners, transposed, of 4 x 4 by 2": transposed(4, 4, stride=2, padding=1),
    "corners, mean pool of 3 by 2": mean_pool(3, 2, 1),
    "corners, max pool of 3 by 2": max_pool(3, 2, 1),
    "corners, bilinear, twice as large": resize(scale_factor=2, mode="bilinear"),
    "corners, reflected": pad("reflect", 1, 1, 1, 1),
    "corners, laplacian": Family(laplacian),
    "corners, group norm": Family(lambda x: F.group_norm(x, 2), sums=(4, 4)),
}
DATA = {
    "data x domain, convolution of 3 x 3": conv(3, 3, padding=1),
    "data x domain, max pool of 3 by 2": max_pool(3, 2, 1),
    "data x domain, batch norm": Family(lambda x: F.batch_norm(x, None, None, training=True), sums=(4, 4)),
}
VOLUMES = {"volume, convolution of 3 x 3 x 3": conv(3, 3, 3, padding=1)}


def graph(family, batch, sizes, dims, mesh=None):
    out = dims if family.out == "as the input" else family.out
    least = (lambda n: all_reduce(n, 4 * family.sums[0])) if family.sums else None
    return Graph(family.function, [(batch, family.channels, *sizes), *family.weights], {0: dims}, out, least, "derived in docs/least-bytes-spatial.md", mesh,
                 family.like, family.sums)


def graphs(families, batch, all_sizes, dims, mesh=None):
    return {f"{name} ({' x '.join(map(str, sizes))})": (family, graph(family, batch, sizes, dims, mesh))
            for sizes in all_sizes for name, family in families.items()}


IMAGES = ((24, 12), (13, 11))
BOTH = (graphs(LINES, 2, ((24,), (13,)), 2) | graphs(ROWS | {"image, instance norm": Family(lambda x: F.instance_norm(x), sums=(4, 4))}, 1, IMAGES, 2) |
        graphs(COLUMNS, 1, ((12, 24), (11, 13)), 3) | graphs(VOLUMES, 1, ((12, 5, 4), (7, 5, 4)), 2) |
        graphs(CORNERS, 1, IMAGES, (2, 3), (2, 2)) | graphs(DATA, 2, IMAGES, (0, 2), (2, 2)))
# A row transform of 12 frequencies has no other size.
BOTH = {name: made for name, made in BOTH.items() if "spectral" not in name or "24" in name}
FORWARD = {name: made for name, (_, made) in BOTH.items()}
# One size of each: the other says nothing new, and takes as long.
BACKWARD = {f"backward of: {name}": made for name, (family, made) in BOTH.items() if family.backward and ("24" in name or "(12" in name)}
SPATIAL = FORWARD | BACKWARD


def backward_sums(made, n):
    """What is summed over all ranks besides the exchanges: the loss, and the derivatives by the weights."""
    weights = sum(B(*shape) for shape in made.shapes[1:])
    if not made.sums:
        return all_reduce(n, 4 + weights)
    # A norm's derivatives by its weights are the sums that it needs anyway.
    return all_reduce(n, 4 * (sum(made.sums) + 1))
