# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`aten` ops of lines, images and volumes (see aten_ops.py). PyTorch refuses some empty shards."""
import itertools

import torch
import torch.nn.functional as F

from aten_ops import aten

CONVOLUTIONS = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}


@aten("convolution", "input", "weight", "?bias")
def convolution(o, a, t):
    if o["input"].numel() == 0 or o["weight"].numel() == 0:  # an empty shard; PyTorch refuses some
        return torch.zeros([o["input"].shape[0], o["weight"].shape[0], *t[0].shape[2:]], dtype=t[0].dtype)
    return CONVOLUTIONS[o["weight"].dim() - 2](o["input"], o["weight"], o["bias"], a["stride"], a["padding"], a["dilation"],
                                               a.get("groups", 1))


def _pool(name, spatial, function):
    def pool(o, a, t):
        n = len(a[spatial])
        if o["self"].numel() == 0:
            return torch.zeros([*o["self"].shape[:-n], *t[0].shape[-n:]], dtype=t[0].dtype)
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
    positions = t[0].shape[2 + n:]
    padded = F.pad(x, [p for p in reversed(_padding(a, n)) for _ in range(2)])
    result = torch.zeros([*x.shape[:2], *kernel, *positions], dtype=x.dtype)
    for at, where in _parts(kernel, positions, a):
        result[(slice(None), slice(None), *at)] = padded[(slice(None), slice(None), *where)]
    return result


@aten("fold", "self")
def fold(o, a, t):
    x, size = o["self"], t[0].shape[2:]
    n = len(size)
    padding, kernel, positions = _padding(a, n), x.shape[2:2 + n], x.shape[2 + n:]
    # Room for a last position that reaches beyond the padding.
    room = [2 * s + 2 * p + 64 for s, p in zip(size, padding)]
    image = torch.zeros([*x.shape[:2], *room], dtype=x.dtype)
    for at, where in _parts(kernel, positions, a):
        image[(slice(None), slice(None), *where)] += x[(slice(None), slice(None), *at)]
    return image[(slice(None), slice(None), *(slice(p, p + s) for p, s in zip(padding, size)))].contiguous()
