# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Solutions of the advection-diffusion equation dc/dt + u dc/dx + v dc/dy = D (d2c/dx2 + d2c/dy2) in a closed square basin, whose cells have the
length 1."""
import math

import torch
from torch.nn import functional as F

STEP, STEPS, DIFFUSIVITY = 0.5, 16, 0.1
NOISE = 0.2  # the standard deviation of a measured concentration
EDDY, PATCH = 32, 20  # cells between two values of the random numbers that make the flow and the concentration


def smooth_noise(size, spacing, generator):
    points = max(size // spacing, 4)
    return F.interpolate(torch.randn(1, 1, points, points, generator=generator), size=(size, size), mode="bicubic", align_corners=True)


def rate_of_change(c, u, v):
    p = F.pad(c, (1, 1, 1, 1), mode="replicate")
    west, east, north, south = p[..., 1:-1, :-2], p[..., 1:-1, 2:], p[..., :-2, 1:-1], p[..., 2:, 1:-1]
    return DIFFUSIVITY * (west + east + north + south - 4 * c) - u * (east - west) / 2 - v * (south - north) / 2


def solve(c, u, v):
    """The concentration after the time STEPS * STEP, by Heun's method."""
    for _ in range(STEPS):
        first = rate_of_change(c, u, v)
        c = c + STEP / 2 * (first + rate_of_change(c + STEP * first, u, v))
    return c


def sample(size, generator):
    """A concentration between 0 and 1, measured with noise, with the velocity, and the concentration later: [3, size, size] and [1, size, size]."""
    wall = torch.linspace(0, math.pi, size).sin().clamp_min(0)
    basin = wall[:, None] * wall
    stream = smooth_noise(size, EDDY, generator) * basin  # nothing flows through the walls, where this is zero
    u, v = torch.gradient(stream, dim=2)[0], -torch.gradient(stream, dim=3)[0]
    fastest = torch.maximum(u.abs().max(), v.abs().max())
    u, v = u / fastest, v / fastest
    c = torch.sigmoid(3 * smooth_noise(size, PATCH, generator)) * basin.sqrt()
    measured = c + NOISE * torch.randn(c.shape, generator=generator)
    return torch.cat([measured, u, v], 1)[0], solve(c, u, v)[0]


def samples(count, size, seed):
    """Inputs of the model as `shard-run --batches` takes them: [count, 1, channels, size, size]."""
    generator = torch.Generator().manual_seed(seed)
    x, target = zip(*(sample(size, generator) for _ in range(count)))
    return {"x": torch.stack(x)[:, None], "target": torch.stack(target)[:, None]}
