# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random calls of Fourier transforms, as in pytorch_cases.py. Complex numbers are pairs, a last dim of 2."""
import random

import torch

from pytorch_cases import A, shape


def complex_of(x):
    return torch.view_as_complex(x.contiguous())


def fourier():
    s = shape(low=1, high=3, sizes=[0, 1, 2, 3, 4, 5, 6])
    d, n, t = random.randrange(len(s)), random.choice([0, 0, 1, 2]), random.choice([torch.float32, torch.float64])
    forward, onesided = random.random() < 0.5, random.random() < 0.7
    size = random.choice([2, 3, 5, 6])
    pairs = 2 if random.random() < 0.95 else 3
    half = s[:d] + [size // 2 + (random.random() < 0.95)] + s[d + 1:]
    norm = f" normalization {n}" * (n > 0)

    def check(x):
        if x.shape[-1] != 2:
            raise RuntimeError("no pairs")
        return complex_of(x)

    def c2c(x):
        return torch.view_as_real(A._fft_c2c(check(x), [d], n, forward))

    def r2c(x):
        return torch.view_as_real(A._fft_r2c(x, [d], n, onesided))

    def c2r(x):
        if x.shape[d] != size // 2 + 1:
            raise RuntimeError("not half of the size")
        return A._fft_c2r(check(x), [d], n, size)

    def shard(call):
        return {"local": lambda x, r: call(x[0]) if x[0].numel() else torch.zeros(r[0], dtype=t)}
    return random.choice([
        ([(s + [pairs], t)], f"aten.fft_c2c {{0}} dim {d}{norm}" + " forward" * forward, c2c, shard(c2c)),
        ([(s, t)], f"aten.fft_r2c {{0}} dim {d}{norm}" + " onesided" * onesided, r2c, shard(r2c)),
        ([(half + [pairs], t)], f"aten.fft_c2r {{0}} dim {d} to [{size}]{norm}", c2r, shard(c2r)),
    ])


FAMILIES = [fourier]
