# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`aten` ops of images (see aten_ops.py). PyTorch refuses some empty shards."""
import torch
import torch.nn.functional as F

from aten_ops import aten


@aten("conv2d", "input", "weight", "?bias")
def conv2d(o, a, t):
    if o["input"].numel() == 0 or o["weight"].numel() == 0:  # an empty shard; PyTorch refuses some
        return torch.zeros([o["input"].shape[0], o["weight"].shape[0], *t[0].shape[2:]], dtype=t[0].dtype)
    return F.conv2d(o["input"], o["weight"], o["bias"], a["stride"], a["padding"], a["dilation"], a.get("groups", 1))


def _pool(name, function):
    def pool(o, a, t):
        if o["self"].numel() == 0:
            return torch.zeros([*o["self"].shape[:-2], *t[0].shape[-2:]], dtype=t[0].dtype)
        return function(o["self"], a)
    aten(name, "self")(pool)


_pool("max_pool2d", lambda x, a: torch.max_pool2d(x, a["kernel_size"], a["stride"], a["padding"], a["dilation"],
                                                  "ceil_mode" in a))
_pool("avg_pool2d", lambda x, a: F.avg_pool2d(x, a["kernel_size"], a["stride"] or None, a["padding"], "ceil_mode" in a,
                                              "count_include_pad" in a, a.get("divisor_override")))
_pool("adaptive_avg_pool2d", lambda x, a: F.adaptive_avg_pool2d(x, a["output_size"]))


@aten("windows", "self")
def windows(o, a, t):
    x, (height, width) = o["self"], a["kernel_size"]
    shape = [*x.shape[:2], height, width, *t[0].shape[-2:]]
    if x.numel() == 0:
        return torch.zeros(shape, dtype=t[0].dtype)
    return F.unfold(x, a["kernel_size"], a["dilation"], a["padding"], a["stride"]).reshape(shape)
