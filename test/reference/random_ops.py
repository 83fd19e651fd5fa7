# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random numbers, as `aten_ops.py` has the other ops: Philox4x32-10 written once more, and tensors of its words for
whole tensors."""
import math

import torch

from aten_ops import aten, mixed

LOW = 0xFFFFFFFF


def philox_words(element, seed, offset):
    """The four words for counters (element, offset) and the key seed, all i64."""
    element, seed, offset = torch.broadcast_tensors(element, seed, offset)
    def split(x):
        return x & LOW, (x >> 32) & LOW
    counter, key = [*split(element), *split(offset)], list(split(seed))
    for _ in range(10):
        first, second = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
        counter = [(second >> 32) & LOW ^ counter[1] ^ key[0], second & LOW,
                   (first >> 32) & LOW ^ counter[3] ^ key[1], first & LOW]
        key = [(key[0] + 0x9E3779B9) & LOW, (key[1] + 0xBB67AE85) & LOW]
    return counter


@aten("philox", "element", "seed", "offset")
def philox(o, a, t):
    return philox_words(o["element"], o["seed"], o["offset"])[a["word"]]


def uniform(words, dtype):
    if dtype == torch.float64:
        return (words[0] & (1 << 26) - 1).double() * 2.0**-26 + (words[1] & (1 << 27) - 1).double() * 2.0**-53
    digits = {torch.float32: 24, torch.bfloat16: 8, torch.float16: 11}[dtype]
    return ((words[0] & (1 << digits) - 1).double() * 2.0**-digits).to(dtype)


def normal(words, dtype):
    if dtype == torch.float64:
        distance = uniform(words, dtype) + 2.0**-53
        angle = uniform(words[2:], dtype)
    else:
        low = ((words[1] & (1 << 24) - 1) + 1).double() * 2.0**-48
        distance, angle = uniform(words, torch.float32).double() + low, uniform(words[2:], torch.float32).double()
    return ((-2 * distance.log()).sqrt() * (2 * math.pi * angle).cos()).to(dtype)


@aten("random", "seed", "offset", "*size")
def random(o, a, t):
    shape = mixed(a["static_size"], o["size"])
    element = torch.arange(math.prod(shape)).reshape(shape)
    words = philox_words(element, o["seed"], o["offset"])
    if a["distribution"] == "bits":
        return (words[0] & 0x7FFFFFFF) * 2**32 + words[1]
    return (normal if a["distribution"] == "normal" else uniform)(words, t[0].dtype)


@aten("dropout", "self", "mask")
def dropout(o, a, t):
    p = float(a["p"])
    return o["self"] * (o["mask"] * (0 if p == 1 else 1 / (1 - p))).to(t[0].dtype)
