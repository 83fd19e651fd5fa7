# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of a parameter of 4 x 5, for joint graphs: convolutions, pools, resizing, borders and windows of one to three dims."""
import torch
from torch.nn import functional as F


def line(x):
    return x.view(1, 2, 10)


def image(x):
    return x.view(1, 1, 4, 5)


def volume(x):
    return x.view(1, 1, 2, 2, 5)


def kernel(*shape):
    return torch.arange(float(torch.Size(shape).numel())).view(shape).sin()


def resized(x, size=None, factor=None, mode="nearest", **options):
    return F.interpolate(x, size=size, scale_factor=factor, mode=mode, **options) ** 2


PIECES = {
    "conv1d": lambda x: F.conv1d(line(x), kernel(3, 2, 2), stride=2, dilation=3, padding=1) ** 2,
    "conv3d": lambda x: F.conv3d(volume(x), kernel(2, 1, 2, 1, 3), padding=(1, 0, 1)) ** 2,
    "conv_same": lambda x: F.conv2d(image(x), kernel(2, 1, 2, 3), padding="same", dilation=(1, 2)) ** 2,
    "conv_single": lambda x: F.conv2d(image(x)[0], kernel(2, 1, 2, 3)) ** 2,
    "conv_transpose1d": lambda x: F.conv_transpose1d(line(x), kernel(2, 2, 3), kernel(4), 2, 1, 1, 2) ** 2,
    "conv_transpose2d": lambda x: F.conv_transpose2d(image(x), kernel(1, 3, 3, 2), None, (2, 1), (1, 0), (1, 0), dilation=(1, 2)) ** 2,
    # Rows that no position of the input makes.
    "conv_transpose_wide": lambda x: F.conv_transpose2d(image(x), kernel(1, 2, 2, 2), kernel(2), 1, 0, 1, dilation=2) ** 2,
    "conv_transpose3d": lambda x: F.conv_transpose3d(volume(x), kernel(1, 2, 2, 1, 2), kernel(2), (1, 2, 2), (0, 0, 1)) ** 2,
    "conv_transpose_single": lambda x: F.conv_transpose2d(image(x)[0], kernel(1, 2, 2, 2), stride=2) ** 2,
    "conv_transpose_weight": lambda x: F.conv_transpose2d(kernel(2, 2, 3, 3), x.view(2, 1, 2, 5), stride=2, groups=2) ** 2,
    "conv_transpose_weight_wide": lambda x: F.conv_transpose2d(kernel(2, 1, 3, 2), x.view(1, 2, 2, 5), None, 1, 1, 1, dilation=2) ** 2,
    "conv_bias": lambda x: F.conv_transpose1d(line(x)[:, :1], kernel(1, 10, 2), x.view(20)[:10]) ** 2,
    "max_pool1d": lambda x: F.max_pool1d(line(x), 3, 2, 1, 2, True) ** 2,
    "max_pool3d": lambda x: F.max_pool3d(volume(x), (2, 1, 3), (1, 1, 2), ceil_mode=True) ** 2,
    "max_pool_indices": lambda x: sum(t * t for t in F.max_pool2d(image(x), 2, 1, return_indices=True)),
    "avg_pool1d": lambda x: F.avg_pool1d(line(x), 4, 3, 2, True, False) ** 2,
    "avg_pool3d": lambda x: F.avg_pool3d(volume(x), (2, 1, 3), (1, 1, 2), (1, 0, 1), True) ** 2,
    "adaptive_avg_pool1d": lambda x: F.adaptive_avg_pool1d(line(x), 4) ** 2,
    "adaptive_avg_pool3d": lambda x: F.adaptive_avg_pool3d(volume(x), (1, 2, 3)) ** 2,
    "adaptive_max_pool1d": lambda x: F.adaptive_max_pool1d(line(x), 4) ** 2,
    "adaptive_max_pool2d": lambda x: sum(t * t for t in F.adaptive_max_pool2d(image(x), (3, 2), return_indices=True)),
    "adaptive_max_pool3d": lambda x: F.adaptive_max_pool3d(volume(x), (1, 2, 3)) ** 2,
    "nearest1d": lambda x: resized(line(x), factor=2.3), "nearest2d": lambda x: resized(image(x), factor=2),
    "nearest3d": lambda x: resized(volume(x), (3, 4, 7)),
    "nearest_exact1d": lambda x: resized(line(x), 7, mode="nearest-exact"),
    "nearest_exact2d": lambda x: resized(image(x), factor=(3, 1.4), mode="nearest-exact"),
    "nearest_exact3d": lambda x: resized(volume(x), factor=1.5, mode="nearest-exact"),
    "linear": lambda x: resized(line(x), 7, mode="linear"), "linear_aligned": lambda x: resized(line(x), 1, mode="linear", align_corners=True),
    "bilinear": lambda x: resized(image(x), factor=(2, 1.7), mode="bilinear"),
    "bilinear_aligned": lambda x: resized(image(x), (7, 3), mode="bilinear", align_corners=True),
    "trilinear": lambda x: resized(volume(x), (3, 2, 8), mode="trilinear"),
    "bicubic": lambda x: resized(image(x), factor=1.6, mode="bicubic"),
    "bicubic_aligned": lambda x: resized(image(x), (3, 9), mode="bicubic", align_corners=True),
    "reflected1d": lambda x: F.pad(line(x), (3, -1), mode="reflect") ** 2, "reflected2d": lambda x: F.pad(image(x), (2, 1, 0, 3), mode="reflect") ** 2,
    "reflected3d": lambda x: F.pad(volume(x), (1, 2, 1, 0, 0, 1), mode="reflect") ** 2,
    "replicated1d": lambda x: F.pad(line(x), (-2, 3), mode="replicate") ** 2,
    "replicated2d": lambda x: F.pad(image(x), (2, 1, 0, 3), mode="replicate") ** 2,
    "replicated3d": lambda x: F.pad(volume(x), (1, 2, 1, 0, 0, 3), mode="replicate") ** 2,
    "circular": lambda x: F.pad(image(x), (5, 1, -1, 2), mode="circular") ** 2,
    "unfold_images": lambda x: F.unfold(image(x), (2, 3), dilation=(1, 2), padding=(0, 1)) ** 2,
    "fold_images": lambda x: F.fold(x[:, :4], (3, 3), 2) ** 2,
    "unfold": lambda x: x.unfold(1, 3, 1) ** 2, "unfold_apart": lambda x: x.unfold(1, 2, 2).unfold(0, 2, 3) ** 2,
    "pixel_shuffle": lambda x: F.pixel_shuffle(x.view(1, 4, 1, 5), 2) ** 3, "pixel_unshuffle": lambda x: F.pixel_unshuffle(x.view(1, 1, 2, 10), 2) ** 3,
    "channel_shuffle": lambda x: torch.channel_shuffle(x.view(1, 4, 5, 1), 2) * kernel(1, 4, 5, 1),
    "glu": lambda x: F.glu(x, 0) ** 2,
    "instance_norm": lambda x: F.instance_norm(line(x), weight=kernel(2) + 2, bias=kernel(2)) ** 3,
}
