# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`aten` ops of lines, images and volumes (see aten_ops.py). PyTorch refuses some empty shards."""
import itertools

import torch
import torch.nn.functional as F

from aten_ops import aten, mixed

CONVOLUTIONS = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}


def _positions(sizes, kernel, a, known):
    """Of the window in dims of these sizes; what the type knows is taken from it."""
    n = len(kernel)
    stride, padding, dilation = (list(a.get(k) or e) for k, e in (("stride", kernel), ("padding", [0]), ("dilation", [1])))
    stride, padding, dilation = (x * (n // len(x)) for x in (stride, padding, dilation))
    return [max((size + 2 * p - d * (k - 1) - 1) // s + 1, 0) if p_known is None else p_known
            for size, k, s, p, d, p_known in zip(sizes, kernel, stride, padding, dilation, known)]


@aten("convolution", "input", "weight", "?bias")
def convolution(o, a, t):
    if o["input"].numel() == 0 or o["weight"].numel() == 0:  # an empty shard; PyTorch refuses some
        positions = _positions(o["input"].shape[2:], o["weight"].shape[2:], a, t[0].shape[2:])
        return torch.zeros([o["input"].shape[0], o["weight"].shape[0], *positions], dtype=t[0].dtype)
    if 0 in (positions := _positions(o["input"].shape[2:], o["weight"].shape[2:], a, [None] * (o["weight"].dim() - 2))):
        return torch.zeros([o["input"].shape[0], o["weight"].shape[0], *positions], dtype=t[0].dtype)
    return CONVOLUTIONS[o["weight"].dim() - 2](o["input"], o["weight"], o["bias"], a["stride"], a["padding"], a["dilation"],
                                               a.get("groups", 1))


def _pool(name, spatial, function):
    def pool(o, a, t):
        n = len(a[spatial])
        known = t[0].shape[-n:]
        positions = _positions(o["self"].shape[-n:], a[spatial], a, known) if spatial == "kernel_size" else known
        if o["self"].numel() == 0 or 0 in positions:
            return torch.zeros([*o["self"].shape[:-n], *positions], dtype=t[0].dtype)
        return function(o["self"], a, n)
    aten(name, "self")(pool)


def _max_pool(x, a, n):
    function = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}[n]
    return function(x, a["kernel_size"], a["stride"] or None, a["padding"], a["dilation"], "ceil_mode" in a, return_indices=True)


def _avg_pool(x, a, n):
    function = {1: F.avg_pool1d, 2: F.avg_pool2d, 3: F.avg_pool3d}[n]
    divisor = (a.get("divisor_override"),) if n > 1 else ()
    return function(x, a["kernel_size"], a["stride"] or None, a["padding"], "ceil_mode" in a, "count_include_pad" in a, *divisor)


def _adaptive(kind, x, a, n):
    return getattr(F, f"adaptive_{kind}_pool{n}d")(x, a["output_size"], **({"return_indices": True} if kind == "max" else {}))


_pool("max_pool", "kernel_size", lambda x, a, n: _max_pool(x, a, n)[0])
_pool("max_pool_positions", "kernel_size", lambda x, a, n: _max_pool(x, a, n)[1])
_pool("avg_pool", "kernel_size", _avg_pool)
_pool("adaptive_avg_pool", "output_size", lambda x, a, n: _adaptive("avg", x, a, n))
_pool("adaptive_max_pool", "output_size", lambda x, a, n: _adaptive("max", x, a, n)[0])
_pool("adaptive_max_pool_positions", "output_size", lambda x, a, n: _adaptive("max", x, a, n)[1])


def _parts(kernel, positions, a):
    """For each element of the kernel, its index and where it lies in the padded image, at all positions."""
    n = len(kernel)
    stride, dilation = (list(a[k]) * (n // len(a[k])) for k in ("stride", "dilation"))
    for at in itertools.product(*(range(k) for k in kernel)):
        yield at, tuple(slice(i * d, i * d + (p - 1) * s + 1 if p else i * d, s) for i, d, s, p in zip(at, dilation, stride, positions))


def _padding(a, n):
    return list(a["padding"]) * (n // len(a["padding"]))


@aten("windows", "self")
def windows(o, a, t):
    x, kernel = o["self"], a["kernel_size"]
    n = len(kernel)
    positions = _positions(x.shape[2:], kernel, a, t[0].shape[2 + n:])
    padded = F.pad(x, [p for p in reversed(_padding(a, n)) for _ in range(2)])
    result = torch.zeros([*x.shape[:2], *kernel, *positions], dtype=x.dtype)
    for at, where in _parts(kernel, positions, a):
        result[(slice(None), slice(None), *at)] = padded[(slice(None), slice(None), *where)]
    return result


@aten("fold", "self", "*size")
def fold(o, a, t):
    x, size = o["self"], mixed(a["static_size"], o["size"])
    n = len(size)
    padding, kernel, positions = _padding(a, n), x.shape[2:2 + n], x.shape[2 + n:]
    # Room for a last position that reaches beyond the padding.
    room = [2 * s + 2 * p + 64 for s, p in zip(size, padding)]
    image = torch.zeros([*x.shape[:2], *room], dtype=x.dtype)
    for at, where in _parts(kernel, positions, a):
        image[(slice(None), slice(None), *where)] += x[(slice(None), slice(None), *at)]
    return image[(slice(None), slice(None), *(slice(p, p + s) for p, s in zip(padding, size)))].contiguous()
