# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of an image that are made of several ops over its spatial dims, for window_cases.py. Each draws (text, function of the image and the
further parameters, these)."""
import torch
import torch.nn.functional as F


def stencil(chosen, image):
    """Several parts and windows of one padded, perhaps rolled image."""
    sizes = image.shape[2:]
    mode = chosen.choice(("constant", "circular", "circular", "reflect", "replicate"))
    width = chosen.randint(1, 2)
    if min(sizes) <= width:
        raise RuntimeError("too small for the pad")
    shift, rolled = chosen.randint(-3, 3), 2 + chosen.randrange(len(sizes))
    offsets = [[chosen.randint(0, 2 * width) for _ in sizes] for _ in range(chosen.randint(2, 5))]
    windows = chosen.sample(("mean", "largest", "conv"), chosen.randint(0, 2))
    pools = {1: (F.avg_pool1d, F.max_pool1d, F.conv1d), 2: (F.avg_pool2d, F.max_pool2d, F.conv2d), 3: (F.avg_pool3d, F.max_pool3d, F.conv3d)}[len(sizes)]
    kernel = torch.randn(image.shape[1], image.shape[1], *[2 * width + 1] * len(sizes), dtype=image.dtype)

    def call(x):
        if shift:
            x = x.roll(shift, rolled)
        x = F.pad(x, [width] * 2 * len(sizes), mode)
        y = 0
        for k, offset in enumerate(offsets):
            part = x[(slice(None), slice(None), *(slice(begin, begin + size) for begin, size in zip(offset, sizes)))]
            y = y + (part.sin() if k == 1 else part * (k + 1))
        for name in windows:
            if name == "conv":
                y = y + pools[2](x, kernel)
            else:
                y = y * pools[name == "largest"](x, 2 * width + 1, 1)
        return y
    return f"stencil {tuple(sizes)} {mode} {width} roll {shift} of {rolled} {offsets} {windows}", call, []


def scans(chosen, image):
    dim = 2 + chosen.randrange(image.dim() - 2)
    names = [chosen.choice(("cumsum", "logcumsumexp", "cummax", "cumprod")) for _ in range(2)]
    turned = [chosen.random() < 0.6 for _ in range(2)]

    def call(x):
        for name, is_turned in zip(names, turned):
            y = getattr(torch, name)(x.flip(dim) if is_turned else x, dim)
            y = y.values if name == "cummax" else y
            x = (y.flip(dim) if is_turned else y).sin()
        return x
    return f"scans {tuple(image.shape[2:])} {dim} {names} {turned}", call, []


def chained(chosen, image):
    """Windows over what other windows make of an image with few channels, of which ranks make rows again, and that has other users."""
    spatial = image.dim() - 2
    convs, means, pools = {1: (F.conv1d, F.avg_pool1d, F.max_pool1d), 2: (F.conv2d, F.avg_pool2d, F.max_pool2d), 3: (F.conv3d, F.avg_pool3d, F.max_pool3d)}[spatial]

    def drawn(inside, outside):
        kernel, stride, dilation = (tuple(chosen.choice(c) for _ in range(spatial)) for c in ((1, 2, 3, 3, 5), (1, 1, 1, 2), (1, 1, 2)))
        padding = tuple(chosen.randrange(k * d) for k, d in zip(kernel, dilation))
        return torch.randn(outside, inside, *kernel, dtype=image.dtype), stride, padding, dilation
    wide, names = chosen.randint(3, 8), ("bias", "sin", "gelu", "norm", "times", "single")
    first, second = drawn(image.shape[1], wide), drawn(wide, chosen.randint(1, 4))
    between = [chosen.choice(names) for _ in range(chosen.randint(0, 4))]
    last = [chosen.choice(("conv", "conv", "mean", "largest", "single")) for _ in range(chosen.randint(1, 2))]
    kept = chosen.random() < 0.3
    scale = torch.rand(wide, dtype=image.dtype) + 0.5
    single = torch.randn(wide, wide, *[1] * spatial, dtype=image.dtype) / wide

    def call(x, w, v):
        y = convs(x, w, None, *first[1:])
        column = scale.view(-1, *[1] * spatial)
        for name in between:
            y = {"bias": lambda y: y + column, "sin": torch.sin, "gelu": F.gelu, "times": lambda y: y * y.tanh(),
                 "single": lambda y: y + convs(y, single),
                 "norm": lambda y: F.batch_norm(y, scale - 1, scale, scale, scale)}[name](y)
        ends = [{"single": lambda y: convs(y, single), "conv": lambda y: convs(y, v, None, *second[1:]), "mean": lambda y: means(y, 3, 1, 1), "largest": lambda y: pools(y, 3, 2, 1)}[name](y) for name in last]
        return sum(end.flatten(2).sum(-1, keepdim=True) if len(last) > 1 else end for end in ends) if not kept or len(last) > 1 else ends[0] * y.mean()
    text = f"chained {tuple(image.shape)} {first[0].shape} {first[1:]} {between} {second[0].shape} {second[1:]} {last} {kept}"
    if len(last) > 1 and len(set(last)) > 1 and second[0].shape[0] != wide:
        raise RuntimeError("ends of different channels")
    return text, call, [first[0], second[0]]
